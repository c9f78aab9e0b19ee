// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// The platform engineer names Services, ranges, and Pods by their labels in profiles, and
// says where the node resolves names: a Sandbox that picks a profile reaches what it names,
// by the protocol that it names, and nothing else, and follows the Service to other Pods.
func TestProfilesThatNameWhatTheyAllow(t *testing.T) {
	ctx := t.Context()
	tools, ns := cluster.Namespace(ctx, t), cluster.Namespace(ctx, t)
	first, first6 := servingPod(ctx, t, tools, "first", "first")
	second, second6 := servingPod(ctx, t, tools, "second", "second")
	own, own6 := servingPod(ctx, t, ns, "own", "own")
	twin, _ := servingPod(ctx, t, ns, "twin", "first")
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: tools, Name: "git"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "first"},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)},
				{Name: "datagrams", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolUDP},
				{Name: "aside", Port: 81, TargetPort: intstr.FromInt32(8081)},
			},
		},
	}
	mustCreate(ctx, t, service)
	installProfiles(ctx, t, tools)

	byName, behind, byLabels := []string{"tools"}, []string{"tools", "selected"}, []string{"selected"}
	names := []string{"selected", "dns-only"}
	address := service.Spec.ClusterIP
	mustAnswerUnder(ctx, t, ns, []string{"tools", "selected", "dns-only", "none"}, map[string]question{
		"the Service":                          {"tcp", address + ":80", behind},
		"the Service, UDP":                     {"udp", address + ":80", behind},
		"another port of the Service":          {"tcp", address + ":81", nil},
		"the Pod behind it":                    {"tcp", first, behind},
		"the Pod behind it, UDP":               {"udp", first, behind},
		"the Pod behind it, IPv6":              {"tcp", first6, behind},
		"the Pod behind it, IPv6, UDP":         {"udp", first6, behind},
		"another port of that Pod":             {"tcp", beside(first), nil},
		"another port of that Pod, IPv6":       {"tcp", beside(first6), nil},
		"another Pod beside it":                {"tcp", second, nil},
		"another Pod beside it, UDP":           {"udp", second, nil},
		"another Pod beside it, IPv6":          {"tcp", second6, nil},
		"a Pod with its labels elsewhere":      {"tcp", twin, nil},
		"a Pod with its labels elsewhere, UDP": {"udp", twin, nil},
		"a Pod of its own namespace":           {"tcp", own, byLabels},
		"a Pod of its own namespace, UDP":      {"udp", own, nil},
		"a Pod of its own namespace, IPv6":     {"tcp", own6, byLabels},
		"a range of the profile":               {"tcp", publicAddress, byName},
		"a range of the profile, UDP":          {"udp", publicAddress, nil},
		"an address beside the range, IPv6":    {"tcp", publicAddress6, nil},
		"the metadata service":                 {"tcp", metadataAddress, nil},
		"the metadata service, UDP":            {"udp", metadataAddress, nil},
		"the apiserver's Service":              {"tcp", apiserverService, nil},
		"a name, UDP":                          {"dns", clusterName, names},
		"a name, TCP":                          {"dnstcp", clusterName, names},
		"a name, at the node's resolver, UDP":  {"dns", "world.test" + atNode, names},
		"a name, at the node's resolver, TCP":  {"dnstcp", "world.test" + atNode, names},
		"a name, at a resolver of the world":   {"dns", "known.elsewhere.test" + atWorld, nil},
	})

	patch := client.MergeFrom(service.DeepCopy())
	service.Spec.Selector = map[string]string{"app": "second"}
	if err := cluster.Patch(ctx, service, patch); err != nil {
		t.Fatal(err)
	}
	follower := client.ObjectKey{Namespace: ns, Name: "workspace-tools"}
	for _, command := range []string{"tcp", "udp"} {
		waitAnswer(ctx, t, follower, question{command: command, target: second}, true)
		waitAnswer(ctx, t, follower, question{command: command, target: first}, false)
		waitAnswer(ctx, t, follower, question{command: command, target: address + ":80"}, true)
	}
	asksItsOwnResolver(ctx, t, ns)
}

// installProfiles upgrades the release to values with profiles of each kind of rule, until
// the story ends.
func installProfiles(ctx context.Context, t *testing.T, tools string) {
	t.Helper()
	release := cluster.Helm("agent-sandbox", kit.ReleaseNamespace)
	t.Cleanup(func() {
		if err := release.Install(context.WithoutCancel(ctx), nil); err != nil {
			t.Errorf("return to the default values: %v", err)
		}
	})
	const named, selected = "platform.egressProfiles.tools.rules", "platform.egressProfiles.selected.rules"
	err := release.Install(ctx, nil,
		named+"[0].services[0].namespace="+tools, named+"[0].services[0].name=git", named+"[0].services[0].ports={http,datagrams}",
		named+"[1].cidrs={203.0.113.0/24}", named+"[1].ports[0].port=80",
		selected+`[0].namespaceSelector.matchLabels.kubernetes\.io/metadata\.name=`+tools, selected+"[0].podSelector.matchLabels.app=first",
		selected+"[0].ports[0].port=8080", selected+"[0].ports[1].port=8080", selected+"[0].ports[1].protocol=UDP",
		selected+"[1].podSelector.matchLabels.app=own", selected+"[1].ports[0].port=8080",
		"platform.egressProfiles.selected.dns=true",
		"platform.egressProfiles.resolving.nameservers={203.0.113.10}",
		"platform.cluster.dnsAddresses={169.254.20.10}",
		"platform.tiers.standard.egress.allowed={none,dns-only,tools,selected,resolving}")
	if err != nil {
		t.Fatalf("upgrade: %v", err)
	}
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
	waitAnswer(ctx, t, client.ObjectKey{Namespace: ns, Name: "control"}, clusterDNS, true) // or the story proves nothing
	waitAnswer(ctx, t, client.ObjectKey{Namespace: ns, Name: "resolving"}, elsewhere, true)
	mustBe(t, ask(ctx, t, ns, "resolving", clusterDNS), false)
	mustBe(t, ask(ctx, t, ns, "resolving", question{command: "tcp", target: publicAddress}), false)
}

// servingPod runs an ordinary Pod with a label app, which serves at port 8080 and aside at
// 8081, and returns the former at its IPv4 and at its IPv6 address.
func servingPod(ctx context.Context, t *testing.T, namespace, name, app string) (string, string) {
	t.Helper()
	pod := ordinaryPod(namespace, name, "serve", ":8080")
	pod.Labels = map[string]string{"app": app}
	aside := *pod.Spec.Containers[0].DeepCopy()
	aside.Name, aside.Command[2] = "aside", ":8081"
	pod.Spec.Containers = append(pod.Spec.Containers, aside)
	mustCreate(ctx, t, pod)
	waitPod(ctx, t, pod)
	return targetsOf(t, pod)
}

// beside is the other port of a serving Pod.
func beside(target string) string {
	return strings.TrimSuffix(target, "8080") + "8081"
}
