// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// RuleConfig is what an environment says about one rule. Without an enforcement the rule keeps
// its default.
type RuleConfig struct {
	Enforcement Enforcement    `json:"enforcement,omitempty"`
	Parameters  map[string]any `json:"parameters,omitempty"`
}

// Configuration is what an environment says about the rules, by rule id.
type Configuration struct {
	Rules      map[string]RuleConfig `json:"rules,omitempty"`
	Overrides  []Override            `json:"overrides,omitempty"`
	Exemptions []Exemption           `json:"exemptions,omitempty"`
	// source names the file in messages.
	source string
}

// ParseConfiguration reads the YAML of a policy configuration. It is strict; whether the rules
// exist and the parameters fit is seen when it is loaded with them. Errors name the source, the
// rule, the field, the value and the remedy.
func ParseConfiguration(source string, data []byte) (Configuration, error) {
	cfg := Configuration{Rules: map[string]RuleConfig{}, source: source}
	var document map[string]any
	if err := yaml.UnmarshalStrict(data, &document); err != nil {
		return cfg, fmt.Errorf("%s: not a YAML mapping: %w", source, err)
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(document)) {
		if !slices.Contains([]string{"rules", "overrides", "exemptions"}, key) {
			errs = append(errs, fmt.Errorf("%s: unknown field %q; known are rules, overrides and exemptions", source, key))
		}
	}
	rules, ok := document["rules"].(map[string]any)
	if !ok && document["rules"] != nil {
		errs = append(errs, fmt.Errorf("%s: rules is %s; write a mapping from rule id to enforcement and parameters",
			source, textOf(document["rules"])))
	}
	for _, id := range slices.Sorted(maps.Keys(rules)) {
		rule, err := parseRule(rules[id])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: rules.%s%w", source, id, err))
		}
		cfg.Rules[id] = rule
	}
	var err error
	if cfg.Overrides, err = parseOverrides(document["overrides"]); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", source, err))
	}
	if cfg.Exemptions, err = parseExemptions(document["exemptions"]); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", source, err))
	}
	return cfg, errors.Join(errs...)
}

// parseRule returns an error that begins with the path below the rule.
func parseRule(raw any) (RuleConfig, error) {
	var cfg RuleConfig
	fields, ok := raw.(map[string]any)
	if !ok && raw != nil {
		return cfg, fmt.Errorf(" is %s; write a mapping with enforcement and parameters", textOf(raw))
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		value := fields[key]
		switch key {
		case "enforcement":
			text, _ := value.(string)
			cfg.Enforcement = Enforcement(text)
			if !slices.Contains(enforcements, cfg.Enforcement) {
				return cfg, fmt.Errorf(".enforcement is %q; use one of %s, with \"Off\" in quotes", textOf(value), list(enforcements))
			}
		case "parameters":
			if cfg.Parameters, ok = value.(map[string]any); !ok && value != nil {
				return cfg, fmt.Errorf(".parameters is %s; write a mapping from parameter to value", textOf(value))
			}
		default:
			return cfg, fmt.Errorf(": unknown field %q; known are enforcement and parameters", key)
		}
	}
	return cfg, nil
}

// file names the configuration in messages.
func (c Configuration) file() string {
	if c.source == "" {
		return "configuration"
	}
	return c.source
}

// UnknownRule is an entry of the configuration about a rule that does not exist. It has no effect: the
// rule may come, or have gone, with a ConfigMap of its own, which must not stop everything else.
type UnknownRule struct {
	// Rule is the id that no rule has.
	Rule string `json:"rule"`
	// Reason names the file, the entry and the rules that exist.
	Reason string `json:"reason"`
}

// Mentions says whether any entry is about the rule.
func (c Configuration) Mentions(rule string) bool {
	_, configured := c.Rules[rule]
	return configured ||
		slices.ContainsFunc(c.Overrides, func(o Override) bool { _, ok := o.Rules[rule]; return ok }) ||
		slices.ContainsFunc(c.Exemptions, func(x Exemption) bool { return x.Rule == rule })
}

