// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// Ingress says who may connect to a Sandbox.
type Ingress string

const (
	// IngressRouter lets the router in, and nobody else.
	IngressRouter Ingress = "router"
	// IngressNamespace lets Pods of the same namespace in as well.
	IngressNamespace Ingress = "namespace"
)

// Subject is the part of a Sandbox and its namespace that decides how it is kept
// apart.
type Subject struct {
	// TierLabel is the tier label of the namespace; empty when it has none.
	TierLabel string
	// Profile is the egress profile that the Sandbox asks for; empty when it asks for
	// none.
	Profile string
	// Bare is true for a Sandbox that neither a claim nor a pool controls.
	Bare bool
	// Service is true for a Sandbox that asks for a Service.
	Service bool
	// Template is the name of the template that the Sandbox was made from; empty for
	// none. Its policy takes the place of the profile's.
	Template string
	// Own are the template's own rules of egress, which take the place of the profile's;
	// nil for none.
	Own []networkingv1.NetworkPolicyEgressRule
}

// Choice is how a Sandbox is kept apart.
type Choice struct {
	// Tier is the name of the tier.
	Tier string
	// Profile is the name of the egress profile.
	Profile string
	// Ingress says who may connect.
	Ingress Ingress
	// Template is the name of the template whose policy says so; empty for none.
	Template string
}

// Choose decides. Its error names the field, the value and what is allowed; it is
// the user's to mend.
func Choose(p *config.Platform, s Subject) (Choice, *field.Error) {
	name, tier, known := p.TierOf(s.TierLabel)
	if !known {
		return Choice{}, field.Invalid(
			field.NewPath("namespace", "metadata", "labels").Key(keys.Tier), s.TierLabel,
			fmt.Sprintf("there is no such tier: label the namespace with one of %s, or remove the label for %q",
				listed(slices.Sorted(maps.Keys(p.Tiers))), p.DefaultTier))
	}
	if beyond := Beyond(p, name, tier, s.Own, ownEgress); len(beyond) > 0 {
		return Choice{}, beyond[0]
	}
	choice := Choice{Tier: name, Profile: tier.Egress.Profile, Ingress: ingress(tier, s), Template: s.Template}
	if s.Profile == "" || s.Profile == tier.Egress.Profile {
		return choice, nil
	}
	if !slices.Contains(tier.Egress.Allowed, s.Profile) {
		allowed := append([]string{tier.Egress.Profile}, tier.Egress.Allowed...)
		slices.Sort(allowed)
		return Choice{}, field.Invalid(
			field.NewPath("metadata", "annotations").Key(keys.EgressProfile), s.Profile,
			fmt.Sprintf("tier %q allows %s: choose one of them, or remove the annotation for %q",
				name, listed(slices.Compact(allowed)), tier.Egress.Profile))
	}
	choice.Profile = s.Profile
	return choice, nil
}

func ingress(tier config.Tier, s Subject) Ingress {
	if tier.Ingress != "" {
		return Ingress(tier.Ingress)
	}
	if s.Bare && s.Service {
		return IngressNamespace
	}
	return IngressRouter
}

func listed(names []string) string {
	return strings.Join(names, ", ")
}

// PodLabels are the labels by which the policies of a Choice find the Pod. No other of
// ChoiceLabels may be on it.
func (c Choice) PodLabels() map[string]string {
	if c.Template != "" {
		return map[string]string{keys.Sandbox: "true", keys.Template: keys.TemplateKey(c.Template)}
	}
	labels := map[string]string{keys.Sandbox: "true", keys.EgressProfile: c.Profile}
	if c.Ingress == IngressNamespace {
		labels[keys.Ingress] = string(IngressNamespace)
	}
	return labels
}

// ChoiceLabels are the labels of a Pod that only its Choice may put there.
func ChoiceLabels() []string {
	return []string{keys.EgressProfile, keys.Ingress, keys.Template}
}
