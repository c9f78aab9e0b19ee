// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// ownEgress is where the own rules of a template stand.
var ownEgress = field.NewPath("spec", "networkPolicy", "egress")

// IsBeyond says whether an error of Choose is about own rules of a template beyond the
// ceiling.
func IsBeyond(invalid *field.Error) bool {
	return invalid != nil && strings.HasPrefix(invalid.Field, ownEgress.String())
}

// Beyond lists what own rules of a template open beyond the ceiling of a tier: each
// refusal names the rule, what it opens, and the first address of it that the ceiling
// closes. In a tier without a ceiling there is none. The path is where the rules stand.
// The addresses that were discovered in the cluster count for nothing: they come and go,
// and Template takes them out of the rules.
func Beyond(p *config.Platform, tierName string, tier config.Tier, rules []networkingv1.NetworkPolicyEgressRule, at *field.Path) field.ErrorList {
	cluster := p.Cluster
	cluster.CIDRs = slices.DeleteFunc(slices.Clone(cluster.CIDRs), func(cidr string) bool { return slices.Contains(cluster.Discovered, cidr) })
	configured := *p
	configured.Cluster = cluster
	return beyondCeiling(&configured, tierName, tier, rules, at)
}

func beyondCeiling(
	p *config.Platform, tierName string, tier config.Tier, rules []networkingv1.NetworkPolicyEgressRule, at *field.Path,
) field.ErrorList {
	if tier.Egress.Ceiling == "" {
		return nil
	}
	ceiling := p.EgressProfiles[tier.Egress.Ceiling]
	var ours opened
	for _, r := range egress(ceiling, p.Cluster) {
		ours.egress = append(ours.egress, rule{r.To, r.Ports})
	}
	remedy := fmt.Sprintf("egress of tier %q goes no further than profile %q", tierName, tier.Egress.Ceiling)
	if len(ceiling.Unresolved) > 0 {
		remedy += " (" + strings.Join(ceiling.Unresolved, "; ") + ")"
	}
	var refusals field.ErrorList
	for i, r := range rules {
		if len(r.To) == 0 && !coveredWhole(rule{r.To, r.Ports}, ours.egress) {
			refusals = append(refusals, field.Invalid(at.Index(i).Child("to"), "", "it opens everything: "+remedy+": name the peers"))
		}
		for j := range r.To {
			hole := uncovered(&r.To[j], r.Ports, ours.egress)
			if hole == nil {
				continue
			}
			detail := remedy + ": narrow the peer, or remove it"
			if hole.address != "" && r.To[j].IPBlock != nil {
				detail = fmt.Sprintf("it covers %s: %s: leave that out by except, or narrow the range", hole.address, remedy)
			}
			refusals = append(refusals, field.Invalid(at.Index(i).Child("to").Index(j), describe(&r.To[j]), detail))
		}
	}
	return refusals
}

// Reopened looks for a policy of others that opens egress for a Pod with these labels
// beyond the ceiling of its tier, among all policies of the namespace. It gives the name of
// the first and what of it is too much; nil when there is none, and always in a tier that
// only reports such policies.
func Reopened(p *config.Platform, tierName string, tier config.Tier, podLabels map[string]string, policies []networkingv1.NetworkPolicy) (string, *field.Error) {
	if tier.Egress.Reopened == config.ReopenedReport {
		return "", nil
	}
	for i := range policies {
		policy := &policies[i]
		if Ours(policy) || !hasType(policy, networkingv1.PolicyTypeEgress) || !Selects(policy, podLabels) {
			continue
		}
		if beyond := beyondCeiling(p, tierName, tier, policy.Spec.Egress, field.NewPath("spec", "egress")); len(beyond) > 0 {
			return policy.Name, beyond[0]
		}
	}
	return "", nil
}
