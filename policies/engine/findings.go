// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
)

// Bounds of what one decision may carry, in bytes and findings. All that an object may really have of them is there, so that
// an update can be compared with what was before; people are shown fewer.
const (
	maxFindings = 1000
	maxListed   = 100
	maxMessage  = 1024
	maxText     = 512
)

func compare(a, b string) int {
	return strings.Compare(a, b)
}

// finding reads one member of a set of findings: a message, or an object with message, field,
// value, content, amount and remediation. Anything else is a finding all the same.
func (c column) finding(raw any, enforcement Enforcement) Finding {
	info := c.rule.info
	f := Finding{Rule: info.ID, Severity: info.Severity, Enforcement: enforcement, Remediation: info.Remediation}
	if c.entry == entryWarn && f.Enforcement == Deny {
		f.Enforcement = Warn
	}
	object, ok := raw.(map[string]any)
	if !ok {
		f.Message = textOf(raw)
		return f
	}
	f.Message = textOf(object["message"])
	if f.Message == "" {
		f.Message = textOf(raw)
	}
	f.Field = textOf(object["field"])
	f.Value = textOf(object["value"])
	f.Content = contentOf(object["content"])
	f.Amount = amountOf(object["amount"])
	if remediation := textOf(object["remediation"]); remediation != "" {
		f.Remediation = remediation
	}
	return f
}

// digestOf stands for a text that nobody is to be shown.
func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// contentOf stands for the members of a set or list, and for anything else as one; empty for nothing.
func contentOf(value any) string {
	members, ok := value.([]any)
	if !ok && value != nil && value != "" {
		members = []any{value}
	}
	words := make([]string, 0, len(members))
	for _, member := range members {
		words = append(words, digestOf(textOf(member)))
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), " ")
}

// amountOf reads a number, zero when it is none or below.
func amountOf(value any) float64 {
	number, _ := value.(json.Number)
	amount, _ := number.Float64()
	return max(amount, 0)
}

// failures is the finding of a rule that could not judge the object, none where it is off.
func (v *variant) failures(r *rule, reason error) []Finding {
	enforcement := v.enforcement[r.info.ID]
	if enforcement == Off {
		return nil
	}
	return []Finding{{
		Rule: r.info.ID, Severity: r.info.Severity, Enforcement: enforcement, Failure: true, Late: errors.Is(reason, errTimeout),
		Message:     fmt.Sprintf("rule %s could not be evaluated: %v", r.info.ID, reason),
		Remediation: "The rule is at fault, not the object: tell the platform team this message.",
	}}
}

func engineFailure(message, remediation string) Finding {
	return Finding{
		Rule: ruleEngine, Severity: Critical, Enforcement: Deny, Failure: true, Message: message,
		Remediation: remediation,
	}
}

// brokenFindings are those of modules that did not load and have no last good content.
func (s *set) brokenFindings(in Input) []Finding {
	var findings []Finding
	for _, b := range s.broken {
		enforcement := s.overridden(b.Rule, b.Enforcement, in.Namespace)
		if b.LastGood || enforcement == Off || !slices.Contains(b.Kinds, in.Kind) {
			continue
		}
		findings = append(findings, Finding{
			Rule: cmp.Or(b.Rule, Module{Source: b.Source, Name: b.Name}.file()), Severity: b.Severity, Enforcement: enforcement, Failure: true,
			Message:     "the rule does not load: " + b.Reason,
			Remediation: "The rule is at fault, not the object: tell the platform team this message.",
		})
	}
	return findings
}

// settle sorts, deduplicates and bounds findings.
func settle(findings []Finding) []Finding {
	for i := range findings {
		f := &findings[i]
		f.Message, f.Remediation = clip.To(f.Message, maxMessage), clip.To(f.Remediation, maxText)
		f.Field, f.Value, f.Exemption = distinct(f.Field), distinct(f.Value), clip.To(f.Exemption, maxText)
	}
	slices.SortFunc(findings, order)
	return bounded(slices.Compact(findings), maxFindings)
}

// Listed are the findings of a decision as they are shown, logged and reported: a hundred at most, in which those that
// are left out are counted.
func Listed(findings []Finding) []Finding {
	if len(findings) <= maxListed {
		return findings
	}
	return bounded(slices.SortedFunc(slices.Values(findings), order), maxListed)
}

// bounded leaves out sorted findings above a number, in place, and counts them for each enforcement: what refuses a
// request comes first, so that a bound never drops it in favour of less; but one finding of each rule goes before the
// second of any.
func bounded(findings []Finding, most int) []Finding {
	if len(findings) <= most {
		return findings
	}
	var counts []Finding // of those that are left out already
	findings = slices.DeleteFunc(findings, func(f Finding) bool {
		if f.Omits > 0 {
			counts = append(counts, f)
		}
		return f.Omits > 0
	})
	firstOfEachRule(findings)
	findings = append(findings, counts...)
	// What refuses is not mixed with what does not.
	groups := len(byEnforcement(findings[most-len(enforcements):]))
	listed, rest := findings[:most-groups:most-groups], byEnforcement(findings[most-groups:])
	slices.SortFunc(listed, order)
	for _, enforcement := range slices.Backward(enforcements) {
		if count := rest[enforcement]; count > 0 {
			listed = append(listed, Finding{
				Rule: ruleEngine, Severity: Low, Enforcement: enforcement, Omits: count,
				Message:     fmt.Sprintf("%d more findings are not listed", count),
				Remediation: "Correct those that are listed and try again.",
				Content:     digestOf(string(enforcement)), Amount: float64(count),
			})
		}
	}
	return listed
}

// order puts what refuses a request first.
func order(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(slices.Index(enforcements, b.Enforcement), slices.Index(enforcements, a.Enforcement)),
		compare(a.Rule, b.Rule), compare(a.Field, b.Field), compare(a.Value, b.Value), compare(a.Message, b.Message),
		compare(a.Remediation, b.Remediation), compare(a.Content, b.Content), cmp.Compare(a.Amount, b.Amount),
	)
}

// firstOfEachRule puts one finding of each rule and enforcement before the others, in place: there may be very many.
func firstOfEachRule(sorted []Finding) {
	var first []Finding
	rest := len(sorted)
	for i, f := range slices.Backward(sorted) {
		if i == 0 || sorted[i-1].Rule != f.Rule || sorted[i-1].Enforcement != f.Enforcement {
			first = append(first, f)
			continue
		}
		rest--
		sorted[rest] = f
	}
	slices.Reverse(first)
	copy(sorted, first)
}

// byEnforcement counts findings, and those that they stand for.
func byEnforcement(findings []Finding) map[Enforcement]int {
	counts := map[Enforcement]int{}
	for _, f := range findings {
		counts[f.Enforcement] += max(1, f.Omits)
	}
	return counts
}

// distinct cuts a text as clip.To does, and tells texts apart that begin alike: what an object had before an
// update is known again by the place and the value.
func distinct(text string) string {
	if len(text) <= maxText {
		return text
	}
	mark := "#" + digestOf(text)
	return clip.To(text, maxText-len(mark)) + mark
}
