// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// question is what a probe asks of the network.
type question struct {
	command, target string
	// open are the profiles under which there is an answer.
	open []string
}

// written is the question as one of several for a probe.
func (q question) written() string {
	return q.command + ":" + q.target
}

// Names that a Sandbox may look up, and where it may ask for them besides the cluster's DNS.
const (
	clusterName = "kubernetes.default.svc.cluster.local"
	// atNode asks the resolver of the node, which is no Pod.
	atNode = "@169.254.20.10:53"
	// atWorld asks one outside, which knows more names.
	atWorld = "@203.0.113.10:53"
)

// Under each egress profile a Sandbox reaches what the profile says and nothing else,
// while an ordinary Pod beside it reaches everything.
func TestEgressProfiles(t *testing.T) {
	ctx := t.Context()
	ns, foreign := cluster.Namespace(ctx, t), cluster.Namespace(ctx, t)
	neighbour, neighbour6 := targetsOf(t, startPod(ctx, t, ns, "neighbour", "serve", ":8080"))
	other, other6 := targetsOf(t, startPod(ctx, t, foreign, "other", "serve", ":8080"))
	apiserver, kubelet := nodeAddresses(ctx, t)
	datagrams, datagrams6 := datagramsAtNode(ctx, t, foreign, kubelet)
	waitAnswer(ctx, t, client.ObjectKey{Namespace: foreign, Name: "other"}, question{command: "udp", target: apiserverService}, true) // they are led there
	dns, public := []string{"dns-only", "public"}, []string{"public"}
	mustAnswerUnder(ctx, t, ns, []string{"none", "dns-only", "public"}, map[string]question{
		"a public address":                    {"tcp", publicAddress, public},
		"a public address, UDP":               {"udp", publicAddress, public},
		"a public address, IPv6":              {"tcp", publicAddress6, public},
		"a public address, IPv6, UDP":         {"udp", publicAddress6, public},
		"the metadata service, IPv6":          {"tcp", metadataAddress6, nil},
		"the metadata service, IPv6, UDP":     {"udp", metadataAddress6, nil},
		"the kubelet, IPv6":                   {"tcp", gateway6 + ":10250", nil},
		"the apiserver, IPv6":                 {"tcp", gateway6 + ":6443", nil},
		"another tenant's Pod, IPv6":          {"tcp", other6, nil},
		"another tenant's Pod, IPv6, UDP":     {"udp", other6, nil},
		"a neighbour, IPv6":                   {"tcp", neighbour6, nil},
		"a neighbour, IPv6, UDP":              {"udp", neighbour6, nil},
		"the metadata service":                {"tcp", metadataAddress, nil},
		"the metadata service, UDP":           {"udp", metadataAddress, nil},
		"the apiserver's Service":             {"tcp", apiserverService, nil},
		"the apiserver's address":             {"tcp", apiserver, nil},
		"the kubelet":                         {"tcp", kubelet, nil},
		"the apiserver's Service, UDP":        {"udp", apiserverService, nil},
		"the node, UDP":                       {"udp", datagrams, nil},
		"the node, IPv6, UDP":                 {"udp", datagrams6, nil},
		"another tenant's Pod":                {"tcp", other, nil},
		"another tenant's Pod, UDP":           {"udp", other, nil},
		"a neighbour":                         {"tcp", neighbour, nil},
		"a neighbour, UDP":                    {"udp", neighbour, nil},
		"a name of the cluster, UDP":          {"dns", clusterName, dns},
		"a name of the cluster, TCP":          {"dnstcp", clusterName, dns},
		"a name of the world, UDP":            {"dns", "world.test", dns},
		"a name of the world, TCP":            {"dnstcp", "world.test", dns},
		"a name, at a resolver of the world":  {"dns", "known.elsewhere.test" + atWorld, public},
		"a name, at the node's resolver":      {"dns", "world.test" + atNode, nil},
		"a name, at the node's resolver, TCP": {"dnstcp", "world.test" + atNode, nil},
		"the DNS server, beside its port":     {"tcp", dnsPod(ctx, t) + ":8181", nil},
	})
}

