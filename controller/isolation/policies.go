// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"maps"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

const (
	// FloorName is the name of the policy that denies everything.
	FloorName = "agent-sandbox-deny-all"
	// NamespaceIngressName is the name of the policy that lets Pods of the same
	// namespace in.
	NamespaceIngressName = "agent-sandbox-ingress-namespace"
	// Manager is the value of the label keys.ManagedBy on every policy of this package.
	Manager = "agent-sandbox-controller"

	profilePrefix = "agent-sandbox-egress-"
	dnsPort       = 53
)

// ProfileName is the name of the policy of an egress profile.
func ProfileName(profile string) string {
	return profilePrefix + profile
}

// Policies are the policies that must exist in the namespace before a Pod of this
// Choice may, the floor first. None of them has an owner: they serve every Sandbox
// of the namespace. The policy of a template is not among them; see Template.
func Policies(namespace string, c Choice, p *config.Platform) []*networkingv1.NetworkPolicy {
	if c.Template != "" {
		return []*networkingv1.NetworkPolicy{Floor(namespace)}
	}
	policies := []*networkingv1.NetworkPolicy{Floor(namespace), Profile(namespace, c.Profile, p)}
	if c.Ingress == IngressNamespace {
		policies = append(policies, NamespaceIngress(namespace))
	}
	return policies
}

// Ours says whether a policy is one of this package, by our label, its name, and that it
// selects what one of that name has to. The label alone does not say so: whoever wrote it
// before the cluster guarded it would pass for the controllers, under a name that none of
// them looks at. With the name of an idle one he would open other Pods than those for which
// the controllers make it what it has to be.
func Ours(policy *networkingv1.NetworkPolicy) bool {
	if policy.Labels[keys.ManagedBy] != Manager || len(policy.Spec.PodSelector.MatchExpressions) > 0 {
		return false
	}
	selected := selectedBy(policy.Name)
	return selected != nil && maps.Equal(selected, policy.Spec.PodSelector.MatchLabels) &&
		policy.Labels[keys.Template] == selected[keys.Template]
}

// selectedBy are the labels that the policy of ours with that name selects; nil for the name
// of another's.
func selectedBy(name string) map[string]string {
	if template, is := strings.CutSuffix(name, templateSuffix); is {
		return map[string]string{keys.SandboxTemplateRefHash: keys.NameHash(template), keys.Template: keys.TemplateKey(template)}
	}
	selected := map[string]string{keys.Sandbox: "true"}
	profile, isProfile := strings.CutPrefix(name, profilePrefix)
	switch {
	case name == FloorName:
	case name == NamespaceIngressName:
		selected[keys.Ingress] = string(IngressNamespace)
	case isProfile:
		selected[keys.EgressProfile] = profile
	default:
		return nil
	}
	return selected
}

// Shared is the policy of that name, among those that serve every Sandbox of a
// namespace, as it must be; nil for another's name. One of a profile that the
// configuration does not have opens nothing, and known is false.
func Shared(namespace, name string, p *config.Platform) (policy *networkingv1.NetworkPolicy, known bool) {
	switch name {
	case FloorName:
		return Floor(namespace), true
	case NamespaceIngressName:
		return NamespaceIngress(namespace), true
	}
	profile, isProfile := strings.CutPrefix(name, profilePrefix)
	if !isProfile || strings.HasSuffix(name, templateSuffix) {
		return nil, false
	}
	_, known = p.EgressProfiles[profile]
	return Profile(namespace, profile, p), known
}

// SelectedBy lists the names of the policies of this package that select a Pod with
// these labels.
func SelectedBy(podLabels map[string]string) []string {
	if podLabels[keys.Sandbox] != "true" {
		return nil
	}
	names := []string{FloorName}
	if profile := podLabels[keys.EgressProfile]; profile != "" {
		names = append(names, ProfileName(profile))
	}
	if podLabels[keys.Ingress] == string(IngressNamespace) {
		names = append(names, NamespaceIngressName)
	}
	return names
}

// Selecting are the policies of SelectedBy as they must be in that namespace, the floor
// first. A profile that the configuration does not have is left out.
func Selecting(namespace string, podLabels map[string]string, p *config.Platform) []*networkingv1.NetworkPolicy {
	if podLabels[keys.Sandbox] != "true" {
		return nil
	}
	policies := []*networkingv1.NetworkPolicy{Floor(namespace)}
	profile := podLabels[keys.EgressProfile]
	if _, known := p.EgressProfiles[profile]; known {
		policies = append(policies, Profile(namespace, profile, p))
	}
	if podLabels[keys.Ingress] == string(IngressNamespace) {
		policies = append(policies, NamespaceIngress(namespace))
	}
	return policies
}

