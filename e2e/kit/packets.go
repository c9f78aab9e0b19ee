// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const (
	// judgedChain is where the test cluster queues first packets for who judges them.
	judgedChain = "AGENT-SANDBOX-POLICY"
	// countingTable is the table of nftables in which stories count.
	countingTable = "inet agent-sandbox-story"
)

// Unenforced lets everything pass that NetworkPolicies judge, until the story ends. It
// works on a node that is this machine, of the test cluster.
func Unenforced(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, iptables := range []string{"iptables", "ip6tables"} {
		change := func(ctx context.Context, how string) error {
			_, err := onNode(ctx, "", iptables, "-w", how, judgedChain, "-j", "ACCEPT")
			return err
		}
		if err := change(ctx, "-I"); err != nil {
			t.Fatalf("stop enforcing NetworkPolicies: %v", err)
		}
		t.Cleanup(func() {
			if err := change(context.WithoutCancel(ctx), "-D"); err != nil {
				t.Errorf("enforce NetworkPolicies again: %v", err)
			}
		})
	}
}

// EndConnections makes the node forget the connections of a Pod, TCP or not: who judges
// first packets only would let them live on, and any later one between the same two ports
// with them. It works on a node that is this machine.
func EndConnections(ctx context.Context, t *testing.T, pod *corev1.Pod) {
	t.Helper()
	for _, address := range pod.Status.PodIPs {
		family := "ipv4"
		if strings.Contains(address.IP, ":") {
			family = "ipv6"
		}
		_, err := onNode(ctx, "", "conntrack", "-D", "-f", family, "--orig-src", address.IP)
		if err != nil && !strings.Contains(err.Error(), "0 flow entries have been deleted") {
			t.Fatalf("end the connections of Pod %s: %v", pod.Name, err)
		}
	}
}

// Packets counts what the node sends on for Pods: behind the judgement of NetworkPolicies,
// and before their addresses are replaced.
type Packets struct{ names map[string]bool }

// CountPackets counts packets until the story ends, by name those that any of the conditions
// of nftables fits. It works on a node that is this machine.
func CountPackets(ctx context.Context, t *testing.T, conditions map[string][]string) Packets {
	t.Helper()
	p := Packets{names: map[string]bool{}}
	var counters, rules strings.Builder
	for name, fits := range conditions {
		p.names[name] = true
		fmt.Fprintf(&counters, "counter %s {}\n", name)
		for _, condition := range fits {
			fmt.Fprintf(&rules, "%s counter name %q\n", condition, name)
		}
	}
	program := fmt.Sprintf("table %s {\n%schain leaving {\ntype filter hook postrouting priority mangle; policy accept;\n%s}\n}\n",
		countingTable, counters.String(), rules.String())
	if _, err := onNode(ctx, program, "nft", "-f", "-"); err != nil {
		t.Fatalf("count packets: %v", err)
	}
	t.Cleanup(func() {
		if _, err := onNode(context.WithoutCancel(ctx), "", "nft", "delete table "+countingTable); err != nil {
			t.Errorf("count packets no more: %v", err)
		}
	})
	return p
}

// Of is how many packets there were until now under a name.
func (p Packets) Of(ctx context.Context, t *testing.T, name string) int {
	t.Helper()
	out, err := onNode(ctx, "", "nft", "list counter "+countingTable+" "+name)
	_, told, found := strings.Cut(out, "packets ")
	count := 0
	if _, scanErr := fmt.Sscan(told, &count); err != nil || !found || scanErr != nil || !p.names[name] {
		t.Fatalf("count the packets %q: %q: %v", name, out, errors.Join(err, scanErr))
	}
	return count
}

// onNode runs a program on the node and returns what it printed.
func onNode(ctx context.Context, input, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...) //nolint:gosec // The stories say which.
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s: run this story as root where the node is", program, err, out)
	}
	return string(out), nil
}
