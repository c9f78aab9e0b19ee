// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// watched are the targets of code that asks all of them all the time, from its first
// instruction on. A closed one must never answer, an open one has to.
type watched struct{ open, closed []string }

// Targets that the profile public opens, and such as no profile here does, over TCP, UDP
// and as questions for names.
var (
	namesOutside = []string{"dns:world.test.", "dnstcp:world.test."}
	hostsOutside = []string{publicAddress, "udp:" + publicAddress, publicAddress6, "udp:" + publicAddress6}
	outside      = slices.Concat(hostsOutside, namesOutside)
	metadata     = []string{metadataAddress, "udp:" + metadataAddress, metadataAddress6, "udp:" + metadataAddress6}
)

// inside are the metadata service and a neighbour, for whom a Pod is made.
func inside(ctx context.Context, t *testing.T, ns string) []string {
	t.Helper()
	neighbour, neighbour6 := targetsOf(t, startPod(ctx, t, ns, "neighbour", "serve", ":8080"))
	return append([]string{neighbour, "udp:" + neighbour, neighbour6, "udp:" + neighbour6}, metadata...)
}

// under are the targets of a Sandbox with a profile.
func under(profile string, inside []string) watched {
	switch profile {
	case "public":
		return watched{open: outside, closed: inside}
	case "dns-only":
		return watched{open: namesOutside, closed: slices.Concat(hostsOutside, inside)}
	default:
		return watched{closed: slices.Concat(outside, inside)}
	}
}

// command is that of a container which asks all targets.
func (w watched) command() string {
	return `["/bin/probe", "loop", "` + strings.Join(slices.Concat(w.open, w.closed), `", "`) + `"]`
}

// mustHold waits until a Pod has asked every target for a while, and wants those answered
// that are open, and no others.
func (w watched) mustHold(ctx context.Context, t *testing.T, ns, pod string) {
	t.Helper()
	log := ""
	kit.Eventually(ctx, t, "Pod "+pod+" asked every target for a while", func(ctx context.Context) error {
		var err error
		if log, err = cluster.Logs(ctx, ns, pod); err != nil {
			return err
		}
		for _, target := range w.open {
			if !strings.Contains(log, "reached "+target+" ") {
				return fmt.Errorf("nothing came from %s:\n%s", target, log)
			}
		}
		for _, target := range w.closed {
			if !strings.Contains(log, "tried "+target+":") && !strings.Contains(log, "reached "+target+" ") {
				return fmt.Errorf("nothing is known of %s:\n%s", target, log)
			}
		}
		return nil
	})
	for _, target := range w.closed {
		if strings.Contains(log, "reached "+target+" ") {
			t.Fatalf("Pod %s got through to %s:\n%s", pod, target, log)
		}
	}
}

// mustReach runs an ordinary Pod that asks the same, and has to reach it all.
func (w watched) mustReach(ctx context.Context, t *testing.T, ns string) {
	t.Helper()
	all := watched{open: slices.Concat(w.open, w.closed)}
	startPod(ctx, t, ns, "control", append([]string{"loop"}, all.open...)...)
	all.mustHold(ctx, t, ns, "control")
}

// start is a Sandbox that is watched from its first instruction on.
type start struct{ profile, runtimeClass string }

// firstStarts are fifty under the node's own runtime, half of which may reach something,
// and some under gVisor, whose network is its own.
func firstStarts() []start {
	var all []start
	for range 25 {
		all = append(all, start{profile: "none"}, start{profile: "public"})
	}
	return append(all, start{"none", "gvisor"}, start{"public", "gvisor"}, start{"dns-only", "gvisor"}, start{"public", "gvisor"})
}

// atOnce is how many of them are there at a time.
const atOnce = 18

