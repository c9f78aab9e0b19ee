// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
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
// what those among them open that the controllers keep. Addresses are compared one by one,
// with those of all our rules together; Pods by what their selectors demand.
func Holes(podLabels map[string]string, policies []networkingv1.NetworkPolicy) []Hole {
	var ours opened
	var others []networkingv1.NetworkPolicy
	for i := range policies {
		switch {
		case !Selects(&policies[i], podLabels):
		case Ours(&policies[i]):
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

// Selects says whether a policy is about a Pod with these labels.
func Selects(policy *networkingv1.NetworkPolicy, podLabels map[string]string) bool {
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
	if hasType(policy, networkingv1.PolicyTypeIngress) {
		for _, r := range policy.Spec.Ingress {
			o.ingress = append(o.ingress, rule{r.From, r.Ports})
		}
	}
	if hasType(policy, networkingv1.PolicyTypeEgress) {
		for _, r := range policy.Spec.Egress {
			o.egress = append(o.egress, rule{r.To, r.Ports})
		}
	}
}

// hasType says whether a policy is about that direction. One that names none is taken to
// be about both.
func hasType(policy *networkingv1.NetworkPolicy, direction networkingv1.PolicyType) bool {
	return len(policy.Spec.PolicyTypes) == 0 || slices.Contains(policy.Spec.PolicyTypes, direction)
}

// beyond are the peers of their rules that none of ours covers.
func beyond(policy string, direction networkingv1.PolicyType, theirs, ours []rule) []Hole {
	var holes []Hole
	for _, r := range theirs {
		if len(r.peers) == 0 && !coveredWhole(r, ours) {
			holes = append(holes, Hole{policy, direction, "everything"})
		}
		for i := range r.peers {
			if uncovered(&r.peers[i], r.ports, ours) != nil {
				holes = append(holes, Hole{policy, direction, describe(&r.peers[i])})
			}
		}
	}
	return holes
}

func coveredWhole(r rule, ours []rule) bool {
	return slices.ContainsFunc(ours, func(o rule) bool { return len(o.peers) == 0 && portsWithin(r.ports, o.ports) })
}

// gap is a part of a peer that nothing of ours covers. The address is the first of it;
// empty for Pods.
type gap struct{ address string }

// uncovered is what of a peer none of our rules covers on one of the ports; nil when
// they cover all of it together.
func uncovered(peer *networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, ours []rule) *gap {
	if len(ports) == 0 {
		return uncoveredOn(peer, nil, ours)
	}
	for i := range ports {
		if left := uncoveredOn(peer, ports[i:i+1], ours); left != nil {
			return left
		}
	}
	return nil
}

// uncoveredOn is uncovered for one port, or for all of them.
func uncoveredOn(peer *networkingv1.NetworkPolicyPeer, port []networkingv1.NetworkPolicyPort, ours []rule) *gap {
	var open []networkingv1.NetworkPolicyPeer
	for _, o := range ours {
		if !portsWithin(port, o.ports) {
			continue
		}
		if len(o.peers) == 0 {
			return nil
		}
		open = append(open, o.peers...)
	}
	if peer.IPBlock != nil {
		return uncoveredAddresses(peer.IPBlock, open)
	}
	if slices.ContainsFunc(open, func(mine networkingv1.NetworkPolicyPeer) bool { return podsWithin(peer, &mine) }) {
		return nil
	}
	return &gap{}
}

// uncoveredAddresses is the part of a block that is in none of the peers. A block that
// cannot be read is in none.
func uncoveredAddresses(block *networkingv1.IPBlock, open []networkingv1.NetworkPolicyPeer) *gap {
	left, readable := spansOf(block)
	if !readable {
		return &gap{}
	}
	for i := range open {
		if open[i].IPBlock == nil {
			continue
		}
		mine, readable := spansOf(open[i].IPBlock)
		for _, s := range mine {
			if readable {
				left = without(left, s)
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	return &gap{address: left[0].first.String()}
}

// podsWithin says whether every Pod that a peer selects is one of mine, as far as the
// selectors say so themselves.
func podsWithin(peer, mine *networkingv1.NetworkPolicyPeer) bool {
	if mine.IPBlock != nil {
		return false
	}
	everywhere := mine.NamespaceSelector != nil && isEmpty(mine.NamespaceSelector)
	switch {
	case everywhere:
	case peer.NamespaceSelector == nil || mine.NamespaceSelector == nil:
		if peer.NamespaceSelector != mine.NamespaceSelector {
			return false // one means its own namespace, the other does not
		}
	case !narrower(peer.NamespaceSelector, mine.NamespaceSelector):
		return false
	}
	return mine.PodSelector == nil || isEmpty(mine.PodSelector) || peer.PodSelector != nil && narrower(peer.PodSelector, mine.PodSelector)
}

func isEmpty(selector *metav1.LabelSelector) bool {
	return len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0
}

// narrower says whether a selector demands all that another does.
func narrower(selector, than *metav1.LabelSelector) bool {
	for key, value := range than.MatchLabels {
		if got, demanded := selector.MatchLabels[key]; !demanded || got != value {
			return false
		}
	}
	for _, expression := range than.MatchExpressions {
		if !slices.ContainsFunc(selector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool { return apiequality.Semantic.DeepEqual(e, expression) }) {
			return false
		}
	}
	return true
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
	if peer.PodSelector != nil && !isEmpty(peer.PodSelector) {
		pods = "Pods with " + metav1.FormatLabelSelector(peer.PodSelector)
	}
	switch {
	case peer.NamespaceSelector == nil:
		return pods + " of the namespace"
	case isEmpty(peer.NamespaceSelector):
		return pods + " of every namespace"
	default:
		return fmt.Sprintf("%s of namespaces with %s", pods, metav1.FormatLabelSelector(peer.NamespaceSelector))
	}
}