// Floor denies every Pod of a Sandbox everything.
func Floor(namespace string) *networkingv1.NetworkPolicy {
	return policy(namespace, FloorName, networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
}

// Profile opens what the egress profile of that name allows, and the way in for the
// router. A profile that the configuration does not have opens nothing.
func Profile(namespace, name string, p *config.Platform) *networkingv1.NetworkPolicy {
	np := policy(namespace, ProfileName(name), networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
	np.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{
		{From: []networkingv1.NetworkPolicyPeer{podsOf(p.Router)}},
	}
	np.Spec.Egress = egress(p.EgressProfiles[name], p.Cluster)
	return np
}

// NamespaceIngress lets the Pods of the namespace connect to the Sandboxes whose
// Choice says so.
func NamespaceIngress(namespace string) *networkingv1.NetworkPolicy {
	np := policy(namespace, NamespaceIngressName, networkingv1.PolicyTypeIngress)
	np.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{fromNamespace()}
	return np
}

func policy(namespace, name string, types ...networkingv1.PolicyType) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      name,
			Labels:    map[string]string{keys.ManagedBy: Manager},
		},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: selectedBy(name)},
			PolicyTypes: types,
		},
	}
}

func egress(profile config.EgressProfile, cluster config.Cluster) []networkingv1.NetworkPolicyEgressRule {
	var rules []networkingv1.NetworkPolicyEgressRule
	if profile.DNS {
		rules = append(rules, dnsRule(cluster))
	}
	if len(profile.Nameservers) > 0 {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: hosts(profile.Nameservers), Ports: dnsPorts()})
	}
	if profile.Internet {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: internet(cluster.CIDRs)})
	}
	for _, rule := range profile.Rules {
		if custom := customRule(rule); len(custom.To) > 0 { // Services alone open nothing before they are resolved
			rules = append(rules, custom)
		}
	}
	return rules
}

func dnsRule(cluster config.Cluster) networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{
		To:    append([]networkingv1.NetworkPolicyPeer{podsOf(cluster.DNS)}, hosts(cluster.DNSAddresses)...),
		Ports: dnsPorts(),
	}
}

func dnsPorts() []networkingv1.NetworkPolicyPort {
	return []networkingv1.NetworkPolicyPort{
		port(corev1.ProtocolUDP, intstr.FromInt32(dnsPort), nil),
		port(corev1.ProtocolTCP, intstr.FromInt32(dnsPort), nil),
	}
}

// hosts are single addresses as peers.
func hosts(addresses []string) []networkingv1.NetworkPolicyPeer {
	var peers []networkingv1.NetworkPolicyPeer
	for _, text := range addresses {
		if address, err := netip.ParseAddr(text); err == nil { // the configuration was checked when it was read
			host := netip.PrefixFrom(address, address.BitLen())
			peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: host.String()}})
		}
	}
	return peers
}

func customRule(rule config.EgressRule) networkingv1.NetworkPolicyEgressRule {
	var out networkingv1.NetworkPolicyEgressRule
	for _, cidr := range rule.CIDRs {
		out.To = append(out.To, networkingv1.NetworkPolicyPeer{
			IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: within(cidr, rule.Except)},
		})
	}
	if rule.NamespaceSelector != nil || rule.PodSelector != nil {
		out.To = append(out.To, networkingv1.NetworkPolicyPeer{
			NamespaceSelector: rule.NamespaceSelector.DeepCopy(),
			PodSelector:       rule.PodSelector.DeepCopy(),
		})
	}
	for _, p := range rule.Ports {
		protocol := corev1.Protocol(cmp.Or(p.Protocol, string(corev1.ProtocolTCP)))
		out.Ports = append(out.Ports, port(protocol, p.Port, p.EndPort))
	}
	return out
}

// port names the protocol even where the apiserver would, so that what it stores
// equals what was asked for.
func port(protocol corev1.Protocol, number intstr.IntOrString, end *int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &number, EndPort: end}
}

func podsOf(peer config.Peer) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: peer.Namespace}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: peer.PodLabels},
	}
}