// A Sandbox that asks from its first instruction on never reaches what its profile closes,
// fifty times in a row and under each runtime, by TCP, UDP or as a name; what the profile
// opens it reaches, and an ordinary Pod that does the same reaches everything.
func TestNoPacketLeavesInTheFirstMoments(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t, keys.Tier, "trusted")
	within := inside(ctx, t, ns)
	under("public", within).mustReach(ctx, t, ns)
	starts := firstStarts()
	manifest := func(i int) string {
		var lines []string
		if class := starts[i].runtimeClass; class != "" {
			lines = append(lines, "runtimeClassName: "+class)
		}
		return probing(fmt.Sprintf("early-%d", i), starts[i].profile, under(starts[i].profile, within).command(), lines...)
	}
	for wave := 0; wave < len(starts); wave += atOnce {
		last := min(wave+atOnce, len(starts))
		for i := wave; i < last; i++ {
			cluster.MustApply(ctx, t, ns, manifest(i))
		}
		for i := wave; i < last; i++ {
			under(starts[i].profile, within).mustHold(ctx, t, ns, fmt.Sprintf("early-%d", i))
			if err := cluster.Delete(ctx, kit.Object(t, ns, manifest(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// asksAfterChange is how many questions to one target may be answered once the Pod wears
// the label of its new profile: those that come before the network has heard of it.
const asksAfterChange = 10

// A change of the profile closes what it no longer allows, a policy that an administrator
// deletes comes back, and in between code that tries all the time reaches nothing that was
// closed, nor anything again that a change has closed. Not even a packet leaves: to what no
// profile here opens in all that time, and to what a change closes from then on.
func TestProfileThatChangesOrIsTakenAway(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	within := inside(ctx, t, ns)
	first := under("public", within)
	first.mustReach(ctx, t, ns)
	apply := func(profile string) {
		cluster.MustApply(ctx, t, ns, probing("workspace", profile, first.command()))
	}
	apply("public")
	cluster.WaitReady(ctx, t, ns, "workspace")
	packets := kit.CountPackets(ctx, t, leaving(cluster.PodOf(ctx, t, ns, "workspace"), within))
	first.mustHold(ctx, t, ns, "workspace")

	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: isolation.ProfileName("public")}}
	if err := cluster.Delete(ctx, policy); err != nil {
		t.Fatal(err)
	}
	mustBe(t, ask(ctx, t, ns, "workspace", questionOf(metadataAddress)), false)
	workspace := client.ObjectKey{Namespace: ns, Name: "workspace"}
	waitAnswer(ctx, t, workspace, questionOf(publicAddress), true)

	for _, change := range []struct{ profile, closes string }{{"none", toAnything}, {"public", ""}, {"dns-only", toOutside}} {
		apply(change.profile)
		waitProfile(ctx, t, ns, change.profile)
		now := under(change.profile, within)
		now.closed = slices.DeleteFunc(slices.Clone(now.closed), func(target string) bool { return !slices.Contains(outside, target) })
		now.mustCloseSoon(ctx, t, workspace)
		now.wait(ctx, t, workspace)
		before := packets.Of(ctx, t, toOutside)
		if change.closes == "" {
			kit.Eventually(ctx, t, "packets leave and are counted", func(ctx context.Context) error {
				if packets.Of(ctx, t, toOutside) == before {
					return errors.New("none was counted")
				}
				return nil
			})
			continue
		}
		before = packets.Of(ctx, t, change.closes)
		now.mustStayClosed(ctx, t, workspace)
		if left := packets.Of(ctx, t, change.closes) - before; left != 0 {
			t.Errorf("%d packets left for %s after profile %s had closed it", left, change.closes, change.profile)
		}
	}
	if left := packets.Of(ctx, t, toInside); left != 0 {
		t.Errorf("%d packets left for what no profile opens", left)
	}
	log := watched{}.wait(ctx, t, workspace)
	for _, target := range within {
		if strings.Contains(log, "reached "+target+" ") {
			t.Errorf("the Sandbox got through to %s:\n%s", target, log)
		}
	}
}

// What packets of a Pod are for.
const (
	toAnything, toOutside, toInside = "anything", "outside", "inside"
)

// leaving are the packets of a Pod that the node sends on, by what they are for. Those by which neighbours on one link
// look for each other's addresses are none: nobody judges them, and they carry nothing.
func leaving(pod *corev1.Pod, inside []string) map[string][]string {
	conditions := map[string][]string{}
	for i, family := range []string{"ip", "ip6"} {
		from := fmt.Sprintf("%s saddr %s meta l4proto { tcp, udp }", family, pod.Status.PodIPs[i].IP)
		conditions[toAnything] = append(conditions[toAnything], from)
		for name, targets := range map[string][]string{toOutside: hostsOutside, toInside: inside} {
			for _, target := range targets {
				host, _, err := net.SplitHostPort(questionOf(target).target)
				condition := fmt.Sprintf("%s %s daddr %s", from, family, host)
				if err == nil && strings.Contains(host, ":") == (family == "ip6") && !slices.Contains(conditions[name], condition) {
					conditions[name] = append(conditions[name], condition)
				}
			}
		}
	}
	return conditions
}

// questionOf is what a probe is asked to ask a target once.
func questionOf(target string) question {
	for _, command := range []string{"udp", "dns", "dnstcp"} {
		if rest, is := strings.CutPrefix(target, command+":"); is {
			return question{command: command, target: rest}
		}
	}
	return question{command: "tcp", target: target}
}

// waitProfile waits until the Pod of the Sandbox workspace wears the label of a profile.
func waitProfile(ctx context.Context, t *testing.T, ns, profile string) {
	t.Helper()
	kit.Eventually(ctx, t, "the Pod is under profile "+profile, func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: "workspace"}, pod); err != nil {
			return err
		}
		if got := pod.Labels[keys.EgressProfile]; got != profile {
			return fmt.Errorf("it is under %q", got)
		}
		return nil
	})
}

