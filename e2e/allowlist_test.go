// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// The platform engineer names a Service and a range in a profile: a Sandbox that picks
// it reaches these and nothing else, over TCP, and follows the Service to other Pods.
func TestProfileThatNamesAService(t *testing.T) {
	ctx := t.Context()
	tools, ns := cluster.Namespace(ctx, t), cluster.Namespace(ctx, t)
	first, second := servingPod(ctx, t, tools, "first"), servingPod(ctx, t, tools, "second")
	startPod(ctx, t, ns, "control", "sleep")
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: tools, Name: "git"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "first"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	mustCreate(ctx, t, service)
	release := cluster.Helm("agent-sandbox", kit.ReleaseNamespace)
	t.Cleanup(func() {
		if err := release.Install(context.WithoutCancel(ctx), nil); err != nil {
			t.Errorf("return to the default values: %v", err)
		}
	})
	const rule = "platform.egressProfiles.tools.rules[0]."
	err := release.Install(ctx, nil, rule+"services[0].namespace="+tools, rule+"services[0].name=git", rule+"services[0].ports={http}",
		"platform.egressProfiles.tools.rules[1].cidrs={203.0.113.0/24}", "platform.egressProfiles.tools.rules[1].ports[0].port=80",
		"platform.egressProfiles.resolving.nameservers={203.0.113.10}",
		"platform.tiers.standard.egress.allowed={none,dns-only,tools,resolving}")
	if err != nil {
		t.Fatalf("upgrade: %v", err)
	}
	cluster.MustApply(ctx, t, ns, probing("workspace", "tools", `["/bin/probe", "sleep"]`))
	cluster.WaitReady(ctx, t, ns, "workspace")
	byService := question{command: "tcp", target: service.Spec.ClusterIP + ":80"}
	questions := map[string]question{
		"the Service":                     byService,
		"the Pod behind it":               {command: "tcp", target: first},
		"another Pod beside it":           {command: "tcp", target: second},
		"a range of the profile":          {command: "tcp", target: publicAddress},
		"the metadata service":            {command: "tcp", target: metadataAddress},
		"a name, which it does not allow": {command: "dns", target: "kubernetes.default.svc.cluster.local"},
	}
	open := map[string]bool{"the Service": true, "the Pod behind it": true, "a range of the profile": true}
	for what, q := range questions {
		t.Run(what, func(t *testing.T) {
			if code := ask(ctx, t, ns, "control", q); code != connected {
				t.Fatalf("an ordinary Pod cannot reach %s (exit code %d), so the story proves nothing", what, code)
			}
			mustBe(t, ask(ctx, t, ns, "workspace", q), open[what])
		})
	}
	patch := client.MergeFrom(service.DeepCopy())
	service.Spec.Selector = map[string]string{"app": "second"}
	if err := cluster.Patch(ctx, service, patch); err != nil {
		t.Fatal(err)
	}
	waitAnswer(ctx, t, ns, question{command: "tcp", target: second}, true)
	waitAnswer(ctx, t, ns, question{command: "tcp", target: first}, false)
	waitAnswer(ctx, t, ns, byService, true)
	asksItsOwnResolver(ctx, t, ns)
}

// asksItsOwnResolver tells of a profile with resolvers of its own: a Sandbox asks these,
// which know other names than the cluster's, and reaches nothing else of their host. The
// cluster's stay closed.
func asksItsOwnResolver(ctx context.Context, t *testing.T, ns string) {
	t.Helper()
	cluster.MustApply(ctx, t, ns, probing("resolving", "resolving", `["/bin/probe", "sleep"]`))
	cluster.WaitReady(ctx, t, ns, "resolving")
	elsewhere, clusterDNS := question{command: "dns", target: "known.elsewhere.test"}, question{command: "tcp", target: "10.96.0.10:53"}
	if code := ask(ctx, t, ns, "control", elsewhere); code == connected {
		t.Fatalf("the cluster's DNS knows %s, so the story proves nothing", elsewhere.target)
	}
	if code := ask(ctx, t, ns, "control", clusterDNS); code != connected {
		t.Fatalf("an ordinary Pod cannot reach the cluster's DNS (exit code %d), so the story proves nothing", code)
	}
	mustBe(t, ask(ctx, t, ns, "resolving", elsewhere), true)
	mustBe(t, ask(ctx, t, ns, "resolving", clusterDNS), false)
	mustBe(t, ask(ctx, t, ns, "resolving", question{command: "tcp", target: publicAddress}), false)
}

// servingPod runs an ordinary Pod with its name as its label app and returns its address.
func servingPod(ctx context.Context, t *testing.T, namespace, name string) string {
	t.Helper()
	pod := ordinaryPod(namespace, name, "serve", ":8080")
	pod.Labels = map[string]string{"app": name}
	mustCreate(ctx, t, pod)
	waitPod(ctx, t, pod)
	return pod.Status.PodIP + ":8080"
}
