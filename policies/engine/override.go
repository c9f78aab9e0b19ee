// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kjson "sigs.k8s.io/json"
)

// Override says what is different in some namespaces. Where several match, the later one wins, field by
// field and parameter by parameter.
type Override struct {
	Name string `json:"name"`
	// NamespaceSelector selects by labels of the namespace, kubernetes.io/metadata.name included.
	NamespaceSelector metav1.LabelSelector  `json:"namespaceSelector"`
	Rules             map[string]RuleConfig `json:"rules"`

	selector labels.Selector
}

// Exemption takes objects out of a rule until a day. The findings about them are then recorded only.
type Exemption struct {
	Rule string `json:"rule"`
	// Namespaces and Objects are names, those of objects may end in "*"; Kinds narrows to kinds.
	Namespaces []string `json:"namespaces,omitempty"`
	Objects    []string `json:"objects,omitempty"`
	Kinds      []string `json:"kinds,omitempty"`
	Reason     string   `json:"reason"`
	Owner      string   `json:"owner"`
	// Expires is the last day, in UTC, as in 2027-01-31.
	Expires string `json:"expires"`

	until time.Time
}

const (
	// maxOverrides bounds how many selectors one request is held against.
	maxOverrides = 32
	// warnBefore is how long before its end an exemption is reported.
	warnBefore = 7 * 24 * time.Hour
)

// ExemptionStatus is an exemption and where it stands.
type ExemptionStatus struct {
	Exemption
	// Expired ones do not work any more; those that are Expiring have a week left at most.
	Expired, Expiring bool
}

// ExemptionsAt lists the exemptions and where they stand at the time.
func (c Configuration) ExemptionsAt(now time.Time) []ExemptionStatus {
	var all []ExemptionStatus
	for _, x := range c.Exemptions {
		expired := x.expired(now)
		all = append(all, ExemptionStatus{Exemption: x, Expired: expired, Expiring: !expired && x.expired(now.Add(warnBefore))})
	}
	return all
}

// parseOverrides and parseExemptions return errors that begin with the path of what is wrong.
func parseOverrides(raw any) ([]Override, error) {
	entries, err := listOf(raw, "overrides")
	var overrides []Override
	names := map[string]bool{}
	errs := []error{err}
	for i, entry := range entries {
		o, err := parseOverride(entry)
		if err == nil && names[o.Name] {
			err = fmt.Errorf(".name is %q, which another has already; use another", o.Name)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("overrides[%d]%w", i, err))
		}
		names[o.Name] = true
		overrides = append(overrides, o)
	}
	return overrides, errors.Join(errs...)
}

func parseOverride(raw any) (Override, error) {
	var o Override
	fields, _ := raw.(map[string]any)
	rules, _ := fields["rules"].(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(rules)) {
		if _, err := parseRule(rules[id]); err != nil {
			return o, fmt.Errorf(".rules.%s%w", id, err)
		}
	}
	err := decodeStrictly(raw, &o)
	if err != nil {
		return o, err
	}
	for _, id := range slices.Sorted(maps.Keys(o.Rules)) {
		if given := o.Rules[id].Enforcement; given != "" && !slices.Contains(enforcements, given) {
			return o, fmt.Errorf(".rules.%s.enforcement is %q; use one of %s", id, given, list(enforcements))
		}
	}
	if o.selector, err = metav1.LabelSelectorAsSelector(&o.NamespaceSelector); err != nil {
		return o, fmt.Errorf(".namespaceSelector: %w", err)
	}
	switch {
	case o.Name == "":
		return o, errors.New(`.name is ""; say in a word or two which namespaces it is for`)
	case o.selector.Empty():
		return o, errors.New(".namespaceSelector selects every namespace; write what holds everywhere under rules")
	case len(o.Rules) == 0:
		return o, errors.New(".rules is empty; name a rule with enforcement or parameters")
	}
	return o, nil
}

func parseExemptions(raw any) ([]Exemption, error) {
	entries, err := listOf(raw, "exemptions")
	var exemptions []Exemption
	errs := []error{err}
	for i, entry := range entries {
		var x Exemption
		err := decodeStrictly(entry, &x)
		if err == nil {
			err = x.check()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("exemptions[%d]%w", i, err))
		}
		exemptions = append(exemptions, x)
	}
	return exemptions, errors.Join(errs...)
}

func (x *Exemption) check() error {
	for _, required := range []struct{ field, value, remedy string }{
		{"rule", x.Rule, "name a rule"},
		{"reason", x.Reason, "say why"},
		{"owner", x.Owner, "say who answers for it"},
	} {
		if strings.TrimSpace(required.value) == "" {
			return fmt.Errorf(".%s is %q; %s", required.field, required.value, required.remedy)
		}
	}
	if len(x.Namespaces)+len(x.Objects) == 0 {
		return errors.New(" has neither namespaces nor objects; name at least one, or turn the rule off for all")
	}
	for _, name := range x.Namespaces {
		if name == "" || strings.Contains(name, "*") {
			return fmt.Errorf(".namespaces has %q; write names, or an override with a namespaceSelector", name)
		}
	}
	for _, name := range x.Objects {
		if prefix, _ := strings.CutSuffix(name, "*"); prefix == "" || strings.Contains(prefix, "*") {
			return fmt.Errorf(".objects has %q; write a name, or the beginning of one and *", name)
		}
	}
	for _, kind := range x.Kinds {
		if !slices.Contains(kinds, kind) {
			return fmt.Errorf(".kinds has %q; use %s", kind, list(kinds))
		}
	}
	day, err := time.Parse(time.DateOnly, x.Expires)
	if err != nil {
		return fmt.Errorf(".expires is %q; write the last day, as in 2027-01-31", x.Expires)
	}
	x.until = day.AddDate(0, 0, 1)
	return nil
}

