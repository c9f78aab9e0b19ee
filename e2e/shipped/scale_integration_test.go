// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package shipped

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// kubectl is a user who scales by hand.
type kubectl struct{ program, kubeconfig string }

func (e *environment) kubectl() *kubectl {
	e.Helper()
	program, err := apiserver.Program(e.Context(), "kubectl")
	if err != nil {
		e.Fatal(err)
	}
	kubeconfig, err := server.Kubeconfig("user-of-"+e.Namespace, "system:masters")
	if err != nil {
		e.Fatal(err)
	}
	return &kubectl{program: program, kubeconfig: kubeconfig}
}

func (k *kubectl) run(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, k.program, append(args, "--kubeconfig="+k.kubeconfig)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %v: %w: %s", args, err, out)
	}
	return nil
}

// scales is the client by which autoscalers scale whatever can be scaled.
func (e *environment) scales() scale.ScaleInterface {
	e.Helper()
	found, err := discovery.NewDiscoveryClientForConfig(server.Config)
	if err != nil {
		e.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	scales, err := scale.NewForConfig(server.Config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(found))
	if err != nil {
		e.Fatal(err)
	}
	return scales.Scales(e.Namespace)
}

// scaled waits until the scale of the pool says so many, and its selector picks the Pods
// of the members and no others.
func (e *environment) scaled(replicas int32) *autoscalingv1.Scale {
	e.Helper()
	var got *autoscalingv1.Scale
	scales := e.scales()
	e.Eventually(fmt.Sprintf("the pool is scaled to %d", replicas), func() error {
		var err error
		if got, err = scales.Get(e.Context(), poolsResource(), poolName, metav1.GetOptions{}); err != nil {
			return err
		}
		if got.Spec.Replicas != replicas || got.Status.Replicas != replicas {
			return fmt.Errorf("its scale is %+v, %+v", got.Spec, got.Status)
		}
		if diff := cmp.Diff(e.podsOfMembers(), e.podsBy(got.Status.Selector)); diff != "" {
			return fmt.Errorf("the selector %q picks other Pods than those of the members (-want +got):\n%s", got.Status.Selector, diff)
		}
		return nil
	})
	return got
}

func poolsResource() schema.GroupResource {
	return extensionsv1beta1.GroupVersion.WithResource("sandboxwarmpools").GroupResource()
}

// podsOfMembers are the names of the Pods of the pool's members.
func (e *environment) podsOfMembers() []string {
	e.Helper()
	names := []string{}
	for _, sandbox := range e.sandboxes() {
		if relations.Pool(&sandbox) != nil {
			names = append(names, sandbox.Name)
		}
	}
	slices.Sort(names)
	return names
}

// podsBy are the names of the Pods that a selector picks; all when it is empty.
func (e *environment) podsBy(selector string) []string {
	e.Helper()
	parsed, err := labels.Parse(selector)
	if err != nil {
		e.Fatal(err)
	}
	var pods corev1.PodList
	if err := e.Client.List(e.Context(), &pods, client.InNamespace(e.Namespace), client.MatchingLabelsSelector{Selector: parsed}); err != nil {
		e.Fatal(err)
	}
	names := []string{}
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// The README says so: whoever scales a pool needs not know what a pool is. Beside its members there is a
// Sandbox that was one and is a claim's now, whose Pod the selector no longer picks.
func TestAPoolIsScaledLikeADeployment(t *testing.T) {
	e := newEnvironment(t)
	controller := e.launch("scaled")
	e.fill(2, controller)
	e.Create(makeClaim("claim"))
	e.served(1, controller)
	e.full(2, controller)
	user := e.kubectl()
	for _, replicas := range []int32{0, 3} {
		if err := user.run(t.Context(), "scale", "sandboxwarmpool/"+poolName, fmt.Sprint("--replicas=", replicas), "--namespace="+e.Namespace); err != nil {
			t.Fatal(err)
		}
		e.full(replicas, controller)
		e.scaled(replicas)
	}
	now := e.scaled(3)
	now.Spec.Replicas = 2
	if _, err := e.scales().Update(t.Context(), poolsResource(), now, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.full(2, controller)
	e.scaled(2)
	if all := e.podsBy(""); len(all) != 3 {
		t.Errorf("there are the Pods %v, want two of the pool and one of the claim", all)
	}
}

// The autoscaler of Kubernetes follows a number up and down, to nothing and back. For
// that it needs all that the scale says, the selector of a pool without members as well.
func TestAPoolIsScaledByTheAutoscaler(t *testing.T) {
	e := newEnvironment(t)
	controller := e.launch("autoscaled")
	e.fill(1, controller) // none that was set by hand would switch the autoscaler off
	expected := &metric{}
	expected.serve(e)
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "autoscaler"}}
	autoscaler.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
			APIVersion: extensionsv1beta1.GroupVersion.String(), Kind: extensionsv1beta1.SandboxWarmPoolKind, Name: poolName,
		},
		MinReplicas: new(int32(0)), MaxReplicas: 4,
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: metricName},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("1"))},
		}}},
		Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0))},
		},
	}
	e.Create(autoscaler)
	for _, step := range []struct{ expected, members int32 }{{3, 3}, {1, 1}, {0, 0}, {2, 2}, {9, 4}} {
		expected.value.Store(int64(step.expected))
		e.Eventually(fmt.Sprintf("the autoscaler has seen that %d claims are expected", step.expected), func() error {
			e.Get(autoscaler.Name, autoscaler)
			pool := &extensionsv1beta1.SandboxWarmPool{}
			e.Get(poolName, pool)
			if *pool.Spec.Replicas != step.members || autoscaler.Status.CurrentReplicas != step.members {
				return fmt.Errorf("the pool is to have %d, and the autoscaler says %+v", *pool.Spec.Replicas, autoscaler.Status)
			}
			return server.Failure()
		})
		e.full(step.members, controller)
		e.scaled(step.members)
	}
}