// mustAnswerUnder asks an ordinary Pod, which has to get every answer, and a Sandbox under
// each profile, called workspace-PROFILE, which has to get those that the profile opens.
func mustAnswerUnder(ctx context.Context, t *testing.T, ns string, profiles []string, questions map[string]question) {
	t.Helper()
	startPod(ctx, t, ns, "control", "sleep")
	targets := mustAllAnswer(ctx, t, ns, questions)
	t.Run("under each profile", func(t *testing.T) {
		for _, profile := range profiles {
			t.Run(profile, func(t *testing.T) {
				t.Parallel()
				cluster.MustApply(ctx, t, ns, probing("workspace-"+profile, profile, `["/bin/probe", "sleep"]`))
				cluster.WaitReady(ctx, t, ns, "workspace-"+profile)
				var open []string
				for _, q := range questions {
					if slices.Contains(q.open, profile) {
						open = append(open, q.written())
					}
				}
				got := answers(ctx, t, client.ObjectKey{Namespace: ns, Name: "workspace-" + profile}, targets, open...)
				for what, q := range questions {
					t.Run(what, func(t *testing.T) { mustBe(t, got[q.written()], slices.Contains(q.open, profile)) })
				}
			})
		}
	})
}

// mustAllAnswer wants an answer to every question that the ordinary Pod control asks, and
// returns the questions as a probe takes them.
func mustAllAnswer(ctx context.Context, t *testing.T, ns string, questions map[string]question) []string {
	t.Helper()
	targets := make([]string, 0, len(questions))
	for _, q := range questions {
		targets = append(targets, q.written())
	}
	for what, code := range answers(ctx, t, client.ObjectKey{Namespace: ns, Name: "control"}, targets, targets...) {
		if code != connected {
			t.Fatalf("an ordinary Pod gets no answer from %s (exit code %d), so the story proves nothing", what, code)
		}
	}
	return targets
}

// answers are the exit codes that a Pod gets from targets, each with its command, when it
// asks all of them at the same time. It asks again while one that is open has no answer, as
// packets are lost on a busy machine; an answer that any target ever gave stays.
func answers(ctx context.Context, t *testing.T, pod client.ObjectKey, targets []string, open ...string) map[string]int {
	t.Helper()
	codes := map[string]int{}
	kit.Eventually(ctx, t, fmt.Sprintf("Pod %s tells of every target", pod.Name), func(ctx context.Context) error {
		out, code, err := cluster.Exec(ctx, pod.Namespace, pod.Name, append([]string{"/bin/probe", "ask", "-timeout", "3s"}, targets...)...)
		if err != nil || code != 0 {
			return fmt.Errorf("it ended with %d: %w: %s", code, err, out)
		}
		told := map[string]int{}
		for line := range strings.Lines(out) {
			var target string
			if _, err := fmt.Sscan(line, &code, &target); err != nil {
				return fmt.Errorf("it printed %q: %w", line, err)
			}
			told[target] = code
		}
		if len(told) != len(targets) {
			return fmt.Errorf("it told of %d of %d: %s", len(told), len(targets), out)
		}
		for target, code := range told {
			if before, asked := codes[target]; !asked || before != connected {
				codes[target] = code
			}
		}
		for _, target := range open {
			if codes[target] == timedOut {
				return fmt.Errorf("no answer from %s", target)
			}
		}
		return nil
	})
	return codes
}

// Only the router reaches a Sandbox: not a Pod of another namespace that wears its labels, nor
// one beside the Sandbox, by either family of addresses.
func TestNobodyPassesForTheRouter(t *testing.T) { //nolint:tparallel // Its Pods serve all its questions.
	t.Parallel()
	ctx := t.Context()
	ns, foreign := cluster.Namespace(ctx, t), cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, probing("workspace", "public", `["/bin/probe", "serve", ":8080"]`))
	cluster.WaitReady(ctx, t, ns, "workspace")
	target, target6 := targetsOf(t, cluster.PodOf(ctx, t, ns, "workspace"))
	router := map[string]string{"app": "sandbox-router"}
	labelledPod(ctx, t, kit.ReleaseNamespace, router)
	labelledPod(ctx, t, foreign, router)
	labelledPod(ctx, t, ns, router)
	for what, q := range map[string]question{
		"TCP": {command: "tcp", target: target}, "UDP": {command: "udp", target: target},
		"IPv6, TCP": {command: "tcp", target: target6}, "IPv6, UDP": {command: "udp", target: target6},
	} {
		t.Run(what, func(t *testing.T) {
			waitAnswer(ctx, t, client.ObjectKey{Namespace: kit.ReleaseNamespace, Name: "story-router"}, q, true) // or the story proves nothing
			mustBe(t, ask(ctx, t, foreign, "story-router", q), false)
			mustBe(t, ask(ctx, t, ns, "story-router", q), false)
		})
	}
}

// targetsOf are the port 8080 of a Pod by its IPv4 and by its IPv6 address.
func targetsOf(t *testing.T, pod *corev1.Pod) (string, string) {
	t.Helper()
	if len(pod.Status.PodIPs) != 2 {
		t.Fatalf("Pod %s has the addresses %v, want one of each family", pod.Name, pod.Status.PodIPs)
	}
	return net.JoinHostPort(pod.Status.PodIPs[0].IP, "8080"), net.JoinHostPort(pod.Status.PodIPs[1].IP, "8080")
}

