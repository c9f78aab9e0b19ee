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

	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// finding is what one policy opens in one direction.
type finding struct {
	policy    string
	direction networkingv1.PolicyType
	// peers are what it opens, in order; pods counts the Pods of Sandboxes for which it
	// does, and example is one of them.
	peers   []string
	pods    int
	example *corev1.Pod
}

// note is what the Event says.
func (f finding) note() string {
	direction := "connect to"
	if f.direction == networkingv1.PolicyTypeIngress {
		direction = "be reached from"
	}
	return fmt.Sprintf("lets %d Pods of Sandboxes, such as %s, %s %s, which their egress profile or template does not: "+
		"change its podSelector, or delete it", f.pods, f.example.Name, direction, strings.Join(f.peers, ", "))
}

// findings compares the policies of a namespace with its Pods. Pods with the same labels
// are compared once.
func findings(pods []corev1.Pod, policies []networkingv1.NetworkPolicy) []finding {
	type key struct {
		policy    string
		direction networkingv1.PolicyType
	}
	known := map[string][]isolation.Hole{}
	found := map[key]*finding{}
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
				found[k] = &finding{policy: hole.Policy, direction: hole.Direction, example: &pods[i]}
			}
			if !slices.Contains(found[k].peers, hole.Peer) {
				found[k].peers = append(found[k].peers, hole.Peer)
			}
			if !counted[k] {
				counted[k] = true
				found[k].pods++
			}
		}
	}
	var sorted []finding
	for _, f := range found {
		sorted = append(sorted, *f)
	}
	slices.SortFunc(sorted, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.policy, b.policy), cmp.Compare(a.direction, b.direction))
	})
	return sorted
}