// unknown lists the entries about rules that do not exist. An id may also be that of a module that could
// not be read, which is reported by itself.
func (c Configuration) unknown(rules map[string]*rule, broken []BrokenModule) []UnknownRule {
	var found []UnknownRule
	check := func(path, id string) {
		if _, ok := rules[id]; !ok && !isPodSecurity(id) && !IsNative(id) && !mayBeBroken(id, broken) {
			found = append(found, UnknownRule{id, fmt.Sprintf("%s: %s: there is no rule %s; known are %s",
				c.file(), path, id, list(slices.Sorted(maps.Keys(rules))))})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Rules)) {
		check("rules."+id, id)
	}
	for i, o := range c.Overrides {
		for _, id := range slices.Sorted(maps.Keys(o.Rules)) {
			check(fmt.Sprintf("overrides[%d].rules.%s", i, id), id)
		}
	}
	for i, x := range c.Exemptions {
		check(fmt.Sprintf("exemptions[%d].rule", i), x.Rule)
	}
	return found
}

// apply sets the enforcement and parameters of the rules.
func (c Configuration) apply(rules map[string]*rule) error {
	var errs []error
	for _, id := range podSecurityRules {
		if len(c.Rules[id].Parameters) > 0 {
			errs = append(errs, fmt.Errorf("%s: rules.%s.parameters: the rule has none; the level and version are those of the tier",
				c.file(), id))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rules)) {
		errs = append(errs, c.applyTo(rules[id])...)
	}
	errs = append(errs, c.checkNatives()...)
	errs = append(errs, c.checkExceptions(rules)...)
	return errors.Join(errs...)
}

func mayBeBroken(id string, broken []BrokenModule) bool {
	return slices.ContainsFunc(broken, func(b BrokenModule) bool { return b.Rule == id || b.Rule == "" })
}

func (c Configuration) applyTo(r *rule) []error {
	given := c.Rules[r.info.ID]
	if given.Enforcement != "" {
		r.info.Enforcement = given.Enforcement
	}
	var errs []error
	if r.info.Parameters, errs = c.merged(r, "rules."+r.info.ID, r.parameters.defaults, given, r.info.Enforcement); len(errs) > 0 {
		return errs
	}
	for i, o := range c.Overrides {
		if own, ok := o.Rules[r.info.ID]; ok {
			path := fmt.Sprintf("overrides[%d].rules.%s", i, r.info.ID)
			_, faults := c.merged(r, path, r.info.Parameters, own, cmp.Or(own.Enforcement, r.info.Enforcement))
			errs = append(errs, faults...)
		}
	}
	return errs
}

// merged returns the parameters with those given in their place, and what is wrong with them at the path.
func (c Configuration) merged(r *rule, path string, base map[string]any, given RuleConfig, e Enforcement) (map[string]any, []error) {
	var errs []error
	merged := mergeParameters(base, given.Parameters)
	for _, fault := range r.parameters.validate(merged) {
		errs = append(errs, fmt.Errorf("%s: %s.parameters.%s is %s: %s; known are %s", c.file(), path,
			fault.path, fault.value, fault.reason, list(slices.Sorted(maps.Keys(r.info.Schema)))))
	}
	if len(errs) == 0 && r.lacksEntry(e, merged) {
		errs = append(errs, fmt.Errorf("%s: %s.enforcement is %s but no entry is in %s; add one, or set enforcement to Off",
			c.file(), path, e, list(r.info.AtLeastOne)))
	}
	return merged, errs
}

// lacksEntry says whether the rule is on without an entry in any of the lists one of which needs one.
func (r *rule) lacksEntry(e Enforcement, parameters map[string]any) bool {
	return e != Off && len(r.info.AtLeastOne) > 0 && !hasEntry(r.info.AtLeastOne, parameters)
}

func hasEntry(names []string, parameters map[string]any) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		switch value := parameters[name].(type) {
		case []any:
			return len(value) > 0
		case map[string]any:
			return len(value) > 0
		case string:
			return value != ""
		default:
			return false
		}
	})
}
