// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Hole is what a NetworkPolicy of somebody else opens for the Pod of a Sandbox beyond
// what ours open: policies add up, so that none of ours can take it back.
type Hole struct {
	// Policy is the name of the policy that makes it.
	Policy string
	// Direction is Ingress or Egress.
	Direction networkingv1.PolicyType
	// Peer says in words what is opened.
	Peer string
}

// Holes are what the policies of a namespace open for a Pod with these labels beyond
// what those among them open that the controllers keep. A peer that is selected by
// labels counts as covered only by one with the same selectors.
func Holes(podLabels map[string]string, policies []networkingv1.NetworkPolicy) []Hole {
	var ours opened
	var others []networkingv1.NetworkPolicy
	for i := range policies {
		switch {
		case !selects(&policies[i], podLabels):
		case policies[i].Labels[keys.ManagedBy] == Manager:
			ours.add(&policies[i])
		default:
			others = append(others, policies[i])
		}
	}
	var holes []Hole
	for i := range others {
		var theirs opened
		theirs.add(&others[i])
		holes = append(holes, beyond(others[i].Name, networkingv1.PolicyTypeEgress, theirs.egress, ours.egress)...)
		holes = append(holes, beyond(others[i].Name, networkingv1.PolicyTypeIngress, theirs.ingress, ours.ingress)...)
	}
	return holes
}

func selects(policy *networkingv1.NetworkPolicy, podLabels map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	return err == nil && selector.Matches(labels.Set(podLabels))
}

// rule is a rule of either direction. Without peers it means everyone, without ports
// all of them.
type rule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

// opened are the rules of some policies, which add up.
type opened struct{ ingress, egress []rule }

func (o *opened) add(policy *networkingv1.NetworkPolicy) {
	types := policy.Spec.PolicyTypes
	if len(types) == 0 || slices.Contains(types, networkingv1.PolicyTypeIngress) {
		for _, r := range policy.Spec.Ingress {
			o.ingress = append(o.ingress, rule{r.From, r.Ports})
		}
	}
	if len(types) == 0 || slices.Contains(types, networkingv1.PolicyTypeEgress) {
		for _, r := range policy.Spec.Egress {
			o.egress = append(o.egress, rule{r.To, r.Ports})
		}
	}
}

// beyond are the peers of their rules that none of ours covers.
func beyond(policy string, direction networkingv1.PolicyType, theirs, ours []rule) []Hole {
	var holes []Hole
	for _, r := range theirs {
		if len(r.peers) == 0 && !coveredWhole(r, ours) {
			holes = append(holes, Hole{policy, direction, "everything"})
		}
		for i := range r.peers {
			if !covered(&r.peers[i], r.ports, ours) {
				holes = append(holes, Hole{policy, direction, describe(&r.peers[i])})
			}
		}
	}
	return holes
}

func coveredWhole(r rule, ours []rule) bool {
	return slices.ContainsFunc(ours, func(o rule) bool { return len(o.peers) == 0 && portsWithin(r.ports, o.ports) })
}

func covered(peer *networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, ours []rule) bool {
	return slices.ContainsFunc(ours, func(o rule) bool {
		if !portsWithin(ports, o.ports) {
			return false
		}
		return len(o.peers) == 0 || slices.ContainsFunc(o.peers, func(mine networkingv1.NetworkPolicyPeer) bool { return peerWithin(peer, &mine) })
	})
}

func peerWithin(peer, mine *networkingv1.NetworkPolicyPeer) bool {
	if peer.IPBlock != nil && mine.IPBlock != nil {
		return blockWithin(peer.IPBlock, mine.IPBlock)
	}
	return peer.IPBlock == nil && mine.IPBlock == nil && apiequality.Semantic.DeepEqual(peer, mine)
}

// blockWithin says whether every address of a block is one of mine. An address block
// that cannot be read is not.
func blockWithin(block, mine *networkingv1.IPBlock) bool {
	inner, err := netip.ParsePrefix(block.CIDR)
	if err != nil {
		return false
	}
	outer, err := netip.ParsePrefix(mine.CIDR)
	if err != nil || !contains(outer, inner) {
		return false
	}
	for _, text := range mine.Except {
		closed, err := netip.ParsePrefix(text)
		if err != nil {
			return false
		}
		if closed.Overlaps(inner) && !exceptCovers(block.Except, closed) {
			return false
		}
	}
	return true
}

func exceptCovers(excepts []string, closed netip.Prefix) bool {
	return slices.ContainsFunc(excepts, func(text string) bool {
		except, err := netip.ParsePrefix(text)
		return err == nil && contains(except, closed)
	})
}

func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// portsWithin says whether every one of the ports is one of mine.
func portsWithin(ports, mine []networkingv1.NetworkPolicyPort) bool {
	if len(mine) == 0 {
		return true
	}
	if len(ports) == 0 {
		return false
	}
	for _, p := range ports {
		if !slices.ContainsFunc(mine, func(m networkingv1.NetworkPolicyPort) bool { return portWithin(p, m) }) {
			return false
		}
	}
	return true
}

func portWithin(port, mine networkingv1.NetworkPolicyPort) bool {
	if protocolOf(port) != protocolOf(mine) {
		return false
	}
	if mine.Port == nil {
		return true
	}
	if port.Port == nil || port.Port.Type != mine.Port.Type {
		return false
	}
	if port.Port.Type == intstr.String {
		return port.Port.StrVal == mine.Port.StrVal
	}
	return mine.Port.IntVal <= port.Port.IntVal && lastOf(port) <= lastOf(mine)
}

func protocolOf(port networkingv1.NetworkPolicyPort) corev1.Protocol {
	if port.Protocol == nil {
		return corev1.ProtocolTCP
	}
	return *port.Protocol
}

func lastOf(port networkingv1.NetworkPolicyPort) int32 {
	if port.EndPort != nil {
		return *port.EndPort
	}
	return port.Port.IntVal
}

func describe(peer *networkingv1.NetworkPolicyPeer) string {
	if peer.IPBlock != nil {
		return peer.IPBlock.CIDR
	}
	pods := "Pods"
	if peer.PodSelector != nil && (len(peer.PodSelector.MatchLabels) > 0 || len(peer.PodSelector.MatchExpressions) > 0) {
		pods = "Pods with " + metav1.FormatLabelSelector(peer.PodSelector)
	}
	switch {
	case peer.NamespaceSelector == nil:
		return pods + " of the namespace"
	case len(peer.NamespaceSelector.MatchLabels) == 0 && len(peer.NamespaceSelector.MatchExpressions) == 0:
		return pods + " of every namespace"
	default:
		return fmt.Sprintf("%s of namespaces with %s", pods, metav1.FormatLabelSelector(peer.NamespaceSelector))
	}
}
