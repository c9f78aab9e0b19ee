// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// EgressProfile says what a Sandbox may connect to. The empty profile is nothing.
type EgressProfile struct {
	// DNS allows the cluster's DNS servers.
	DNS bool `json:"dns,omitempty"`
	// Nameservers are addresses of resolvers for a profile without DNS. It allows them, and
	// Pods that choose no DNS of their own ask them.
	Nameservers []string `json:"nameservers,omitempty"`
	// Internet allows every address that is neither private nor special nor the
	// cluster's own.
	Internet bool `json:"internet,omitempty"`
	// Rules allow more.
	Rules []EgressRule `json:"rules,omitempty"`
	// Unresolved are sentences, each of a Service of the rules that opens nothing now:
	// isolation.Resolve found them.
	Unresolved []string `json:"-"`
}

// EgressRule allows peers on ports. Without ports it allows all of them; a rule
// without peers is an error.
type EgressRule struct {
	// CIDRs are address ranges.
	CIDRs []string `json:"cidrs,omitempty"`
	// Except are ranges within the CIDRs that stay closed.
	Except []string `json:"except,omitempty"`
	// NamespaceSelector and PodSelector select Pods, as in a NetworkPolicy.
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// PodSelector: see NamespaceSelector.
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// Services are Services of the cluster. What they allow is the Pods behind them, on
	// the ports of the Service and no others: Ports does not concern them.
	Services []EgressService `json:"services,omitempty"`
	// Ports are the ports of the ranges and of the Pods.
	Ports []EgressPort `json:"ports,omitempty"`
}

// EgressService is a Service of the cluster by its name. One that has no selector, or
// that is a name outside of the cluster, opens nothing: nobody knows its Pods.
type EgressService struct {
	// Namespace is where the Service is.
	Namespace string `json:"namespace"`
	// Name is its name.
	Name string `json:"name"`
	// Ports are the numbers or names of ports of the Service; empty means all of them.
	Ports []intstr.IntOrString `json:"ports,omitempty"`
}

// EgressPort is a port or a range of ports.
type EgressPort struct {
	// Protocol is TCP, UDP or SCTP; empty means TCP.
	Protocol string `json:"protocol,omitempty"`
	// Port is a number or a name.
	Port intstr.IntOrString `json:"port"`
	// EndPort is the last port of a range.
	EndPort *int32 `json:"endPort,omitempty"`
}

// maxNameservers is how many a Pod may have.
const maxNameservers = 3

func validateProfile(e EgressProfile, at *field.Path) field.ErrorList {
	errs := validateAddresses(e.Nameservers, at.Child("nameservers"))
	if e.DNS && len(e.Nameservers) > 0 {
		errs = append(errs, field.Forbidden(at.Child("nameservers"), "with dns the cluster's own DNS answers: remove these, or dns"))
	}
	if len(e.Nameservers) > maxNameservers {
		errs = append(errs, field.TooMany(at.Child("nameservers"), len(e.Nameservers), maxNameservers))
	}
	for i, rule := range e.Rules {
		errs = append(errs, validateRule(rule, at.Child("rules").Index(i))...)
	}
	return errs
}

func validateRule(r EgressRule, at *field.Path) field.ErrorList {
	pods := r.NamespaceSelector != nil || r.PodSelector != nil
	if len(r.CIDRs) == 0 && !pods && len(r.Services) == 0 {
		return field.ErrorList{field.Required(at, "a rule without cidrs, namespaceSelector, podSelector or services would allow everything")}
	}
	errs := validateCIDRs(r.CIDRs, at.Child("cidrs"))
	errs = append(errs, validateCIDRs(r.Except, at.Child("except"))...)
	errs = append(errs, validateExcepts(r, at.Child("except"))...)
	strict := metav1validation.LabelSelectorValidationOptions{}
	errs = append(errs, metav1validation.ValidateLabelSelector(r.NamespaceSelector, strict, at.Child("namespaceSelector"))...)
	errs = append(errs, metav1validation.ValidateLabelSelector(r.PodSelector, strict, at.Child("podSelector"))...)
	for i, service := range r.Services {
		errs = append(errs, validateService(service, at.Child("services").Index(i))...)
	}
	if len(r.Ports) > 0 && len(r.CIDRs) == 0 && !pods {
		errs = append(errs, field.Forbidden(at.Child("ports"), "a Service brings its own ports: name some of them in services[].ports, or remove these"))
	}
	for i, port := range r.Ports {
		errs = append(errs, validatePort(port, len(r.CIDRs) > 0, at.Child("ports").Index(i))...)
	}
	return errs
}

// validateExcepts wants each exception inside of one of the ranges: elsewhere it closes
// nothing, and whoever wrote it believes that it does.
func validateExcepts(r EgressRule, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, text := range r.Except {
		except, err := netip.ParsePrefix(text)
		if err != nil {
			continue // said already
		}
		inside := slices.ContainsFunc(r.CIDRs, func(cidr string) bool {
			outer, err := netip.ParsePrefix(cidr)
			return err == nil && outer.Bits() < except.Bits() && outer.Contains(except.Addr())
		})
		if !inside {
			errs = append(errs, field.Invalid(at.Index(i), text, "it lies within none of the cidrs, so it closes nothing: correct or remove it"))
		}
	}
	return errs
}

func validateService(s EgressService, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Label(s.Namespace) {
		errs = append(errs, field.Invalid(at.Child("namespace"), s.Namespace, "name the namespace of the Service: "+problem))
	}
	for _, problem := range validation.IsDNS1123Label(s.Name) {
		errs = append(errs, field.Invalid(at.Child("name"), s.Name, "name a Service: "+problem))
	}
	for i, port := range s.Ports {
		errs = append(errs, validatePortNumber(port, validation.IsDNS1123Label, at.Child("ports").Index(i))...)
	}
	return errs
}

func validatePort(p EgressPort, addresses bool, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if known := []string{"", "TCP", "UDP", "SCTP"}; !slices.Contains(known, p.Protocol) {
		errs = append(errs, field.NotSupported(at.Child("protocol"), p.Protocol, known[1:]))
	}
	errs = append(errs, validatePortNumber(p.Port, validation.IsValidPortName, at.Child("port"))...)
	switch {
	case p.Port.Type == intstr.String && addresses:
		errs = append(errs, field.Invalid(at.Child("port"), p.Port.StrVal, "an address has no names of ports: write a number"))
	case p.EndPort == nil:
	case p.Port.Type == intstr.String:
		errs = append(errs, field.Invalid(at.Child("endPort"), *p.EndPort, "a range begins with a number: write port as one"))
	case *p.EndPort < p.Port.IntVal || *p.EndPort > maxPort:
		errs = append(errs, field.Invalid(at.Child("endPort"), *p.EndPort, fmt.Sprintf("write a number between port and %d", maxPort)))
	}
	return errs
}

const maxPort = 65535

func validatePortNumber(port intstr.IntOrString, named func(string) []string, at *field.Path) field.ErrorList {
	if port.Type == intstr.Int {
		if port.IntVal < 1 || port.IntVal > maxPort {
			return field.ErrorList{field.Invalid(at, port.IntVal, fmt.Sprintf("write a number between 1 and %d, or a name", maxPort))}
		}
		return nil
	}
	var errs field.ErrorList
	for _, problem := range named(port.StrVal) {
		errs = append(errs, field.Invalid(at, port.StrVal, "write a number, or the name of a port: "+problem))
	}
	return errs
}