// probing is a Sandbox that runs the probe under an egress profile, with more lines of
// its Pod if need be.
func probing(name, profile, command string, lines ...string) string {
	return strings.NewReplacer("python:3.12-slim", probeImage, `["sh", "-c", "sleep infinity"]`, command,
		"metadata: {name: "+name+"}", "metadata: {name: "+name+", annotations: {"+keys.EgressProfile+": "+profile+"}}").
		Replace(sandboxWith(name, strings.Join(append(lines, "automountServiceAccountToken: false", "terminationGracePeriodSeconds: 1"), "\n"), ""))
}

func ask(ctx context.Context, t *testing.T, namespace, pod string, q question) int {
	t.Helper()
	_, code := cluster.Ask(ctx, t, client.ObjectKey{Namespace: namespace, Name: pod}, "/bin/probe", q.command, q.target, "-timeout", "3s")
	return code
}

// mustBe wants an answer, or else a connection that was refused or dropped: any other
// code is a probe that failed by itself.
func mustBe(t *testing.T, code int, open bool) {
	t.Helper()
	if blocked := code == refused || code == timedOut; open && code != connected || !open && !blocked {
		t.Errorf("the connection ended with %d, want it open: %t", code, open)
	}
}

// waitAnswer waits until a Pod gets an answer, or until it gets none.
func waitAnswer(ctx context.Context, t *testing.T, sandbox client.ObjectKey, q question, open bool) {
	t.Helper()
	kit.Eventually(ctx, t, fmt.Sprintf("%s is open: %t", q.target, open), func(ctx context.Context) error {
		if code := ask(ctx, t, sandbox.Namespace, sandbox.Name, q); (code == connected) != open {
			return fmt.Errorf("the connection ended with %d", code)
		}
		return nil
	})
}

// nodeAddresses are those of the apiserver and of a kubelet, beside every Service.
func nodeAddresses(ctx context.Context, t *testing.T) (apiserver, kubelet string) {
	t.Helper()
	var slice discoveryv1.EndpointSlice
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &slice); err != nil {
		t.Fatal(err)
	}
	var nodes corev1.NodeList
	if err := cluster.List(ctx, &nodes); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s:%d", slice.Endpoints[0].Addresses[0], *slice.Ports[0].Port), nodes.Items[0].Status.Addresses[0].Address + ":10250"
}

// datagramsAtNode runs Pods in the network of the node that answer datagrams at addresses of
// it, the one where the kubelet is and one of IPv6, and leads the datagrams for the apiserver's
// Service to the first, whose node is that of the apiserver: nothing of the cluster itself
// answers any.
func datagramsAtNode(ctx context.Context, t *testing.T, namespace, kubelet string) (target, target6 string) {
	t.Helper()
	const port = 18443
	address, _, err := net.SplitHostPort(kubelet)
	if err != nil {
		t.Fatal(err)
	}
	target, target6 = fmt.Sprintf("%s:%d", address, port), fmt.Sprintf("%s:%d", gateway6, port)
	labels := map[string]string{"app": "datagrams"}
	for name, at := range map[string]string{"datagrams": target, "datagrams6": target6} {
		pod := ordinaryPod(namespace, name, "serve", at)
		pod.Spec.HostNetwork = true
		if at == target {
			pod.Labels = labels
		}
		mustCreate(ctx, t, pod)
		waitPod(ctx, t, pod)
	}
	host, _, _ := net.SplitHostPort(apiserverService)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "datagrams"}}
	service.Spec.Selector, service.Spec.ExternalIPs = labels, []string{host}
	service.Spec.Ports = []corev1.ServicePort{{Protocol: corev1.ProtocolUDP, Port: 443, TargetPort: intstr.FromInt32(port)}}
	mustCreate(ctx, t, service)
	return target, target6
}

func dnsPod(ctx context.Context, t *testing.T) string {
	t.Helper()
	var pods corev1.PodList
	if err := cluster.List(ctx, &pods, client.InNamespace("kube-system"), client.MatchingLabels{"k8s-app": "kube-dns"}); err != nil {
		t.Fatal(err)
	}
	return pods.Items[0].Status.PodIP
}

// labelledPod runs an ordinary Pod with labels until the story ends.
func labelledPod(ctx context.Context, t *testing.T, namespace string, labels map[string]string) {
	t.Helper()
	pod := ordinaryPod(namespace, "story-router", "sleep")
	pod.Labels = labels
	mustCreate(ctx, t, pod)
	waitPod(ctx, t, pod)
}
