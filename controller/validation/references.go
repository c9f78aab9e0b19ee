// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkReferences warns of a pool or template that does not exist. It may be created
// later: the order in which a tenant applies his objects must not matter.
func checkReferences(in Input) []Fault {
	switch {
	case in.Kind == KindPool && in.Template == nil:
		return []Fault{missing("sandboxTemplateRef", textAt(in.Object, "spec", "sandboxTemplateRef", "name"), "SandboxTemplate")}
	case in.Kind == KindClaim && in.Pool == nil:
		return []Fault{missing("warmPoolRef", textAt(in.Object, "spec", "warmPoolRef", "name"), "SandboxWarmPool")}
	case in.Kind == KindClaim && in.Template == nil:
		return []Fault{missing("warmPoolRef", textAt(in.Object, "spec", "warmPoolRef", "name"), "SandboxTemplate behind this pool")}
	}
	return nil
}

func missing(reference, name, what string) Fault {
	return Fault{
		Rule: RuleReference, Warning: true,
		Error:  field.Invalid(field.NewPath("spec", reference, "name"), name, "there is no "+what+" yet, so nothing will start until it exists"),
		Remedy: "Create it, or correct the name.",
	}
}

// checkInjection warns of what a claim brings and its template does not take. It is
// no refusal since the API reports it in the claim's Ready condition, and the
// template may change.
func checkInjection(in Input) []Fault {
	refused := checkVolumeMetadata(in)
	var faults []Fault
	for _, err := range in.Effective.Errors {
		if slices.ContainsFunc(refused, func(f Fault) bool { return f.Field == err.Field }) {
			continue
		}
		faults = append(faults, Fault{
			Rule: RuleClaim, Warning: true, Error: err,
			Remedy: "Change the claim or the template: as it is, the claim gets no Sandbox.",
		})
	}
	return faults
}