func (x *Exemption) expired(now time.Time) bool {
	return !now.Before(x.until)
}

// covers says whether the object is exempt.
func (x *Exemption) covers(in Input) bool {
	metadata := objectAt(in.Object, "metadata")
	name, _ := metadata["name"].(string)
	generateName, _ := metadata["generateName"].(string)
	return (len(x.Namespaces) == 0 || slices.Contains(x.Namespaces, in.Namespace.Name)) &&
		(len(x.Kinds) == 0 || slices.Contains(x.Kinds, in.Kind)) &&
		(len(x.Objects) == 0 || slices.ContainsFunc(x.Objects, func(pattern string) bool { return matches(pattern, name, generateName) }))
}

// matches says whether a pattern is for the object. A name that is still to be generated will be none that is written
// out, and begins as its generateName does.
func matches(pattern, name, generateName string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	if name == "" {
		return isPrefix && strings.HasPrefix(generateName, prefix)
	}
	return name == pattern || isPrefix && strings.HasPrefix(name, prefix)
}

func (o Override) selects(namespace NamespaceInfo) bool {
	set := labels.Set(namespace.Labels)
	if _, ok := set[corev1.LabelMetadataName]; !ok {
		set = labels.Merge(set, labels.Set{corev1.LabelMetadataName: namespace.Name})
	}
	return o.selector.Matches(set)
}

// overridden is the enforcement of a rule in a namespace: what the last override that selects it says, or else the
// one given.
func (s *set) overridden(rule string, enforcement Enforcement, namespace NamespaceInfo) Enforcement {
	for _, o := range s.overrides {
		if given := o.Rules[rule].Enforcement; given != "" && o.selects(namespace) {
			enforcement = given
		}
	}
	return enforcement
}

// exempt turns findings of rules that the object is exempt from into records. It says when the first of the
// exemptions that did so ends; zero when none did.
func (s *set) exempt(findings []Finding, in Input) (until time.Time) {
	for _, x := range s.exemptions {
		if x.expired(in.Now) || !x.covers(in) {
			continue
		}
		for i := range findings {
			if findings[i].Rule != x.Rule {
				continue
			}
			findings[i].Enforcement = Audit
			findings[i].Exemption = fmt.Sprintf("until %s by %s: %s", x.Expires, x.Owner, x.Reason)
			if until.IsZero() || x.until.Before(until) {
				until = x.until
			}
		}
	}
	return until
}

// checkExceptions refuses overrides and exemptions of rules that the tier decides on, or that are the floor.
func (c Configuration) checkExceptions(rules map[string]*rule) []error {
	var errs []error
	check := func(path, id string, relaxes bool) {
		r, ok := rules[id]
		if err := c.nativeFloor(path, id, relaxes); err != nil {
			errs = append(errs, err)
		}
		switch {
		case isPodSecurity(id):
			errs = append(errs, fmt.Errorf("%s: %s: rule %s follows the tier; give the namespace another tier", c.file(), path, id))
		case ok && r.info.Floor && relaxes:
			errs = append(errs, fmt.Errorf("%s: %s: rule %s holds everywhere, the cluster itself enforces it; only a tier relaxes it", c.file(), path, id))
		}
	}
	if len(c.Overrides) > maxOverrides {
		errs = append(errs, fmt.Errorf("%s: overrides has %d entries; join some, at most %d are allowed", c.file(), len(c.Overrides), maxOverrides))
	}
	for i, o := range c.Overrides {
		for _, id := range slices.Sorted(maps.Keys(o.Rules)) {
			path, given := fmt.Sprintf("overrides[%d].rules.%s", i, id), o.Rules[id]
			check(path, id, given.Enforcement != "" && given.Enforcement != Deny)
			if r, ok := rules[id]; ok && r.info.Floor && len(given.Parameters) > 0 {
				errs = append(errs, fmt.Errorf("%s: %s.parameters: the cluster itself enforces rule %s, by the parameters under rules.%s; set them there",
					c.file(), path, id, id))
			}
		}
	}
	for i, x := range c.Exemptions {
		check(fmt.Sprintf("exemptions[%d].rule", i), x.Rule, true)
	}
	return errs
}

func listOf(raw any, field string) ([]any, error) {
	entries, ok := raw.([]any)
	if !ok && raw != nil {
		return nil, fmt.Errorf("%s is %s; write a list", field, textOf(raw))
	}
	return entries, nil
}

// decodeStrictly refuses fields that the target has not, letter by letter: one that differs in case would otherwise
// be read where what was checked is not.
func decodeStrictly(raw, target any) error {
	data, err := json.Marshal(raw)
	if err != nil {
		return fmt.Errorf(": %w", err)
	}
	unknown, err := kjson.UnmarshalStrict(data, target)
	if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf(".%s is a %s; write a %s", wrongType.Field, wrongType.Value, wrongType.Type)
	}
	if err = errors.Join(append(unknown, err)...); err != nil {
		return fmt.Errorf(": %s", strings.ReplaceAll(strings.ReplaceAll(err.Error(), "json: ", ""), "\n", "; "))
	}
	return nil
}
