// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	apiquantity "github.com/agent-sandbox-platform/agent-sandbox/controller/api/quantity"
)

// Rules of the Pod Security Standards. The checks are those of Kubernetes; see demands for what
// decides on their enforcement.
const (
	RulePSSBaseline   = "pss-baseline"
	RulePSSRestricted = "pss-restricted"
)

var podSecurityRules = []string{RulePSSBaseline, RulePSSRestricted}

func isPodSecurity(id string) bool {
	return slices.Contains(podSecurityRules, id)
}

// podSecurity evaluates the checks of the Pod Security Standards.
type podSecurity struct {
	checks []policy.Check
	// infos describe the two rules; configured is what the configuration says of them.
	infos      []RuleInfo
	configured map[string]Enforcement
}

func newPodSecurity(cfg Configuration) *podSecurity {
	p := &podSecurity{checks: policy.DefaultChecks(), configured: map[string]Enforcement{}}
	describe := func(id string, severity Severity, enforcement Enforcement, title, code string) {
		info := RuleInfo{
			ID: id, Code: code, Title: title, Category: "isolation", Severity: severity, Kinds: kinds,
			Default: enforcement, Enforcement: enforcement, Source: SourceLibrary,
			Description: "The checks of Kubernetes itself, at the level and version that the tier and the label " +
				"pod-security.kubernetes.io/enforce of the namespace ask for.",
			Remediation: "Change the field as the finding says.",
			Controls:    []string{"CIS 5.2.1"},
			Links:       []string{"https://kubernetes.io/docs/concepts/security/pod-security-standards/"},
		}
		if given := cfg.Rules[id].Enforcement; given != "" {
			p.configured[id], info.Enforcement = given, given
		}
		p.infos = append(p.infos, info)
	}
	describe(RulePSSBaseline, Critical, Deny, "Pod Security Standard: baseline", "SBX-007")
	describe(RulePSSRestricted, Medium, Warn, "Pod Security Standard: restricted", "SBX-008")
	return p
}

// demand is a level of the standards that an object has to meet.
type demand struct {
	level       podsecurityapi.Level
	version     podsecurityapi.Version
	enforcement Enforcement
}

// demands are what the tier, the configuration and the namespace ask for, each at its own
// version. None of them weakens another. The configuration's own defaults count only where there
// is no tier: what a tier tolerates, it decides. Without a Pod there is nothing to judge.
func (p *podSecurity) demands(in Input) []demand {
	if in.Pod == nil && (in.Kind == KindSandboxWarmPool || in.Kind == KindSandboxClaim) {
		return nil
	}
	tier := objectAt(in.Tier, "podSecurity")
	version := parseVersion(tier["version"])
	var found []demand
	ask := func(level podsecurityapi.Level, version podsecurityapi.Version, e Enforcement) {
		if level != podsecurityapi.LevelPrivileged && e != Off {
			found = append(found, demand{level, version, e})
		}
	}
	for _, info := range p.infos {
		if given, ok := p.configured[info.ID]; ok {
			ask(levelOf(info.ID), version, given)
		} else if tier == nil {
			ask(levelOf(info.ID), version, info.Default)
		}
	}
	if tier != nil {
		ask(parseLevel(tier["deny"]), version, Deny)
		ask(parseLevel(tier["warn"]), version, Warn)
		ask(parseLevel(tier["audit"]), version, Audit)
	}
	for _, own := range []struct {
		level, version string
		enforcement    Enforcement
	}{
		{podsecurityapi.EnforceLevelLabel, podsecurityapi.EnforceVersionLabel, Deny},
		{podsecurityapi.WarnLevelLabel, podsecurityapi.WarnVersionLabel, Warn},
		{podsecurityapi.AuditLevelLabel, podsecurityapi.AuditVersionLabel, Audit},
	} {
		if label, ok := in.Namespace.Labels[own.level]; ok {
			ask(parseLevel(label), parseVersion(in.Namespace.Labels[own.version]), own.enforcement)
		}
	}
	return found
}

func levelOf(rule string) podsecurityapi.Level {
	if rule == RulePSSRestricted {
		return podsecurityapi.LevelRestricted
	}
	return podsecurityapi.LevelBaseline
}

