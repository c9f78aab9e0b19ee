// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
)

// Rules that Go decides, because they hold an object to what it was before and to the keys of the API. Their
// findings come with the input; what they do, and where they are listed, is as for every other rule.
const (
	RuleReservedMetadata = "reserved-metadata"
	RuleForgedOwner      = "forged-owner"
)

// IsNative says whether the findings of a rule belong into Input.Native.
func IsNative(rule string) bool {
	return rule == RuleReservedMetadata || rule == RuleForgedOwner
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
	}
	for i := range infos {
		info := &infos[i]
		info.Category, info.Severity, info.Kinds, info.Controls = "metadata", High, kinds, []string{"none"}
		info.Floor, info.Source, info.Default, info.Enforcement = true, SourceLibrary, Deny, Deny
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
		if slices.Index(enforcements, s.native[i].Enforcement) < slices.Index(enforcements, f.Enforcement) {
			f.Enforcement = s.native[i].Enforcement
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
	if IsNative(id) && relaxes {
		return fmt.Errorf("%s: %s: rule %s holds everywhere, the cluster itself enforces it", c.file(), path, id)
	}
	return nil
}
