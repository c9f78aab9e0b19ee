// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// checkTier refuses everything in a namespace whose tier nobody defined, and what tenants write
// of kinds that the tier keeps from them.
func checkTier(in Input) []Fault {
	if !in.TierKnown {
		return []Fault{{
			Rule:   RuleTier,
			Error:  field.Invalid(field.NewPath("namespace", "metadata", "labels").Key(keys.Tier), in.TierName, "there is no such tier"),
			Remedy: "Ask the platform team to label the namespace with one of: " + strings.Join(in.Tiers, ", ") + ".",
		}}
	}
	judged := in.Kind == KindSandbox || in.Kind == KindClaim
	if in.Controller || !judged || slices.Contains(in.Tier.Creates, in.Kind) {
		return nil
	}
	remedy := "Ask the platform team for a namespace of another tier."
	if len(in.Tier.Creates) > 0 {
		remedy = "Create one of: " + strings.Join(in.Tier.Creates, ", ") + "."
	}
	var faults []Fault
	for _, err := range written(in) {
		faults = append(faults, Fault{Rule: RuleTier, Error: err, Remedy: remedy})
	}
	return faults
}

// written is what tenants may not write who may not create the kind. Who could change what a
// Sandbox runs need not create one; what a claim made is told of by checkControlled.
func written(in Input) []*field.Error {
	const refused = "tenants may not %s in a namespace of tier %q"
	if in.Operation == operationCreate {
		return []*field.Error{field.Invalid(field.NewPath("kind"), in.Kind, fmt.Sprintf(refused, "create this kind", in.TierName))}
	}
	if in.Kind != KindSandbox || madeBy(in.OldObject) != "" {
		return nil
	}
	var errs []*field.Error
	for _, path := range changedSpec(in) {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf(refused, "change what a Sandbox is", in.TierName)))
	}
	return errs
}

// connecting is the object that says what a Sandbox may connect to, and where it stands. Pools
// and claims borrow it: their template may be older than the tier of the namespace, and is not
// theirs to correct, so that what is wrong with it is a warning about them.
func connecting(in Input) (object map[string]any, at *field.Path, borrowed bool) {
	if in.Kind == KindPool || in.Kind == KindClaim {
		return in.Template, field.NewPath("template"), true
	}
	return in.Object, nil, false
}

// checkEgressProfile refuses a profile that the tier does not allow.
func checkEgressProfile(in Input) []Fault {
	object, at, borrowed := connecting(in)
	chosen, present := objectAt(object, "metadata", "annotations")[keys.EgressProfile]
	allowed := sets.New(append([]string{in.Tier.Egress.Profile}, in.Tier.Egress.Allowed...)...)
	name, _ := chosen.(string)
	switch {
	case !in.TierKnown:
		return nil
	case !present:
		return unresolved(in, in.Tier.Egress.Profile, at)
	case allowed.Has(name):
		return unresolved(in, name, at)
	}
	detail, remedy := fmt.Sprintf("tier %q does not allow this egress profile", in.TierName), "Choose one of: "
	if borrowed {
		detail, remedy = detail+", so no Sandbox is made of the template", "Choose in the template one of: "
	}
	return []Fault{{
		Rule: RuleEgressProfile, Warning: borrowed,
		Error:  field.Invalid(at.Child("metadata", "annotations").Key(keys.EgressProfile), chosen, detail),
		Remedy: remedy + strings.Join(sets.List(allowed), ", ") + "; or remove the annotation.",
	}}
}

// unresolved warns of Services of an egress profile that open nothing now. Whoever only borrows
// the profile from a template hears of it nowhere, nor does one whose own rules take its place.
func unresolved(in Input, profile string, at *field.Path) []Fault {
	chooses := in.Kind == KindSandbox || in.Kind == KindTemplate && objectAt(in.Object, "spec", "networkPolicy") == nil
	if !chooses || in.Controller || in.Platform == nil {
		return nil
	}
	var faults []Fault
	for _, why := range in.Platform.EgressProfiles[profile].Unresolved {
		faults = append(faults, Fault{
			Rule: RuleEgressProfile, Warning: true,
			Error:  field.Invalid(at.Child("metadata", "annotations").Key(keys.EgressProfile), profile, why),
			Remedy: "Ask the platform team, or do without it: it is opened as soon as it can be.",
		})
	}
	return faults
}

