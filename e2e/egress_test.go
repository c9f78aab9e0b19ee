// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// question is what a probe asks of the network.
type question struct {
	command, target string
	// open are the profiles under which there is an answer.
	open []string
}

// Under each egress profile a Sandbox reaches what the profile says and nothing else,
// while an ordinary Pod beside it reaches everything.
func TestEgressProfiles(t *testing.T) { //nolint:tparallel // It has the machine to itself; its profiles are asked side by side.
	ctx := t.Context()
	ns, foreign := cluster.Namespace(ctx, t), cluster.Namespace(ctx, t)
	startPod(ctx, t, ns, "control", "sleep")
	neighbour, neighbour6 := targetsOf(t, startPod(ctx, t, ns, "neighbour", "serve", ":8080"))
	other, other6 := targetsOf(t, startPod(ctx, t, foreign, "other", "serve", ":8080"))
	apiserver, kubelet := nodeAddresses(ctx, t)
	dns, public := []string{"dns-only", "public"}, []string{"public"}
	questions := map[string]question{
		"a public address":                {"tcp", publicAddress, public},
		"a public address, UDP":           {"udp", publicAddress, public},
		"a public address, IPv6":          {"tcp", publicAddress6, public},
		"a public address, IPv6, UDP":     {"udp", publicAddress6, public},
		"the metadata service, IPv6":      {"tcp", metadataAddress6, nil},
		"the metadata service, IPv6, UDP": {"udp", metadataAddress6, nil},
		"the kubelet, IPv6":               {"tcp", gateway6 + ":10250", nil},
		"the apiserver, IPv6":             {"tcp", gateway6 + ":6443", nil},
		"another tenant's Pod, IPv6":      {"tcp", other6, nil},
		"a neighbour, IPv6":               {"tcp", neighbour6, nil},
		"a neighbour, IPv6, UDP":          {"udp", neighbour6, nil},
		"the metadata service":            {"tcp", metadataAddress, nil},
		"the metadata service, UDP":       {"udp", metadataAddress, nil},
		"the apiserver's Service":         {"tcp", "10.96.0.1:443", nil},
		"the apiserver's address":         {"tcp", apiserver, nil},
		"the kubelet":                     {"tcp", kubelet, nil},
		"another tenant's Pod":            {"tcp", other, nil},
		"another tenant's Pod, UDP":       {"udp", other, nil},
		"a neighbour":                     {"tcp", neighbour, nil},
		"a neighbour, UDP":                {"udp", neighbour, nil},
		"a name of the cluster, UDP":      {"dns", "kubernetes.default.svc.cluster.local", dns},
		"a name of the world, UDP":        {"dns", "world.test", dns},
		"the cluster's DNS, TCP":          {"tcp", "10.96.0.10:53", dns},
		"the DNS server, beside its port": {"tcp", dnsPod(ctx, t) + ":8181", nil},
	}
	for what, q := range questions {
		if code := ask(ctx, t, ns, "control", q); code != connected {
			t.Fatalf("an ordinary Pod cannot reach %s (%s %s, exit code %d), so the story proves nothing", what, q.command, q.target, code)
		}
	}
	for _, profile := range []string{"none", "dns-only", "public"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			cluster.MustApply(ctx, t, ns, probing("workspace-"+profile, profile, `["/bin/probe", "sleep"]`))
			cluster.WaitReady(ctx, t, ns, "workspace-"+profile)
			for what, q := range questions {
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					code := ask(ctx, t, ns, "workspace-"+profile, q)
					mustBe(t, code, strings.Contains(" "+strings.Join(q.open, " ")+" ", " "+profile+" "))
				})
			}
		})
	}
}

// Only the router reaches a Sandbox: not a Pod of another namespace that wears its
// labels.
func TestNobodyPassesForTheRouter(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns, foreign := cluster.Namespace(ctx, t), cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, probing("workspace", "public", `["/bin/probe", "serve", ":8080"]`))
	sandbox := cluster.WaitReady(ctx, t, ns, "workspace")
	target := question{command: "tcp", target: sandbox.Status.PodIPs[0] + ":8080"}
	router := map[string]string{"app": "sandbox-router"}
	labelledPod(ctx, t, kit.ReleaseNamespace, router)
	labelledPod(ctx, t, foreign, router)
	if code := ask(ctx, t, kit.ReleaseNamespace, "story-router", target); code != connected {
		t.Fatalf("the router's connection ended with %d, so the story proves nothing", code)
	}
	mustBe(t, ask(ctx, t, foreign, "story-router", target), false)
}