// parseLevel reads a level; absent means privileged, and what cannot be read means restricted.
func parseLevel(value any) podsecurityapi.Level {
	text, isText := value.(string)
	if value == nil || (isText && text == "") {
		return podsecurityapi.LevelPrivileged
	}
	// On an error the library gives restricted, which is what an unreadable level has to mean.
	level, _ := podsecurityapi.ParseLevel(text)
	return level
}

// parseVersion reads a version; absent or unreadable means the latest that the library knows.
func parseVersion(value any) podsecurityapi.Version {
	text, _ := value.(string)
	version, err := podsecurityapi.ParseVersion(text)
	if err != nil {
		return podsecurityapi.LatestVersion()
	}
	return version
}

// violation is a failed check at one place.
type violation struct {
	rule, check, field, value, detail string
	enforcement                       Enforcement
}

// key tells two reports of the same fault apart from two faults.
func (v violation) key() string {
	return v.check + "\x00" + v.field
}

// rulesOf are the ids of the rules that judge by the demands.
func rulesOf(demands []demand) []string {
	if slices.ContainsFunc(demands, func(d demand) bool { return d.level == podsecurityapi.LevelRestricted }) {
		return podSecurityRules
	}
	return []string{RulePSSBaseline}
}

// evaluate returns the findings. A check that runs when the context ends is a finding that does what the strictest
// demand asks for.
func (p *podSecurity) evaluate(ctx context.Context, in Input, demands []demand) (findings []Finding) {
	defer func() {
		if reason := recover(); reason != nil {
			findings = []Finding{p.unreadable(demands, fmt.Errorf("it panicked: %v", reason))}
		}
	}()
	pod, err := decodePod(in)
	if err != nil {
		return []Finding{p.unreadable(demands, err)}
	}
	violations := map[string]violation{}
	for _, d := range demands {
		for _, v := range p.violations(ctx, pod, d) {
			if other, ok := violations[v.key()]; ok {
				v.enforcement = strictest(v.enforcement, other.enforcement)
			}
			violations[v.key()] = v
		}
	}
	if ctx.Err() != nil {
		return []Finding{p.late(demands, errTimeout)}
	}
	for _, key := range slices.Sorted(maps.Keys(violations)) {
		findings = append(findings, p.finding(violations[key]))
	}
	return findings
}

func (p *podSecurity) finding(v violation) Finding {
	info, content := p.info(v.rule), ""
	if strings.HasPrefix(v.value, "{") && !strings.Contains(v.field, ".securityContext.") {
		// Options of a volume, or variables, may be secrets: the type of the volume, or which container, says enough.
		v.value, content = v.field[strings.LastIndexByte(v.field, '.')+1:], digestOf(v.value)
	}
	return Finding{
		Rule: v.rule, Severity: info.Severity, Enforcement: v.enforcement, Field: v.field, Value: v.value,
		Content: content, Message: v.detail, Remediation: cmp.Or(places[policy.CheckID(v.check)].remedy, info.Remediation),
	}
}

func (p *podSecurity) info(id string) RuleInfo {
	return p.infos[slices.IndexFunc(p.infos, func(i RuleInfo) bool { return i.ID == id })]
}

// unreadable is for an object that cannot be judged.
func (p *podSecurity) unreadable(demands []demand, reason error) Finding {
	return p.failure(demands, fmt.Sprintf("the Pod cannot be read: %v", reason),
		"Give every field of the Pod the type that Kubernetes documents for it.")
}

// late is for an object that could not be judged in time.
func (p *podSecurity) late(demands []demand, reason error) Finding {
	f := p.failure(demands, fmt.Sprintf("the Pod could not be judged by the Pod Security Standards: %v", reason),
		"Try again; if it happens again, shorten the lists of the Pod.")
	f.Late = errors.Is(reason, errTimeout)
	return f
}

// failure does what the strictest demand asks for.
func (p *podSecurity) failure(demands []demand, message, remediation string) Finding {
	f := Finding{
		Rule: RulePSSBaseline, Severity: Critical, Enforcement: Off, Failure: true, Message: message, Remediation: remediation,
	}
	for _, d := range demands {
		f.Enforcement = strictest(f.Enforcement, d.enforcement)
	}
	return f
}