// checkEgressCeiling refuses a template whose own rules open more than anybody in the
// tier may. Who only borrows it is told where, and not what it opens.
func checkEgressCeiling(in Input) []Fault {
	object, at, borrowed := connecting(in)
	own := objectAt(object, "spec", "networkPolicy")
	unmanaged := textAt(object, "spec", "networkPolicyManagement") == string(extensionsv1beta1.NetworkPolicyUnmanaged)
	if in.Kind == KindSandbox || !in.TierKnown || own == nil || unmanaged || in.Tier.Egress.Ceiling == "" {
		return nil
	}
	var faults []Fault
	for _, fault := range beyondCeiling(in, own, at.Child("spec", "networkPolicy", "egress")) {
		if borrowed {
			fault.Warning = true
			fault.Error = &field.Error{
				Type: fault.Type, Field: fault.Field,
				Detail: fmt.Sprintf("egress of tier %q does not go as far as this, so no Sandbox is made of the template", in.TierName),
			}
			fault.Remedy = "Ask its owner to narrow its rules, or the platform team for a namespace of another tier."
		}
		faults = append(faults, fault)
	}
	return faults
}

func beyondCeiling(in Input, own map[string]any, at *field.Path) []Fault {
	var rules extensionsv1beta1.NetworkPolicySpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(own, &rules); err != nil {
		return []Fault{{
			Rule: RuleEgressCeiling, Error: field.Invalid(at, "", "the rules cannot be read: "+err.Error()), Remedy: "Write them as in a NetworkPolicy.",
		}}
	}
	var faults []Fault
	for _, err := range isolation.Beyond(in.Platform, in.TierName, in.Tier, rules.Egress, at) {
		faults = append(faults, Fault{Rule: RuleEgressCeiling, Error: err, Remedy: "Or ask the platform team for a namespace of another tier."})
	}
	return faults
}

// checkRuntimeClass warns of a class under which no Pod can start (yet), and refuses a
// Pod that runs under none of the classes that the tier demands.
func checkRuntimeClass(in Input) []Fault {
	if in.Effective.Pod == nil || !in.TierKnown {
		return nil
	}
	var faults []Fault
	chosen := textAt(in.Effective.Pod, "spec", "runtimeClassName")
	at := field.NewPath(in.Effective.Path, "spec", "runtimeClassName")
	if why := in.Tier.RuntimeClass.Refusal(chosen); why != "" {
		faults = append(faults, Fault{
			Rule:   RuleRuntimeRequired,
			Error:  field.Invalid(at, chosen, fmt.Sprintf("tier %q %s", in.TierName, why)),
			Remedy: in.permittedRemedy(),
		})
	}
	if chosen == "" || in.UsableClasses.Has(chosen) {
		return faults
	}
	why := "there is no such RuntimeClass, so the Pod cannot start"
	if in.RuntimeClasses.Has(chosen) {
		why = "no node has the labels that this RuntimeClass selects, so the Pod cannot start"
	}
	return append(faults, Fault{
		Rule: RuleRuntimeExists, Warning: true, Error: field.Invalid(at, chosen, why), Remedy: in.usableRemedy(),
	})
}

func (in Input) usableRemedy() string {
	if in.UsableClasses.Len() == 0 {
		return "This cluster has no RuntimeClass: install one, or leave the field out."
	}
	return "This cluster has: " + strings.Join(sets.List(in.UsableClasses), ", ") + "."
}

// permittedRemedy names the classes that the tier takes and the cluster can run; or
// else those that it takes, beside those that there are.
func (in Input) permittedRemedy() string {
	permitted := in.Tier.RuntimeClass.Permitted()
	usable := slices.DeleteFunc(slices.Clone(permitted), func(class string) bool { return !in.UsableClasses.Has(class) })
	if len(usable) > 0 {
		return "Set it to one of: " + strings.Join(usable, ", ") + "."
	}
	has := "none"
	if in.RuntimeClasses.Len() > 0 {
		var texts []string
		for _, class := range sets.List(in.RuntimeClasses) {
			if !in.UsableClasses.Has(class) {
				class += " (no node for it)"
			}
			texts = append(texts, class)
		}
		has = strings.Join(texts, ", ")
	}
	return fmt.Sprintf("Ask the platform team to install one of: %s; this cluster has %s.", strings.Join(permitted, ", "), has)
}
