// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

const templateSuffix = "-network-policy"

// TemplateName is the name of the policy of a template.
func TemplateName(template string) string {
	return template + templateSuffix
}

// SubjectOf is a template as the subject of Choose, in a namespace with that tier
// label.
func SubjectOf(template *extensionsv1beta1.SandboxTemplate, tierLabel string) Subject {
	subject := Subject{TierLabel: tierLabel, Profile: template.Annotations[keys.EgressProfile], Template: template.Name}
	if own := template.Spec.NetworkPolicy; own != nil && Managed(template) {
		subject.Own = own.Egress
	}
	return subject
}

// Managed says whether the controller keeps the policy of a template.
func Managed(template *extensionsv1beta1.SandboxTemplate) bool {
	return template.Spec.NetworkPolicyManagement != extensionsv1beta1.NetworkPolicyUnmanaged
}

// Template opens what the template says: its own rules, both directions at once, or
// else those of the Choice, which its labels record. Below a ceiling its own rules do not
// open the addresses that were discovered in the cluster. It selects the contract's label
// and beside it one that nobody can make collide.
func Template(template *extensionsv1beta1.SandboxTemplate, c Choice, p *config.Platform) *networkingv1.NetworkPolicy {
	np := policy(template.Namespace, TemplateName(template.Name), networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
	np.Labels[keys.Template] = np.Spec.PodSelector.MatchLabels[keys.Template]
	if own := template.Spec.NetworkPolicy; own != nil {
		np.Spec.Ingress, np.Spec.Egress = ownRules(own.DeepCopy())
		if p.Tiers[c.Tier].Egress.Ceiling != "" {
			np.Spec.Egress = cut(np.Spec.Egress, p.Cluster.Discovered)
		}
		np.Labels[keys.Rules] = rulesKey(np)
		return np
	}
	np.Labels[keys.EgressProfile] = c.Profile
	if c.Ingress == IngressNamespace {
		np.Labels[keys.Ingress] = string(IngressNamespace)
	}
	np.Spec.Ingress, np.Spec.Egress = rulesOf(c, p)
	return np
}

func rulesOf(c Choice, p *config.Platform) ([]networkingv1.NetworkPolicyIngressRule, []networkingv1.NetworkPolicyEgressRule) {
	ingress := []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{podsOf(p.Router)}}}
	if c.Ingress == IngressNamespace {
		ingress = append(ingress, fromNamespace())
	}
	return ingress, egress(p.EgressProfiles[c.Profile], p.Cluster)
}

// Recorded is the policy of a template that says nothing any more, as it must be now, in a
// namespace with that tier label: what the profile that its labels name opens today. Own
// rules of the template stay what they were, but for egress beyond the ceiling of the
// tier, and are closed for good once somebody else changed them: nobody knows any more what
// they were. A profile that the configuration does not have any more leaves the rules as they
// are.
func Recorded(policy *networkingv1.NetworkPolicy, tierLabel string, p *config.Platform) *networkingv1.NetworkPolicy {
	kept := policy.DeepCopy()
	kept.Spec.PodSelector = metav1.LabelSelector{MatchLabels: selectedBy(policy.Name)}
	kept.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	if profile := policy.Labels[keys.EgressProfile]; profile != "" {
		if _, known := p.EgressProfiles[profile]; known {
			choice := Choice{Profile: profile, Ingress: Ingress(policy.Labels[keys.Ingress])}
			kept.Spec.Ingress, kept.Spec.Egress = rulesOf(choice, p)
		}
		return kept
	}
	name, tier, known := p.TierOf(tierLabel)
	written := kept.Labels[keys.Rules]
	switch {
	case written != "" && written != rulesKey(kept):
		kept.Spec.Ingress, kept.Spec.Egress = nil, nil
	case !known || tier.Egress.Ceiling == "":
	case len(Beyond(p, name, tier, kept.Spec.Egress, ownEgress)) > 0:
		kept.Spec.Egress = nil
	default:
		kept.Spec.Egress = cut(kept.Spec.Egress, p.Cluster.Discovered)
	}
	kept.Labels[keys.Rules] = rulesKey(kept)
	return kept
}

// rulesKey tells rules apart from those that somebody else puts in their place.
func rulesKey(policy *networkingv1.NetworkPolicy) string {
	encoded, err := json.Marshal(networkingv1.NetworkPolicySpec{Ingress: policy.Spec.Ingress, Egress: policy.Spec.Egress})
	if err != nil {
		return "" // nothing in rules cannot be encoded
	}
	return keys.RulesKey(string(encoded))
}

// cut takes ranges of addresses out of rules. A rule that is left without peers goes: it
// would open everything.
func cut(rules []networkingv1.NetworkPolicyEgressRule, ranges []string) []networkingv1.NetworkPolicyEgressRule {
	var left []networkingv1.NetworkPolicyEgressRule
	for _, rule := range rules {
		everyone := len(rule.To) == 0
		rule.To = cutPeers(rule.To, ranges)
		if everyone || len(rule.To) > 0 {
			left = append(left, rule)
		}
	}
	return left
}

func cutPeers(peers []networkingv1.NetworkPolicyPeer, ranges []string) []networkingv1.NetworkPolicyPeer {
	var left []networkingv1.NetworkPolicyPeer
	for _, peer := range peers {
		if peer.IPBlock != nil {
			if isWithin(peer.IPBlock.CIDR, ranges) {
				continue
			}
			peer.IPBlock = peer.IPBlock.DeepCopy()
			for _, inner := range within(peer.IPBlock.CIDR, ranges) {
				if !isWithin(inner, peer.IPBlock.Except) {
					peer.IPBlock.Except = append(peer.IPBlock.Except, inner)
				}
			}
		}
		left = append(left, peer)
	}
	return left
}

// ownRules names the protocol where the apiserver would, so that what it stores
// equals what was asked for.
func ownRules(own *extensionsv1beta1.NetworkPolicySpec) ([]networkingv1.NetworkPolicyIngressRule, []networkingv1.NetworkPolicyEgressRule) {
	for i := range own.Ingress {
		nameProtocols(own.Ingress[i].Ports)
	}
	for i := range own.Egress {
		nameProtocols(own.Egress[i].Ports)
	}
	return own.Ingress, own.Egress
}

func nameProtocols(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		if ports[i].Protocol == nil {
			ports[i].Protocol = new(corev1.ProtocolTCP)
		}
	}
}

func fromNamespace() networkingv1.NetworkPolicyIngressRule {
	return networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}
}