// pod is the Pod as the checks want it, and as it was written.
type pod struct {
	path     string
	raw      map[string]any
	metadata metav1.ObjectMeta
	spec     corev1.PodSpec
}

// decodePod reads the Pod as if it had neither hostUsers nor os: with user namespaces, and on
// Windows, the checks tolerate more, and a sandboxed runtime need not honour the one nor be the other.
func decodePod(in Input) (pod, error) {
	p := pod{path: in.PodPath, raw: in.Pod}
	var spec checkedSpec
	var metadata checkedMetadata
	for key, target := range map[string]any{"spec": &spec, "metadata": &metadata} {
		raw, ok := in.Pod[key].(map[string]any)
		if !ok && in.Pod[key] != nil {
			return p, fmt.Errorf("%s is %s, not an object", key, textOf(in.Pod[key]))
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, target); err != nil {
			return p, fmt.Errorf("%s: %w", key, err)
		}
	}
	raw := objectAt(in.Pod, "spec")
	volumes, err := decodeVolumes(raw["volumes"])
	if err != nil {
		return p, fmt.Errorf("spec: %w", err)
	}
	p.spec, p.metadata.Annotations = spec.whole(volumes), metadata.Annotations
	return p, checkQuantities(raw)
}

// checkQuantities refuses amounts that Kubernetes could not read: nobody could decode the object.
func checkQuantities(spec map[string]any) error {
	var err error
	check := func(owner map[string]any) {
		for _, bound := range boundNames {
			eachValue(objectAt(owner, "resources")[bound], func(resource string, written any) {
				if written != nil && !ofText(parsable, writtenText(written)) {
					err = fmt.Errorf("resources.%s.%s is %s, not a quantity", bound, resource, textOf(written))
				}
			})
		}
	}
	check(spec)
	for _, list := range containerLists {
		each(spec[list], nil, func(_ string, container map[string]any, _ *ast.Term) { check(container) })
	}
	return err
}

var parsable = newCache(func(text string) bool {
	_, err := apiquantity.Parse(text)
	return err == nil
})

// violations runs the checks of the level. Those of baseline always run: restricted leaves some out
// that it takes to be implied, which is so for real Pods only. What it returns is not complete when the
// context ended.
func (p *podSecurity) violations(ctx context.Context, subject pod, d demand) []violation {
	found := map[policy.CheckID][]violation{}
	var overridden []policy.CheckID
	for _, check := range p.checks {
		if check.Level == podsecurityapi.LevelRestricted && d.level != podsecurityapi.LevelRestricted {
			continue
		}
		at := atVersion(check, d.version)
		if at == nil || ctx.Err() != nil || at.CheckPod(&subject.metadata, &subject.spec).Allowed {
			continue
		}
		rule := RulePSSBaseline
		if check.Level == podsecurityapi.LevelRestricted {
			rule = RulePSSRestricted
			overridden = append(overridden, at.OverrideCheckIDs...)
		}
		for _, v := range locate(ctx, subject, check.ID, at.CheckPod) {
			v.rule, v.enforcement = rule, d.enforcement
			found[check.ID] = append(found[check.ID], v)
		}
	}
	said := fieldsOf(found, overridden)
	var all []violation
	for _, check := range p.checks {
		for _, v := range found[check.ID] {
			// What a check of baseline says about the field, the check of restricted that stands for it need
			// not say again.
			if v.rule != RulePSSRestricted || !said[v.field] {
				all = append(all, v)
			}
		}
	}
	return all
}

func fieldsOf(found map[policy.CheckID][]violation, ids []policy.CheckID) map[string]bool {
	fields := map[string]bool{}
	for _, id := range ids {
		for _, v := range found[id] {
			fields[v.field] = true
		}
	}
	return fields
}

// atVersion returns the check as it is at the version, nil where it does not exist yet.
func atVersion(check policy.Check, version podsecurityapi.Version) *policy.VersionedCheck {
	for i := len(check.Versions) - 1; i >= 0; i-- {
		if !version.Older(check.Versions[i].MinimumVersion) {
			return &check.Versions[i]
		}
	}
	return nil
}
