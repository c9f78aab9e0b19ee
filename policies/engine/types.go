// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"
)

// Enforcement says what a finding does to a request.
type Enforcement string

// What a finding does: Deny refuses the request, Warn tells the user, Audit is only recorded,
// and a rule that is Off is not evaluated.
const (
	Deny  Enforcement = "Deny"
	Warn  Enforcement = "Warn"
	Audit Enforcement = "Audit"
	Off   Enforcement = "Off"
)

// Severity says how much harm is done when a rule is broken.
type Severity string

// Severities from least to most.
const (
	Low      Severity = "low"
	Medium   Severity = "medium"
	High     Severity = "high"
	Critical Severity = "critical"
)

// Kinds that rules judge.
const (
	KindSandbox         = "Sandbox"
	KindSandboxTemplate = "SandboxTemplate"
	KindSandboxWarmPool = "SandboxWarmPool"
	KindSandboxClaim    = "SandboxClaim"
)

// Sources of an evaluation.
const (
	SourceAdmission = "admission"
	SourceAudit     = "audit"
	SourceCLI       = "cli"
)

// enforcements and severities from weakest to strongest.
var (
	enforcements = []Enforcement{Off, Audit, Warn, Deny}
	severities   = []Severity{Low, Medium, High, Critical}
	kinds        = []string{KindSandbox, KindSandboxTemplate, KindSandboxWarmPool, KindSandboxClaim}
)

// strictest returns the stronger of two enforcements.
func strictest(a, b Enforcement) Enforcement {
	if slices.Index(enforcements, a) >= slices.Index(enforcements, b) {
		return a
	}
	return b
}

// Finding is one fault of an object, in words for its user.
type Finding struct {
	Rule        string      `json:"rule"`
	Severity    Severity    `json:"severity"`
	Enforcement Enforcement `json:"enforcement"`
	// Field is the path of the fault within the object, empty when it has none.
	Field string `json:"field,omitempty"`
	// Value is what stands there: text as it is, anything else as JSON.
	Value       string `json:"value,omitempty"`
	Message     string `json:"message"`
	Remediation string `json:"remediation,omitempty"`
	// Exemption says why, by whom and until when the finding is only recorded.
	Exemption string `json:"exemption,omitempty"`
	// Failure says that the rule itself failed, so that the object was not judged by it.
	Failure bool `json:"failure,omitempty"`
	// Late says that it failed because its time was over, as on a machine that has too
	// much to do: neither the object nor the rule need be at fault. A rule that is not run
	// any more because that happened to it too often is not late.
	Late bool `json:"-"`
	// Content stands for what the finding is about beside the value, one word for each part in order, empty when the
	// value is all. Nobody is shown what it stands for: it tells the finding from those that the object had before an
	// update, of which it may only lose parts.
	Content string `json:"-"`
	// Amount is how much there is of something that is too much, in whatever unit: an update may bring a smaller one.
	// It is zero for a finding that is about no amount.
	Amount float64 `json:"-"`
	// Omits is how many findings this one stands for, because there were too many to list.
	Omits int `json:"omits,omitempty"`
}

// UserInfo is who asked; it is empty outside admission.
type UserInfo struct {
	Username string
	UID      string
	Groups   []string
}

// NamespaceInfo is the namespace of the object.
type NamespaceInfo struct {
	Name        string
	Labels      map[string]string
	Annotations map[string]string
}

// Input is what one evaluation judges. Maps are JSON as submitted; none of them is changed, and nobody may
// change them afterwards: a rule that does not end in time may read on.
type Input struct {
	// ID names the request in the decision log; one is made when it is empty.
	ID string
	// Operation is CREATE, UPDATE or DELETE. A DELETE is not judged.
	Operation string
	Kind      string
	User      UserInfo
	Object    map[string]any
	OldObject map[string]any
	Namespace NamespaceInfo
	// Pod is the effective Pod template, {metadata, spec}. It is nil when there is none yet.
	Pod map[string]any
	// PodPath is where the Pod stands, for example spec.podTemplate.
	PodPath  string
	Template map[string]any
	Pool     map[string]any
	// Tier is the JSON of the tier of the namespace, TierName its name.
	Tier        map[string]any
	TierName    string
	Environment map[string]any
	// Native are the findings of rules that Go decides, see IsNative.
	Native []Finding
	// DryRun says that nothing is stored whatever the decision; the decision log tells so.
	DryRun bool
	// Source is one of SourceAdmission, SourceAudit and SourceCLI.
	Source string
	// Now is the time that rules see; the engine's clock gives it when it is zero.
	Now time.Time
}

// Decision is the outcome of one evaluation.
type Decision struct {
	// Digest names the set of rules and configuration that decided.
	Digest   string    `json:"digest"`
	Findings []Finding `json:"findings,omitempty"`
	// Evaluated lists the ids of the rules that judged the object.
	Evaluated []string `json:"evaluated,omitempty"`
	// Validity is for those who remember the decision.
	Validity Validity `json:"-"`
}

// Validity says what, besides the set and the object, decided: with another time or other data the same
// object may be judged otherwise.
type Validity struct {
	// Until is when the first exemption ends without which there would be other findings; zero for never.
	Until time.Time
	// Timed says that a rule read the time.
	Timed bool
	// Read is what of the cluster rules read.
	Read []Data
}

// Denied says whether any finding refuses the request.
func (d Decision) Denied() bool {
	return len(d.Denials()) > 0
}

// Denials returns the findings that refuse the request.
func (d Decision) Denials() []Finding {
	return d.with(Deny)
}

// Warnings returns the findings that the user is told of.
func (d Decision) Warnings() []Finding {
	return d.with(Warn)
}

// Audits returns the findings that are only recorded.
func (d Decision) Audits() []Finding {
	return d.with(Audit)
}

func (d Decision) with(e Enforcement) []Finding {
	var found []Finding
	for _, f := range d.Findings {
		if f.Enforcement == e {
			found = append(found, f)
		}
	}
	return found
}