// A change of the profile closes what it no longer allows, a policy that an administrator
// deletes comes back, and in between code that tries all the time reaches nothing that was
// closed.
func TestProfileThatChangesOrIsTakenAway(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	neighbour, neighbour6 := targetsOf(t, startPod(ctx, t, ns, "neighbour", "serve", ":8080"))
	closed := []string{metadataAddress, metadataAddress6, neighbour, neighbour6}
	startPod(ctx, t, ns, "control", append([]string{"loop"}, closed...)...)
	for _, target := range closed {
		waitLog(ctx, t, ns, "control", "reached "+target+" ")
	}
	cluster.MustApply(ctx, t, ns, probing("workspace", "public", looping(closed)))
	cluster.WaitReady(ctx, t, ns, "workspace")
	public, metadata := question{command: "tcp", target: publicAddress}, question{command: "tcp", target: metadataAddress}
	waitAnswer(ctx, t, ns, public, true)

	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: isolation.ProfileName("public")}}
	if err := cluster.Delete(ctx, policy); err != nil {
		t.Fatal(err)
	}
	mustBe(t, ask(ctx, t, ns, "workspace", metadata), false)
	waitAnswer(ctx, t, ns, public, true)
	mustBe(t, ask(ctx, t, ns, "workspace", metadata), false)

	for _, profile := range []string{"none", "public", "dns-only"} {
		cluster.MustApply(ctx, t, ns, probing("workspace", profile, looping(closed)))
		waitAnswer(ctx, t, ns, public, profile == "public")
	}
	for _, target := range closed {
		waitLog(ctx, t, ns, "workspace", "tried "+target+":")
	}
	if log := waitLog(ctx, t, ns, "workspace", "tried "); strings.Contains(log, "reached ") {
		t.Errorf("the Sandbox got through:\n%s", log)
	}
}

// firstStarts is how many Sandboxes try to connect before their isolation is there.
const firstStarts, atOnce = 50, 10

// A Sandbox that connects from its first instruction on never gets through, fifty times
// in a row; an ordinary Pod that does the same does.
func TestNoPacketLeavesInTheFirstMoments(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t, keys.Tier, "trusted")
	neighbour, neighbour6 := targetsOf(t, startPod(ctx, t, ns, "neighbour", "serve", ":8080"))
	targets := []string{publicAddress, metadataAddress, neighbour, publicAddress6, metadataAddress6, neighbour6}
	startPod(ctx, t, ns, "control", append([]string{"loop"}, targets...)...)
	for _, target := range targets {
		waitLog(ctx, t, ns, "control", "reached "+target+" ")
	}
	command := looping(targets)
	for wave := 0; wave < firstStarts; wave += atOnce {
		for i := range atOnce {
			cluster.MustApply(ctx, t, ns, probing(fmt.Sprintf("early-%d", wave+i), "none", command))
		}
		for i := range atOnce {
			name := fmt.Sprintf("early-%d", wave+i)
			for _, target := range targets {
				if log := waitLog(ctx, t, ns, name, "tried "+target+":", "reached "+target+" "); strings.Contains(log, "reached ") {
					t.Fatalf("start %d of %d got through:\n%s", wave+i+1, firstStarts, log)
				}
			}
			if err := cluster.Delete(ctx, kit.Object(t, ns, probing(name, "none", command))); err != nil {
				t.Fatal(err)
			}
		}
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

// looping is the command of a container that connects from its first instruction on.
func looping(targets []string) string {
	return `["/bin/probe", "loop", "` + strings.Join(targets, `", "`) + `"]`
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

// waitAnswer waits until the Sandbox workspace gets an answer, or until it gets none.
func waitAnswer(ctx context.Context, t *testing.T, namespace string, q question, open bool) {
	t.Helper()
	kit.Eventually(ctx, t, fmt.Sprintf("%s is open: %t", q.target, open), func(ctx context.Context) error {
		if code := ask(ctx, t, namespace, "workspace", q); (code == connected) != open {
			return fmt.Errorf("the connection ended with %d", code)
		}
		return nil
	})
}

// waitLog waits until a Pod printed one of the texts and returns its log.
func waitLog(ctx context.Context, t *testing.T, namespace, pod string, texts ...string) string {
	t.Helper()
	log := ""
	kit.Eventually(ctx, t, fmt.Sprintf("Pod %s prints one of %q", pod, texts), func(ctx context.Context) error {
		var err error
		if log, err = cluster.Logs(ctx, namespace, pod); err != nil {
			return err
		}
		for _, text := range texts {
			if strings.Contains(log, text) {
				return nil
			}
		}
		return fmt.Errorf("it printed %q", log)
	})
	return log
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