// mustCloseSoon wants no answer from what is closed after a few rounds of questions, and
// then ends the connections that were open before.
func (w watched) mustCloseSoon(ctx context.Context, t *testing.T, sandbox client.ObjectKey) {
	t.Helper()
	for round := 0; len(w.closed) > 0; round++ {
		codes := answers(ctx, t, sandbox, w.closed)
		if !slices.Contains(slices.Collect(maps.Values(codes)), connected) {
			kit.EndConnections(ctx, t, cluster.PodOf(ctx, t, sandbox.Namespace, sandbox.Name))
			return
		}
		if round == asksAfterChange {
			t.Fatalf("after %d rounds of questions there still are answers: %v", round, codes)
		}
	}
}

// mustStayClosed wants no answer any more from what is closed, neither for the code that
// tries all the time nor for another in the Sandbox, while what is open answers.
func (w watched) mustStayClosed(ctx context.Context, t *testing.T, sandbox client.ObjectKey) {
	t.Helper()
	before := w.wait(ctx, t, sandbox)
	for target, code := range answers(ctx, t, sandbox, w.closed) {
		t.Run(target+" is closed", func(t *testing.T) { mustBe(t, code, false) })
	}
	after := w.wait(ctx, t, sandbox)
	for _, target := range w.closed {
		if again := strings.Count(after, "reached "+target+" ") - strings.Count(before, "reached "+target+" "); again != 0 {
			t.Errorf("%s answered %d times after it was closed:\n%s", target, again, after)
		}
	}
}

// wait waits until the code in a Sandbox, or an ordinary Pod, says that it reaches what is
// open, and reaches what is closed no more, and returns all that it said.
func (w watched) wait(ctx context.Context, t *testing.T, pod client.ObjectKey) string {
	t.Helper()
	log := ""
	kit.Eventually(ctx, t, "the code in "+pod.Name+" says what it reaches", func(ctx context.Context) error {
		var err error
		if log, err = cluster.Logs(ctx, pod.Namespace, pod.Name); err != nil {
			return err
		}
		reached := func(target string) bool {
			return strings.Count(log, "reached "+target+" ") > strings.Count(log, "lost "+target+" ")
		}
		for _, target := range w.open {
			if !reached(target) {
				return fmt.Errorf("it does not reach %s:\n%s", target, log)
			}
		}
		for _, target := range w.closed {
			if reached(target) {
				return fmt.Errorf("it reaches %s:\n%s", target, log)
			}
		}
		return nil
	})
	return log
}

// refusedDeletions is how often a tenant tries to delete a NetworkPolicy.
const refusedDeletions = 20

// mustKeep lets a tenant try to delete a NetworkPolicy of the controllers, again and
// again, and wants it there as it was.
func mustKeep(ctx context.Context, t *testing.T, tenant client.Client, ns, name string) {
	t.Helper()
	before, after := &networkingv1.NetworkPolicy{}, &networkingv1.NetworkPolicy{}
	key := client.ObjectKey{Namespace: ns, Name: name}
	if err := cluster.Get(ctx, key, before); err != nil {
		t.Fatal(err)
	}
	for i := range refusedDeletions {
		if err := tenant.Delete(ctx, before.DeepCopy()); !refusedBy(err, "managed-network-policy") {
			t.Fatalf("attempt %d to delete NetworkPolicy %s ended with %v, want it refused", i+1, name, err)
		}
	}
	if err := cluster.Get(ctx, key, after); err != nil || after.UID != before.UID || after.Generation != before.Generation {
		t.Errorf("NetworkPolicy %s was %s, generation %d, and is %s, generation %d: %v", name, before.UID, before.Generation, after.UID, after.Generation, err)
	}
}
