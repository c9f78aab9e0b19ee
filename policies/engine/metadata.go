// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// RuleInfo describes a rule as its METADATA does, with the enforcement and the parameters that
// are in force.
type RuleInfo struct {
	ID          string      `json:"id"`
	Code        string      `json:"code,omitempty"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Category    string      `json:"category,omitempty"`
	Severity    Severity    `json:"severity"`
	Remediation string      `json:"remediation"`
	Kinds       []string    `json:"kinds"`
	Controls    []string    `json:"controls,omitempty"`
	Links       []string    `json:"links,omitempty"`
	Default     Enforcement `json:"default"`
	Enforcement Enforcement `json:"enforcement"`
	// Schema maps each parameter to its JSON schema.
	Schema map[string]any `json:"schema,omitempty"`
	// AtLeastOne names parameters one of which needs an entry when the rule is on.
	AtLeastOne []string `json:"atLeastOne,omitempty"`
	// Data names what of the cluster the rule reads.
	Data []Data `json:"data,omitempty"`
	// Parameters are the values in force.
	Parameters map[string]any `json:"parameters,omitempty"`
	// Floor says that the cluster enforces the rule by itself too, so that only a tier relaxes it.
	Floor  bool   `json:"floor,omitempty"`
	Source string `json:"source"`
	Name   string `json:"name"`
}

// custom is the custom part of a rule's METADATA.
type custom struct {
	ID          string         `json:"id"`
	Code        string         `json:"code"`
	Category    string         `json:"category"`
	Severity    Severity       `json:"severity"`
	Enforcement Enforcement    `json:"enforcement"`
	Remediation string         `json:"remediation"`
	Kinds       []string       `json:"kinds"`
	Controls    []string       `json:"controls"`
	Parameters  map[string]any `json:"parameters"`
	AtLeastOne  []string       `json:"at_least_one"`
	Data        []Data         `json:"data"`
	Floor       bool           `json:"floor"`
}

var ruleID = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// readMetadata reads the METADATA of the package. Its errors name the file, the field and what
// to write there.
func readMetadata(m Module, parsed *ast.Module) (RuleInfo, error) {
	if err := checkAnnotations(m, parsed); err != nil {
		return RuleInfo{}, err
	}
	annotation := packageAnnotation(parsed)
	if annotation == nil {
		return RuleInfo{}, fmt.Errorf("%s: no METADATA above the package; begin the file with a METADATA block that has "+
			"title, description and custom (id, severity, enforcement, remediation, kinds)", m.file())
	}
	where := lineOf(m, annotation, 0)
	c, err := decodeCustom(annotation.Custom)
	if err != nil {
		return RuleInfo{}, fmt.Errorf("%s: METADATA custom%w", where, err)
	}
	info := RuleInfo{
		ID: c.ID, Code: c.Code, Title: annotation.Title, Description: annotation.Description,
		Category: c.Category, Severity: c.Severity, Remediation: c.Remediation, Kinds: c.Kinds,
		Controls: c.Controls, Default: c.Enforcement, Enforcement: c.Enforcement, Schema: c.Parameters,
		AtLeastOne: c.AtLeastOne, Floor: c.Floor, Data: c.Data, Source: m.Source, Name: m.Name,
	}
	for _, link := range annotation.RelatedResources {
		info.Links = append(info.Links, link.Ref.String())
	}
	if err := checkMetadata(info); err != nil {
		return info, fmt.Errorf("%s: %w", where, err)
	}
	return info, nil
}

// decodeCustom returns an error that begins with the path below custom.
func decodeCustom(raw map[string]any) (custom, error) {
	var c custom
	if err := decodeStrictly(raw, &c); err != nil {
		return c, fmt.Errorf("%w; known are id, code, category, severity, enforcement, remediation, kinds, controls, "+
			"parameters, at_least_one, floor and data", err)
	}
	return c, nil
}

func checkMetadata(info RuleInfo) error {
	var errs []error
	refuse := func(field, value, remedy string) {
		errs = append(errs, fmt.Errorf("METADATA %s is %q: %s", field, value, remedy))
	}
	for field, value := range map[string]string{
		"title": info.Title, "description": info.Description, "custom.remediation": info.Remediation,
	} {
		if strings.TrimSpace(value) == "" {
			refuse(field, value, "write a sentence")
		}
	}
	if !ruleID.MatchString(info.ID) {
		refuse("custom.id", info.ID, "use lower-case words joined by hyphens, at most 63 characters")
	}
	if !slices.Contains(severities, info.Severity) {
		refuse("custom.severity", string(info.Severity), "use one of "+list(severities))
	}
	if !slices.Contains(enforcements, info.Default) {
		refuse("custom.enforcement", string(info.Default), "use one of "+list(enforcements)+`, "Off" in quotes`)
	}
	if len(info.Kinds) == 0 {
		refuse("custom.kinds", "", "name at least one of "+list(kinds))
	}
	for _, kind := range info.Kinds {
		if !slices.Contains(kinds, kind) {
			refuse("custom.kinds", kind, "use "+list(kinds))
		}
	}
	for _, name := range info.AtLeastOne {
		if _, ok := info.Schema[name]; !ok {
			refuse("custom.at_least_one", name, "name a parameter of the rule")
		}
	}
	for _, data := range info.Data {
		if !slices.Contains(allData, data) {
			refuse("custom.data", string(data), "use "+list(allData))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

func list[S ~string](values []S) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return strings.Join(words, ", ")
}

// salvageMetadata reads what it can of the METADATA of a module that does not load, so that its
// failure concerns the kinds, and has the enforcement, that the author meant.
func salvageMetadata(m Module) (RuleInfo, bool) {
	header, ok := upToPackage(m.Content)
	if !ok {
		return RuleInfo{}, false
	}
	parsed, err := parse(m.file(), header)
	if err != nil {
		return RuleInfo{}, false
	}
	info, err := readMetadata(m, parsed)
	return info, err == nil
}

func upToPackage(content []byte) (string, bool) {
	var header strings.Builder
	for line := range strings.Lines(string(content)) {
		header.WriteString(line)
		if strings.HasPrefix(line, "package ") {
			return header.String(), true
		}
	}
	return "", false
}
