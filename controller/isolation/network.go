// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// Network is what the cluster itself says of its network, now.
type Network struct {
	// Ranges are the addresses of nodes and of the apiserver, and the ranges of Pods.
	Ranges []netip.Prefix
	// Services are those that profiles name, as far as they exist.
	Services map[types.NamespacedName]*corev1.Service
}

// Gap is a Service that a profile names and that opens nothing.
type Gap struct {
	// Profile is the name of the profile.
	Profile string
	// Service is the name of the Service.
	Service types.NamespacedName
	// Why says in a sentence what is wrong and what to do.
	Why string
}

// Resolve is the configuration with what the network of the cluster is now: Services
// become the selectors and ports of the Pods behind them, and the cluster's own
// addresses belong to its ranges. Addresses that are closed anyway are left out, so that
// the policies of a cluster with private addresses do not grow with its nodes. The
// configuration that is given is not changed.
func Resolve(p *config.Platform, n Network) (*config.Platform, []Gap) {
	resolved := *p
	resolved.Cluster.Discovered = discovered(p.Cluster.CIDRs, n.Ranges)
	resolved.Cluster.CIDRs = append(slices.Clone(p.Cluster.CIDRs), resolved.Cluster.Discovered...)
	resolved.EgressProfiles = map[string]config.EgressProfile{}
	var gaps []Gap
	for _, name := range slices.Sorted(maps.Keys(p.EgressProfiles)) {
		profile := p.EgressProfiles[name]
		rules := make([]config.EgressRule, 0, len(profile.Rules))
		for _, rule := range profile.Rules {
			services := rule.Services
			rule.Services = nil
			if len(rule.CIDRs) > 0 || rule.NamespaceSelector != nil || rule.PodSelector != nil {
				rules = append(rules, rule)
			}
			for _, service := range services {
				key := types.NamespacedName{Namespace: service.Namespace, Name: service.Name}
				behind, why := podsBehind(service, n.Services[key])
				if why != "" {
					gaps = append(gaps, Gap{Profile: name, Service: key, Why: why})
					profile.Unresolved = append(profile.Unresolved, fmt.Sprintf("Service %s opens nothing: %s", key, why))
					continue
				}
				rules = append(rules, behind)
			}
		}
		profile.Rules = rules
		resolved.EgressProfiles[name] = profile
	}
	return &resolved, gaps
}

// discovered are the ranges that neither the special ones nor the configured cover.
func discovered(configured []string, ranges []netip.Prefix) []string {
	closed := outermost(append(specialRanges(), configured...))
	var added []string
	for _, prefix := range ranges {
		if !isWithin(prefix.String(), closed) {
			added = append(added, prefix.String())
		}
	}
	slices.Sort(added)
	return slices.Compact(added)
}

// podsBehind is the rule for the Pods behind a Service; or why there is none.
func podsBehind(wanted config.EgressService, service *corev1.Service) (config.EgressRule, string) {
	switch {
	case service == nil:
		return config.EgressRule{}, "there is no such Service: create it, or remove it from the profile"
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return config.EgressRule{}, fmt.Sprintf("it is the name %s outside of the cluster, and policies know addresses only: "+
			"write its addresses as cidrs", service.Spec.ExternalName)
	case len(service.Spec.Selector) == 0:
		return config.EgressRule{}, "it has no selector, so nobody knows its Pods: write the addresses of its endpoints as cidrs, or select Pods"
	}
	ports, why := portsBehind(wanted.Ports, service.Spec.Ports)
	if why != "" {
		return config.EgressRule{}, why
	}
	return config.EgressRule{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: wanted.Namespace}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: maps.Clone(service.Spec.Selector)},
		Ports:             ports,
	}, ""
}

// portsBehind are the ports of the Pods: a policy sees a packet when its destination is
// the Pod already.
func portsBehind(wanted []intstr.IntOrString, offered []corev1.ServicePort) ([]config.EgressPort, string) {
	var ports []config.EgressPort
	for i := range offered {
		port := &offered[i]
		if len(wanted) > 0 && !slices.ContainsFunc(wanted, func(w intstr.IntOrString) bool { return isPort(w, port) }) {
			continue
		}
		target := port.TargetPort
		if target == (intstr.IntOrString{}) {
			target = intstr.FromInt32(port.Port)
		}
		ports = append(ports, config.EgressPort{Protocol: string(cmp.Or(port.Protocol, corev1.ProtocolTCP)), Port: target})
	}
	for _, w := range wanted {
		if !slices.ContainsFunc(offered, func(port corev1.ServicePort) bool { return isPort(w, &port) }) {
			return nil, fmt.Sprintf("it has no port %s: choose among %s", w.String(), strings.Join(portNames(offered), ", "))
		}
	}
	if len(ports) == 0 {
		return nil, "it has no ports, so nothing can connect to it: write cidrs, or select Pods"
	}
	return ports, ""
}

func isPort(wanted intstr.IntOrString, port *corev1.ServicePort) bool {
	if wanted.Type == intstr.String {
		return wanted.StrVal == port.Name
	}
	return wanted.IntVal == port.Port
}

func portNames(ports []corev1.ServicePort) []string {
	var names []string
	for i := range ports {
		number := intstr.FromInt32(ports[i].Port)
		names = append(names, cmp.Or(ports[i].Name, number.String()))
	}
	return names
}

// NamedServices are the Services that any profile names, each once.
func NamedServices(p *config.Platform) []types.NamespacedName {
	named := map[types.NamespacedName]bool{}
	for _, profile := range p.EgressProfiles {
		for _, rule := range profile.Rules {
			for _, service := range rule.Services {
				named[types.NamespacedName{Namespace: service.Namespace, Name: service.Name}] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(named), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}
