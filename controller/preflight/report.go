// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// metadataAddresses are where clouds tell a Pod who it is.
var metadataAddresses = []string{"169.254.169.254:80", "[fd00:ec2::254]:80", "100.100.100.200:80", "168.63.129.16:80"}

// Findings are what the probes saw.
type Findings struct {
	// Servers are the addresses of one Pod that both probes tried, one of each family.
	Servers []string
	// Open and Denied are the answers of a Pod without a policy, and of one that a policy
	// denies everything. Again are those of another Pod without a policy, after them.
	Open, Denied, Again Answers
	// RuntimeClasses says of each class of the cluster why no Pod runs under it; empty if
	// one does.
	RuntimeClasses map[string]string
	// FromZero are classes without a node now, whose nodes come when a Pod waits for one: they
	// are not among RuntimeClasses.
	FromZero sets.Set[string]
	// Certificate is the webhook's, where cert-manager keeps it.
	Certificate Certificate
}

// Report puts the findings into words, one line a subject, and lists what makes the
// cluster unfit for the tiers of the platform, or its webhook.
func (f Findings) Report(p *config.Platform) (lines, faults []string) {
	for _, server := range f.Servers {
		line, fault := f.enforcement(server)
		lines = append(lines, line)
		if fault {
			faults = append(faults, line)
		}
	}
	lines = append(lines, f.runtimeClasses()...)
	lines = append(lines, f.metadata()...)
	for _, name := range slices.Sorted(maps.Keys(p.Tiers)) {
		line, fault := f.tier(name, p.Tiers[name].RuntimeClass)
		lines = append(lines, line)
		if fault {
			faults = append(faults, line)
		}
	}
	if line, fault := f.Certificate.line(); line != "" {
		lines = append(lines, line)
		if fault {
			faults = append(faults, line)
		}
	}
	return lines, faults
}

// enforcement says what one of the addresses tells of NetworkPolicies. A family that
// carries nothing is a fault only where none carries anything.
func (f Findings) enforcement(server string) (line string, fault bool) {
	subject := "NetworkPolicy"
	if len(f.Servers) > 1 {
		subject += " over " + familyOf(server)
	}
	open, denied := f.Open[server], f.Denied[server]
	switch {
	case !open.Ever:
		anything := slices.ContainsFunc(f.Servers, func(other string) bool { return f.Open[other].Ever })
		return subject + ": not known. Even a Pod without a policy could not reach another Pod; " +
			"look for policies of the whole cluster, or for a service mesh, that select the release's namespace.", !anything
	case denied.Last:
		return subject + ": NOT enforced. A Pod that a policy denies everything reached another Pod: " +
			"install a network that enforces NetworkPolicies, or Sandboxes reach the cluster and each other.", true
	case !f.Again[server].Ever:
		return subject + ": not known. The Pod that was asked was out of reach before the end; try again.", true
	case denied.Ever:
		return subject + ": enforced, but late. A Pod that a policy denies everything got through in its first moments; " +
			"look for an option of the network that holds a Pod's packets back until its policies are there.", false
	default:
		return subject + ": enforced. A Pod that a policy denies everything was stopped from its first attempt on.", false
	}
}

func familyOf(server string) string {
	if address, err := netip.ParseAddrPort(server); err == nil && address.Addr().Is6() {
		return "IPv6"
	}
	return "IPv4"
}

func (f Findings) runtimeClasses() []string {
	var lines []string
	for name, why := range f.RuntimeClasses {
		said := "usable."
		if why != "" {
			said = fmt.Sprintf("not usable: %s.", strings.TrimSuffix(why, "."))
		}
		lines = append(lines, fmt.Sprintf("RuntimeClass %s: %s", name, said))
	}
	for name := range f.FromZero {
		lines = append(lines, fmt.Sprintf("RuntimeClass %s: has no node now, allowed to start from zero.", name))
	}
	if len(lines) == 0 {
		return []string{"RuntimeClasses: the cluster has none. Sandboxes share the kernel of their node."}
	}
	slices.Sort(lines)
	return lines
}

func (f Findings) metadata() []string {
	var lines []string
	for _, address := range metadataAddresses {
		switch {
		case f.Denied[address].Ever:
			lines = append(lines, fmt.Sprintf("Metadata at %s: reachable even from a Pod that a policy denies everything. Close it on the nodes.", address))
		case f.Open[address].Ever:
			lines = append(lines, fmt.Sprintf("Metadata at %s: reachable from ordinary Pods; a policy closes it.", address))
		}
	}
	if len(lines) == 0 {
		lines = append(lines, "Metadata: none of the known addresses answers a Pod.")
	}
	return lines
}

func (f Findings) tier(name string, wish config.RuntimeClass) (line string, fault bool) {
	for _, class := range wish.Names() {
		if why, exists := f.RuntimeClasses[class]; exists && why == "" {
			return fmt.Sprintf("Tier %s: its Sandboxes run under RuntimeClass %s.", name, class), false
		}
		if f.FromZero.Has(class) {
			return fmt.Sprintf("Tier %s: its Sandboxes run under RuntimeClass %s, and wait for its nodes.", name, class), false
		}
	}
	switch {
	case wish.Required:
		return fmt.Sprintf("Tier %s: requires one of the RuntimeClasses %s, and none is usable: its Sandboxes cannot run.",
			name, strings.Join(wish.Names(), ", ")), true
	case len(wish.Classes) > 0:
		return fmt.Sprintf("Tier %s: prefers one of the RuntimeClasses %s, and none is usable: its Sandboxes share the kernel of their node.",
			name, strings.Join(wish.Names(), ", ")), false
	default:
		return fmt.Sprintf("Tier %s: its Sandboxes share the kernel of their node.", name), false
	}
}
