// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// checkTier refuses everything in a namespace whose tier nobody defined, and the
// creation of kinds that the tier keeps from tenants.
func checkTier(in Input) []Fault {
	if !in.TierKnown {
		return []Fault{{
			Rule:   RuleTier,
			Error:  field.Invalid(field.NewPath("namespace", "metadata", "labels").Key(keys.Tier), in.TierName, "there is no such tier"),
			Remedy: "Ask the platform team to label the namespace with one of: " + strings.Join(in.Tiers, ", ") + ".",
		}}
	}
	judged := in.Kind == KindSandbox || in.Kind == KindClaim
	if in.Operation != operationCreate || in.Controller || !judged || slices.Contains(in.Tier.Creates, in.Kind) {
		return nil
	}
	remedy := "Ask the platform team for a namespace of another tier."
	if len(in.Tier.Creates) > 0 {
		remedy = "Create one of: " + strings.Join(in.Tier.Creates, ", ") + "."
	}
	return []Fault{{
		Rule:   RuleTier,
		Error:  field.Invalid(field.NewPath("kind"), in.Kind, fmt.Sprintf("tenants may not create this kind in a namespace of tier %q", in.TierName)),
		Remedy: remedy,
	}}
}

func checkEgressProfile(in Input) []Fault {
	if in.Kind != KindSandbox && in.Kind != KindTemplate || !in.TierKnown {
		return nil
	}
	chosen, present := objectAt(in.Object, "metadata", "annotations")[keys.EgressProfile]
	allowed := sets.New(append([]string{in.Tier.Egress.Profile}, in.Tier.Egress.Allowed...)...)
	if name, _ := chosen.(string); !present || allowed.Has(name) {
		return nil
	}
	return []Fault{{
		Rule: RuleEgressProfile,
		Error: field.Invalid(field.NewPath("metadata", "annotations").Key(keys.EgressProfile), chosen,
			fmt.Sprintf("tier %q does not allow this egress profile", in.TierName)),
		Remedy: "Choose one of: " + strings.Join(sets.List(allowed), ", ") + "; or remove the annotation.",
	}}
}

// checkRuntimeClass warns of a class that does not exist (yet), and refuses a Pod
// that runs under none of the classes that the tier requires.
func checkRuntimeClass(in Input) []Fault {
	if in.Effective.Pod == nil || !in.TierKnown {
		return nil
	}
	var faults []Fault
	chosen := textAt(in.Effective.Pod, "spec", "runtimeClassName")
	at := field.NewPath(in.Effective.Path, "spec", "runtimeClassName")
	classes := in.Tier.RuntimeClass.Names()
	if in.Tier.RuntimeClass.Required && !slices.Contains(classes, chosen) {
		faults = append(faults, Fault{
			Rule:   RuleRuntimeRequired,
			Error:  field.Invalid(at, chosen, fmt.Sprintf("tier %q requires a RuntimeClass of its list", in.TierName)),
			Remedy: requiredRemedy(classes, in.RuntimeClasses),
		})
	}
	if chosen != "" && !in.RuntimeClasses.Has(chosen) {
		remedy := "This cluster has no RuntimeClass: install one, or leave the field out."
		if in.RuntimeClasses.Len() > 0 {
			remedy = "This cluster has: " + strings.Join(sets.List(in.RuntimeClasses), ", ") + "."
		}
		faults = append(faults, Fault{
			Rule: RuleRuntimeExists, Warning: true,
			Error: field.Invalid(at, chosen, "there is no such RuntimeClass, so the Pod cannot start"), Remedy: remedy,
		})
	}
	return faults
}

func requiredRemedy(classes []string, existing sets.Set[string]) string {
	var usable []string
	for _, class := range classes {
		if existing.Has(class) {
			usable = append(usable, class)
		}
	}
	if len(usable) == 0 {
		return "Ask the platform team to install one of: " + strings.Join(classes, ", ") + "."
	}
	return "Set it to one of: " + strings.Join(usable, ", ") + "."
}
