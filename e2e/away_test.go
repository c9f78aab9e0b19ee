// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// poolOf makes a pool of so many Sandboxes of the template python.
const poolOf = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: pool}
spec: {replicas: %d, sandboxTemplateRef: {name: python}}
`

// While no replica of the webhook answers and its failure policy is Fail, nobody makes
// anything of ours, and is told why; everything else goes on: deletion, status,
// suspending, shrinking, garbage collection, the end of a namespace, all other kinds.
func TestWithoutAWebhookOnlyWhatIsNewHasToWait(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t, keys.Tier, "trusted")
	for _, name := range []string{"suspended", "deleted", "owned"} {
		cluster.MustApply(ctx, t, ns, sandboxWith(name, "terminationGracePeriodSeconds: 1", ""))
	}
	owner := ownSandbox(ctx, t, ns, "owned")
	cluster.MustApply(ctx, t, ns, asTemplate(sandboxWith("python", "terminationGracePeriodSeconds: 1", "")))
	cluster.MustApply(ctx, t, ns, fmt.Sprintf(poolOf, 3))
	cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: claim"))

	cluster.ScaleWebhook(ctx, t, 0)
	t.Cleanup(func() { cluster.ScaleWebhook(context.WithoutCancel(ctx), t, 1) })
	kit.Eventually(ctx, t, "the apiserver does not reach the webhook", func(ctx context.Context) error {
		_, _, err := cluster.Apply(ctx, ns, sandboxWith("new", "", ""))
		if err == nil {
			return errors.New("a new Sandbox was admitted")
		}
		for _, part := range []string{`failed calling webhook "validate.platform.agents.x-k8s.io"`, "agent-sandbox-webhook.agent-sandbox-system.svc"} {
			if !strings.Contains(err.Error(), part) {
				return fmt.Errorf("the refusal does not name %q: %w", part, err)
			}
		}
		return nil
	})
	kit.Eventually(ctx, t, "no Sandbox was stored", func(ctx context.Context) error {
		if err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: "new"}, &agentsv1beta1.Sandbox{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it can be read: %w", err)
		}
		return nil
	})
	t.Run("other kinds", func(t *testing.T) { otherKindsGoOn(ctx, t, ns) })
	t.Run("status and finalizers", func(t *testing.T) { statusGoesOn(ctx, t, ns) })
	t.Run("suspending", func(t *testing.T) {
		mustPatch(ctx, t, &agentsv1beta1.Sandbox{ObjectMeta: named(ns, "suspended")}, `{"spec": {"operatingMode": "Suspended"}}`)
		mustGo(ctx, t, &corev1.Pod{ObjectMeta: named(ns, "suspended")})
	})
	t.Run("shrinking", func(t *testing.T) { poolsShrink(ctx, t, ns) })
	t.Run("deletion", func(t *testing.T) { mustDelete(ctx, t, &agentsv1beta1.Sandbox{ObjectMeta: named(ns, "deleted")}) })
	t.Run("garbage collection", func(t *testing.T) {
		mustDelete(ctx, t, owner)
		mustGo(ctx, t, &agentsv1beta1.Sandbox{ObjectMeta: named(ns, "owned")})
	})
	t.Run("the end of the namespace", func(t *testing.T) {
		mustDelete(ctx, t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	})
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// ownSandbox makes a ConfigMap the owner of a Sandbox.
func ownSandbox(ctx context.Context, t *testing.T, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: named(namespace, "owner")}
	if err := cluster.Create(ctx, owner); err != nil {
		t.Fatal(err)
	}
	mustPatch(ctx, t, &agentsv1beta1.Sandbox{ObjectMeta: named(namespace, name)},
		`{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "`+string(owner.UID)+`"}]}}`)
	return owner
}

func otherKindsGoOn(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: named(namespace, "other")}
	pod := &corev1.Pod{ObjectMeta: named(namespace, "other"), Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(1)), Containers: []corev1.Container{{Name: "c", Image: probeImage, Args: []string{"sleep"}}},
	}}
	for _, object := range []client.Object{configMap, pod} {
		if err := cluster.Create(ctx, object); err != nil {
			t.Errorf("make a %T: %v", object, err)
		}
	}
	mustPatch(ctx, t, configMap, `{"data": {"a": "b"}}`)
	mustDelete(ctx, t, configMap)
}

func statusGoesOn(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: named(namespace, "suspended")}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status": {"selector": "story"}}`))
	if err := cluster.Status().Patch(ctx, sandbox, patch); err != nil {
		t.Errorf("write the status: %v", err)
	}
	mustPatch(ctx, t, sandbox, `{"metadata": {"finalizers": ["story.example.com/hold"]}}`)
	mustPatch(ctx, t, sandbox, `{"metadata": {"finalizers": null}}`)
}

