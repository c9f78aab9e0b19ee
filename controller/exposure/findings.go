// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// mostPeers is how many peers a finding lists: whoever opens a hole must not be able to make
// it too long to be told.
const mostPeers = 5

// Finding is what one NetworkPolicy opens for Pods of Sandboxes in one direction, beyond
// what the platform's own policies open for them.
type Finding struct {
	// Policy is the name of the policy that makes the hole.
	Policy string
	// Direction is Ingress or Egress.
	Direction networkingv1.PolicyType
	// Peers say in words what it opens, in the order of its rules.
	Peers []string
	// Pods are the names of the Pods for which it does, sorted; at least one.
	Pods []string
}

// Note says in a sentence, whose subject is the policy, what is open and what to do.
func (f Finding) Note() string {
	return fmt.Sprintf("lets %d Pods of Sandboxes, such as %s, %s: change its podSelector, or delete it", len(f.Pods), f.Pods[0], f.Opens())
}

// Opens says what the policy lets the Pods do, whichever these are.
func (f Finding) Opens() string {
	direction := "connect to"
	if f.Direction == networkingv1.PolicyTypeIngress {
		direction = "be reached from"
	}
	return fmt.Sprintf("%s %s, which their egress profile or template does not", direction, f.peers())
}

// peers lists what is opened, as far as it fits into a note.
func (f Finding) peers() string {
	var listed []string
	for _, peer := range f.Peers[:min(len(f.Peers), mostPeers)] {
		listed = append(listed, clip.Part(peer))
	}
	text := strings.Join(listed, ", ")
	if more := len(f.Peers) - mostPeers; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Find compares the NetworkPolicies of one namespace, ours and others', with the Pods of
// Sandboxes there. It is pure, and its findings are sorted by policy and direction. Pods
// with the same labels are compared once.
func Find(pods []corev1.Pod, policies []networkingv1.NetworkPolicy) []Finding {
	type key struct {
		policy    string
		direction networkingv1.PolicyType
	}
	known := map[string][]isolation.Hole{}
	found := map[key]*Finding{}
	for i := range pods {
		set := labels.Set(pods[i].Labels).String()
		holes, seen := known[set]
		if !seen {
			holes = isolation.Holes(pods[i].Labels, policies)
			known[set] = holes
		}
		counted := map[key]bool{}
		for _, hole := range holes {
			k := key{hole.Policy, hole.Direction}
			if found[k] == nil {
				found[k] = &Finding{Policy: hole.Policy, Direction: hole.Direction}
			}
			if !slices.Contains(found[k].Peers, hole.Peer) {
				found[k].Peers = append(found[k].Peers, hole.Peer)
			}
			if !counted[k] {
				counted[k] = true
				found[k].Pods = append(found[k].Pods, pods[i].Name)
			}
		}
	}
	var sorted []Finding
	for _, f := range found {
		slices.Sort(f.Pods)
		sorted = append(sorted, *f)
	}
	slices.SortFunc(sorted, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Direction, b.Direction))
	})
	return sorted
}
