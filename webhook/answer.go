// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Bounds of an answer. The list of causes is longer than the message.
const (
	maxListed   = 20
	maxCauses   = 100
	maxWarnings = 20
	maxValue    = 100
	maxField    = 400
	maxText     = 600
)

// us names the webhook in errors of its own: the apiserver shows them as those of
// the request.
const us = "agent-sandbox admission"

// errNotReady is the reason of a refusal before the policies are loaded.
var errNotReady = errors.New("the policies are not loaded yet, so nothing can be judged: try again in a few seconds")

// respond turns a verdict into the answer to the apiserver.
func respond(req admission.Request, v verdict) admission.Response {
	denials, warnings := v.with(engine.Deny), v.with(engine.Warn)
	response := admission.Allowed("")
	if len(denials) > 0 {
		response = admission.Denied(message(denials))
		response.Result.Status = metav1.StatusFailure
		response.Result.Details = &metav1.StatusDetails{
			Name: req.Name, Group: req.Kind.Group, Kind: req.Kind.Kind, Causes: causes(denials),
		}
	}
	response.AuditAnnotations = auditAnnotations(v)
	for i, f := range warnings {
		if i == maxWarnings {
			response.Warnings = append(response.Warnings, fmt.Sprintf("%d more warnings", len(warnings)-i))
			break
		}
		response.Warnings = append(response.Warnings, text(f))
	}
	return response
}

// message lists the findings for a person. It counts those too that the engine left
// out of its list.
func message(findings []engine.Finding) string {
	if len(findings) == 1 {
		return text(findings[0])
	}
	listed, total := 0, 0
	var lines []string
	for _, f := range findings {
		total += max(1, f.Omits)
		if f.Omits == 0 && listed < maxListed {
			lines = append(lines, "- "+text(f))
			listed++
		}
	}
	if total > listed {
		lines = append(lines, fmt.Sprintf("and %d more, see status.details.causes", total-listed))
	}
	return strings.Join(append([]string{fmt.Sprintf("%d findings:", total)}, lines...), "\n")
}

// text is one finding as a line: rule: field (value): message. Fix: remediation.
func text(f engine.Finding) string {
	var b strings.Builder
	b.WriteString(f.Rule + ": ")
	if f.Field != "" {
		b.WriteString(place(f))
		if value := shown(f); value != "" {
			b.WriteString(" (" + value + ")")
		}
		b.WriteString(": ")
	}
	b.WriteString(clip.To(explained(f), maxText))
	return b.String()
}

func explained(f engine.Finding) string {
	explanation := strings.TrimSuffix(oneLine(f.Message), ".") + "."
	if f.Remediation != "" {
		explanation += " Fix: " + oneLine(f.Remediation)
	}
	return explanation
}

func causes(findings []engine.Finding) []metav1.StatusCause {
	var list []metav1.StatusCause
	for _, f := range findings[:min(len(findings), maxCauses)] {
		explanation := clip.To(explained(f), maxText)
		if value := shown(f); value != "" {
			explanation = "(" + value + ") " + explanation
		}
		list = append(list, metav1.StatusCause{Type: metav1.CauseType(f.Rule), Field: place(f), Message: explanation})
	}
	return list
}

// shown is the value of a finding as far as it may be shown: values of environment
// variables are secrets, and an object or a list may hold some: commands, headers,
// credentials of a volume. Which ones, nobody can list.
func shown(f engine.Finding) string {
	variable := strings.Contains(f.Field, ".env[") && !strings.HasSuffix(f.Field, ".name")
	if value := strings.TrimSpace(f.Value); variable || strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[") {
		return ""
	}
	return clip.To(oneLine(f.Value), maxValue)
}

// place is the field of a finding. Keys of mappings that no schema knows may be anything.
func place(f engine.Finding) string {
	return clip.To(oneLine(f.Field), maxField)
}

// oneLine is a text without what could be taken for more lines, or for commands of a
// terminal. An apiserver drops warnings with such characters.
func oneLine(text string) string {
	printable := func(r rune) rune {
		if unicode.IsPrint(r) || unicode.IsSpace(r) {
			return r
		}
		return utf8.RuneError
	}
	return strings.Join(strings.Fields(strings.Map(printable, text)), " ")
}

// auditAnnotations name, for the apiserver's audit log, the policies in force, the
// line of the decision log and the rules that had something to say.
func auditAnnotations(v verdict) map[string]string {
	annotations := map[string]string{}
	set := func(key, value string) {
		if value != "" {
			annotations[key] = value
		}
	}
	set("policy-digest", v.digest)
	set("decision-id", v.id)
	set("denied", rules(v.with(engine.Deny)))
	set("warned", rules(v.with(engine.Warn)))
	set("audited", rules(v.with(engine.Audit)))
	set("tolerated", rules(v.tolerated))
	return annotations
}

func rules(findings []engine.Finding) string {
	var ids []string
	for _, f := range findings {
		ids = append(ids, f.Rule)
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), ",")
}

// notReady refuses a request that cannot be judged yet.
func notReady() admission.Response {
	response := admission.Errored(http.StatusServiceUnavailable, fmt.Errorf("%s: %s: %w", us, ruleNotReady, errNotReady))
	response.Result.Reason = metav1.StatusReasonServiceUnavailable
	response.Result.Details = &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: ruleNotReady, Message: errNotReady.Error()}},
	}
	return response
}

// failed refuses a request because of a fault of ours.
func failed(code int32, err error) admission.Response {
	return admission.Errored(code, fmt.Errorf("%s refused the request because of a fault of its own, not of the object: %w", us, err))
}
