// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
)

// Rules that Go decides, because they hold an object to what it was before, to the keys of the API or to what exists
// in the cluster. Their findings come with the input; what they do, and where they are listed, is as for every other
// rule. The first two the cluster enforces too, so nothing relaxes them in a single namespace.
const (
	RuleReservedMetadata  = "reserved-metadata"
	RuleForgedOwner       = "forged-owner"
	RuleRuntimeClassFound = "runtimeclass-exists"
	RuleReference         = "reference"
	RuleClaimInjection    = "claim-injection"
)

var nativeRules = []string{RuleReservedMetadata, RuleForgedOwner, RuleRuntimeClassFound, RuleReference, RuleClaimInjection}

// IsNative says whether the findings of a rule belong into Input.Native.
func IsNative(rule string) bool {
	return slices.Contains(nativeRules, rule)
}

// nativeInfos describes the rules with the enforcement that is configured.
func nativeInfos(cfg Configuration) []RuleInfo {
	infos := []RuleInfo{
		{
			ID: RuleReservedMetadata, Code: "SBX-091", Title: "Labels and annotations of the platform",
			Description: "Keys by which the controllers find, select and select against belong to them. A template's are dropped " +
				"with a warning, others are refused.",
			Remediation: "Remove the key: the platform sets it.",
			Links:       []string{"https://kubernetes.io/docs/reference/labels-annotations-taints/"},
		},
		{
			ID: RuleForgedOwner, Code: "SBX-092", Title: "Owners by controllers only",
			Description: "An object that names one of ours as its controller would be taken for a part of it, and join its network.",
			Remediation: "Remove the entry of ownerReferences.",
			Links:       []string{"https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/"},
		},
		{
			ID: RuleRuntimeClassFound, Code: "SBX-107", Category: "isolation", Title: "A RuntimeClass that exists", Default: Warn,
			Description: "A Pod of a RuntimeClass that no node serves does not start. It may come later, so this only warns.",
			Remediation: "Choose a RuntimeClass of the cluster.",
			Links:       []string{"https://kubernetes.io/docs/concepts/containers/runtime-class/"},
		},
		{
			ID: RuleReference, Code: "SBX-108", Category: "lifecycle", Title: "Templates and pools that exist", Default: Warn,
			Description: "A claim without a pool and a pool without a template wait. It may come later, so this only warns.",
			Remediation: "Create what is named, or name another.",
			Links:       []string{"https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"},
		},
		{
			ID: RuleClaimInjection, Code: "SBX-109", Category: "lifecycle", Title: "What a claim may add", Default: Warn,
			Description: "A claim that adds what its template does not let it add gets no Sandbox. The template may change, so this only warns.",
			Remediation: "Remove from the claim what the template does not allow.",
			Links:       []string{"https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/"},
		},
	}
	for i := range infos {
		info := &infos[i]
		if info.Default == "" {
			info.Category, info.Severity, info.Floor, info.Default = "metadata", High, true, Deny
		} else {
			info.Severity = Low
		}
		info.Kinds, info.Controls, info.Source, info.Enforcement = kinds, []string{"none"}, SourceLibrary, info.Default
		if given := cfg.Rules[info.ID].Enforcement; given != "" {
			info.Enforcement = given
		}
	}
	return infos
}

// ofNative are the findings that the input brings, with what the configuration says of their rules: at most that.
func (s *set) ofNative(in Input) []Finding {
	var findings []Finding
	for _, f := range in.Native {
		i := slices.IndexFunc(s.native, func(info RuleInfo) bool { return info.ID == f.Rule })
		if i < 0 {
			findings = append(findings, engineFailure(fmt.Sprintf("finding of rule %q, which is not decided outside of the engine", f.Rule), ""))
			continue
		}
		enforcement := s.overridden(f.Rule, s.native[i].Enforcement, in.Namespace)
		if slices.Index(enforcements, enforcement) < slices.Index(enforcements, f.Enforcement) {
			f.Enforcement = enforcement
		}
		if f.Enforcement != Off {
			findings = append(findings, f)
		}
	}
	return findings
}

// evaluatedNatives are the ids of the rules that are on.
func (s *set) evaluatedNatives() []string {
	var ids []string
	for _, info := range s.native {
		if info.Enforcement != Off {
			ids = append(ids, info.ID)
		}
	}
	return ids
}

// checkNatives refuses parameters of rules that have none.
func (c Configuration) checkNatives() []error {
	var errs []error
	for _, info := range nativeInfos(c) {
		if len(c.Rules[info.ID].Parameters) > 0 {
			errs = append(errs, fmt.Errorf("%s: rules.%s.parameters: the rule has none; remove them", c.file(), info.ID))
		}
	}
	return errs
}

// nativeFloor says whether an entry would relax a rule that the cluster enforces too.
func (c Configuration) nativeFloor(path, id string, relaxes bool) error {
	if floor := id == RuleReservedMetadata || id == RuleForgedOwner; floor && relaxes {
		return fmt.Errorf("%s: %s: rule %s holds everywhere, the cluster itself enforces it", c.file(), path, id)
	}
	return nil
}
