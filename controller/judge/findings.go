// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/defaults"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/validation"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// strictness orders enforcements.
var strictness = map[engine.Enforcement]int{engine.Deny: 0, engine.Warn: 1, engine.Audit: 2, engine.Off: 3}

// ofFaults turns the faults of the API's own rules into findings.
func ofFaults(faults []validation.Fault) []engine.Finding {
	findings := make([]engine.Finding, 0, len(faults))
	for _, fault := range faults {
		f := engine.Finding{
			Rule: fault.Rule, Severity: engine.High, Enforcement: engine.Deny, Field: fault.Field,
			Message: fault.Detail, Remediation: fault.Remedy, Content: fault.Content, Amount: fault.Amount,
			// Without a tier nobody can say what the object may do.
			Failure: fault.Rule == validation.RuleTier,
		}
		if fault.BadValue != nil {
			f.Value = fmt.Sprint(fault.BadValue)
		}
		if fault.Warning {
			f.Severity, f.Enforcement = engine.Low, engine.Warn
		}
		findings = append(findings, f)
	}
	return findings
}

// split returns the findings of rules of the API that nobody configures, and of those that the engine knows.
func split(findings []engine.Finding) (own, native []engine.Finding) {
	for _, f := range findings {
		if engine.IsNative(f.Rule) {
			native = append(native, f)
		} else {
			own = append(own, f)
		}
	}
	return own, native
}

// ofUnmet turns hardened defaults that are still unset into findings. A stored object
// may be older than the default.
func ofUnmet(request defaults.Request, stored bool) []engine.Finding {
	errs := defaults.Unmet(request)
	findings := make([]engine.Finding, 0, len(errs))
	for _, err := range errs {
		f := engine.Finding{
			Rule: RuleDefaults, Severity: engine.High, Enforcement: engine.Deny, Field: err.Field, Message: err.Detail,
			Remediation: "If it happens again, set the field yourself, and tell the platform team.",
		}
		if stored {
			f.Severity, f.Enforcement = engine.Medium, engine.Audit
			f.Message = "the field is unset, and admission would set it today"
			f.Remediation = "Set the field, or create the object again."
		}
		findings = append(findings, f)
	}
	return findings
}

// merge joins findings in a stable order: what refuses comes first. Of two findings
// of one rule about one field, the stricter stays; the API's own come first.
func merge(own, policies []engine.Finding) []engine.Finding {
	findings, place := slices.Clone(own), map[[2]string]int{}
	for i, f := range slices.Backward(own) {
		place[[2]string{f.Rule, f.Field}] = i
	}
	for _, f := range policies {
		same, found := place[[2]string{f.Rule, f.Field}]
		switch {
		case !found:
			findings = append(findings, f)
		case strictness[f.Enforcement] < strictness[own[same].Enforcement]:
			findings[same] = f
		}
	}
	slices.SortStableFunc(findings, func(a, b engine.Finding) int {
		return cmp.Or(
			cmp.Compare(strictness[a.Enforcement], strictness[b.Enforcement]),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message),
		)
	})
	return findings
}

// Distinct keeps one line for each fault: what a rule of its own says about a field,
// the Pod Security levels do not say again, unless they are stricter.
func Distinct(findings []engine.Finding) []engine.Finding {
	kept := make([]engine.Finding, 0, len(findings))
	for _, f := range findings {
		repeated := ofPodSecurity(f) && slices.ContainsFunc(findings, func(other engine.Finding) bool {
			return !ofPodSecurity(other) && !other.Failure && covers(other.Field, f) && strictness[other.Enforcement] <= strictness[f.Enforcement]
		})
		if !repeated {
			kept = append(kept, f)
		}
	}
	return kept
}

func ofPodSecurity(f engine.Finding) bool {
	return !f.Failure && (f.Rule == engine.RulePSSBaseline || f.Rule == engine.RulePSSRestricted)
}

// covers reports whether a finding about the field tells what f tells: it is about
// the same field, the profile whose type f is about, or a member of that list. The
// baseline level judges a field as a whole, so what lies within it counts; restricted
// may ask for more beside it.
func covers(field string, f engine.Finding) bool {
	if f.Field == field+".type" {
		return true
	}
	rest, within := strings.CutPrefix(field, f.Field)
	if !within || f.Field == "" {
		return false
	}
	return rest == "" || rest[0] == '[' || rest[0] == '.' && f.Rule == engine.RulePSSBaseline
}