func poolsShrink(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	pool := &extensionsv1beta1.SandboxWarmPool{ObjectMeta: named(namespace, "pool")}
	mustPatch(ctx, t, pool, `{"spec": {"replicas": 2}}`)
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 1}}
	if err := cluster.SubResource("scale").Update(ctx, pool, client.WithSubResourceBody(scale)); err != nil {
		t.Errorf("scale the pool down: %v", err)
	}
	scale.Spec.Replicas = 5
	if err := cluster.SubResource("scale").Update(ctx, pool, client.WithSubResourceBody(scale)); err == nil {
		t.Error("the pool grows although nobody judges it")
	}
}

func mustPatch(ctx context.Context, t *testing.T, object client.Object, patch string) {
	t.Helper()
	if err := cluster.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Errorf("patch %T %s with %s: %v", object, object.GetName(), patch, err)
	}
}

// mustDelete deletes an object and waits until it is gone.
func mustDelete(ctx context.Context, t *testing.T, object client.Object) {
	t.Helper()
	if err := cluster.Delete(ctx, object); err != nil {
		t.Errorf("delete %T %s: %v", object, object.GetName(), err)
		return
	}
	mustGo(ctx, t, object)
}

// mustGo waits until an object is gone.
func mustGo(ctx context.Context, t *testing.T, object client.Object) {
	t.Helper()
	kit.Eventually(ctx, t, fmt.Sprintf("%T %s is gone", object, object.GetName()), func(ctx context.Context) error {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it can be read, deletion %v, finalizers %v: %w", object.GetDeletionTimestamp(), object.GetFinalizers(), err)
		}
		return nil
	})
}

// In an emergency the command of the chart's document takes admission away at once. The
// controller still holds the floor, and the next upgrade brings admission back.
func TestPlatformEngineerTakesAdmissionAwayInAnEmergency(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	cluster.ScaleWebhook(ctx, t, 0)
	bringBack := sync.OnceFunc(func() {
		ctx := context.WithoutCancel(ctx)
		if err := cluster.Helm("agent-sandbox", kit.ReleaseNamespace).Install(ctx, nil); err != nil {
			t.Errorf("bring admission back: %v", err)
		}
		cluster.AwaitWebhook(ctx, t)
	})
	t.Cleanup(bringBack)
	selector := documentedSelector(t)
	for _, kind := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		if err := cluster.DeleteAllOf(ctx, kind, client.MatchingLabels(selector)); err != nil {
			t.Fatal(err)
		}
	}
	kit.Eventually(ctx, t, "a Sandbox is stored that nobody judges", func(ctx context.Context) error {
		_, _, err := cluster.Apply(ctx, ns, sandboxWith("privileged", "", "securityContext: {privileged: true}"))
		return err
	})
	cluster.WaitReadyMessage(ctx, t, ns, "privileged", "privileged")
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: "privileged"}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("the privileged Sandbox has a Pod: %v", err)
	}
	bringBack()
	cluster.MustRefuse(ctx, t, ns, sandboxWith("refused", "", "securityContext: {privileged: true}")).MustName(t, "privileged")
}

// documentedSelector is the label of the command that the chart's document gives for
// an emergency.
func documentedSelector(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../charts/agent-sandbox/README.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`kubectl delete mutatingwebhookconfigurations,validatingwebhookconfigurations -l ([a-z./-]+)=([a-z-]+)\n`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the chart's document has no command for an emergency")
	}
	return map[string]string{string(found[1]): string(found[2])}
}
