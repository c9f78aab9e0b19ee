// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
)

// set is one complete set of rules and configuration. It never changes.
type set struct {
	digest string
	// rules are all that loaded, by id.
	rules    map[string]*rule
	programs map[string]*program
	compiler *ast.Compiler
	// held are the rules in quarantine.
	held   map[string]bool
	broken []BrokenModule
	pss    *podSecurity

	overrides  []Override
	exemptions []Exemption
	// variants are what the rules are under the overrides that select a namespace, by their bits.
	variants sync.Map
}

// program judges one kind by all rules that are on anywhere.
type program struct {
	rules []*rule
	// held are those that are not run.
	held []*rule
	// together evaluates all rules at once.
	together judgement
	// alone evaluates each by itself, for when they fail together.
	alone []judgement
}

// judgement is a query whose result is a list of sets of findings, one for each column.
type judgement struct {
	columns []column
	query   rego.PreparedEvalQuery
}

type column struct {
	rule  *rule
	entry string
}

// resultVar is the variable of the query that holds the list.
const resultVar = "findings"

func newSet(ctx context.Context, loaded *loadedRules, rules map[string]*rule, cfg Configuration, held map[string]bool) (*set, error) {
	compiler, err := compileAll(loaded.helpers, rules)
	if err != nil {
		return nil, err
	}
	s := &set{
		rules: rules, compiler: compiler, broken: loaded.broken, pss: newPodSecurity(cfg), overrides: cfg.Overrides, exemptions: cfg.Exemptions,
	}
	return s, s.prepareAll(ctx, held)
}

// without returns the set without the rules that are held.
func (s *set) without(ctx context.Context, held map[string]bool) (*set, error) {
	next := &set{
		digest: s.digest, rules: s.rules, compiler: s.compiler, broken: s.broken, pss: s.pss, overrides: s.overrides, exemptions: s.exemptions,
	}
	return next, next.prepareAll(ctx, held)
}

// prepareAll builds the queries of every kind.
func (s *set) prepareAll(ctx context.Context, held map[string]bool) error {
	s.held, s.programs = held, map[string]*program{}
	store := requestStore{}
	alone := map[string]judgement{}
	var err error
	for _, id := range slices.Sorted(maps.Keys(s.rules)) {
		if alone[id], err = prepare(ctx, s.compiler, store, s.rules[id]); err != nil {
			return fmt.Errorf("rule %s: %w", id, err)
		}
	}
	for _, kind := range kinds {
		p := &program{}
		for _, id := range slices.Sorted(maps.Keys(s.rules)) {
			r := s.rules[id]
			if !s.everOn(r) || !slices.Contains(r.info.Kinds, kind) {
				continue
			}
			if held[id] {
				p.held = append(p.held, r)
				continue
			}
			p.rules = append(p.rules, r)
			p.alone = append(p.alone, alone[id])
		}
		if p.together, err = prepare(ctx, s.compiler, store, p.rules...); err != nil {
			return fmt.Errorf("rules of %s: %w", kind, err)
		}
		s.programs[kind] = p
	}
	return nil
}

// prepare builds one query for the rules.
func prepare(ctx context.Context, compiler *ast.Compiler, store storage.Store, rules ...*rule) (judgement, error) {
	var j judgement
	var expressions, elements []string
	for _, r := range rules {
		for _, entry := range r.entries {
			element := r.module.Package.Path.Append(ast.StringTerm(entry)).String()
			if r.passesParameters && len(r.info.Schema) > 0 {
				variable := fmt.Sprintf("x%d", len(elements))
				expressions = append(expressions, fmt.Sprintf("%s = %s with input.parameters as data.parameters[%q]",
					variable, element, r.info.ID))
				element = variable
			}
			elements = append(elements, element)
			j.columns = append(j.columns, column{rule: r, entry: entry})
		}
	}
	expressions = append(expressions, fmt.Sprintf("%s = [%s]", resultVar, strings.Join(elements, ", ")))
	var err error
	j.query, err = rego.New(
		rego.Compiler(compiler),
		rego.Store(store),
		rego.Query(strings.Join(expressions, "; ")),
	).PrepareForEval(ctx)
	return j, err
}
