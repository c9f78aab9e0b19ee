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
)

// set is one complete set of rules and configuration. It never changes.
type set struct {
	digest string
	basis  basis
	// rules are all that loaded, by id.
	rules    map[string]*rule
	helpers  map[string]*ast.Module
	programs map[string]*program
	compiler *ast.Compiler
	// held are the rules in quarantine.
	held   map[string]bool
	broken []BrokenModule
	pss    *podSecurity
	// native are the rules that Go decides.
	native []RuleInfo

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
	// readsClock says that one of the rules may ask for the time beside the input's.
	readsClock bool
	// together evaluates all rules at once.
	together judgement
	// alone evaluates each by itself, for when they fail together.
	alone []judgement
}

// judgement is a query for the findings of some rules.
type judgement struct {
	// pairs are the columns whose findings are pairs in one set, see togetherModule; sets are those that
	// have a set each.
	pairs, sets []column
	query       rego.PreparedEvalQuery
}

type column struct {
	rule  *rule
	entry string
}

func (r *rule) columns() []column {
	var columns []column
	for _, entry := range r.entries {
		columns = append(columns, column{rule: r, entry: entry})
	}
	return columns
}

// needsOwnInput says whether the parameters have to be put into the input for the rule.
func (r *rule) needsOwnInput() bool {
	return r.passesParameters && len(r.info.Schema) > 0
}

// Variables of the query that hold the set of pairs and the list of sets.
const (
	pairsVar = "pairs"
	setsVar  = "sets"
)

func newSet(ctx context.Context, loaded *loadedRules, rules map[string]*rule, cfg Configuration, held map[string]bool) (*set, error) {
	s := &set{
		rules: rules, helpers: loaded.helpers, broken: loaded.broken, pss: newPodSecurity(cfg),
		native: nativeInfos(cfg), overrides: cfg.Overrides, exemptions: cfg.Exemptions, basis: basisOf(loaded, cfg),
	}
	return s, s.prepareAll(ctx, held)
}

// without returns the set without the rules that are held.
func (s *set) without(ctx context.Context, held map[string]bool) (*set, error) {
	next := &set{
		basis: s.basis, rules: s.rules, helpers: s.helpers, broken: s.broken, pss: s.pss,
		native: s.native, overrides: s.overrides, exemptions: s.exemptions,
	}
	return next, next.prepareAll(ctx, held)
}

// prepareAll builds the queries of every kind.
func (s *set) prepareAll(ctx context.Context, held map[string]bool) error {
	s.held, s.programs = held, map[string]*program{}
	s.digest = s.sum()
	together := map[string]judgement{}
	pairs := map[string][]column{}
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
			p.rules, p.readsClock = append(p.rules, r), p.readsClock || r.readsClock
		}
		s.programs[kind], together[kind] = p, splitColumns(p.rules)
		pairs[kind] = together[kind].pairs
	}
	var err error
	if s.compiler, err = compileTogether(s.helpers, s.rules, pairs); err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	for _, kind := range kinds {
		if s.programs[kind].together, err = prepare(ctx, s.compiler, kind, together[kind]); err != nil {
			return fmt.Errorf("rules of %s: %w", kind, err)
		}
	}
	return s.prepareAlone(ctx)
}

// prepareAlone builds the query of each rule by itself, once for all kinds.
func (s *set) prepareAlone(ctx context.Context) error {
	alone := map[string]judgement{}
	for _, kind := range kinds {
		for _, r := range s.programs[kind].rules {
			one, made := alone[r.info.ID]
			if !made {
				var err error
				if one, err = prepare(ctx, s.compiler, "", judgement{sets: r.columns()}); err != nil {
					return fmt.Errorf("rule %s: %w", r.info.ID, err)
				}
				alone[r.info.ID] = one
			}
			s.programs[kind].alone = append(s.programs[kind].alone, one)
		}
	}
	return nil
}

func splitColumns(rules []*rule) judgement {
	var j judgement
	for _, r := range rules {
		if r.needsOwnInput() {
			j.sets = append(j.sets, r.columns()...)
		} else {
			j.pairs = append(j.pairs, r.columns()...)
		}
	}
	return j
}

// prepare builds the query for the columns.
func prepare(ctx context.Context, compiler *ast.Compiler, kind string, j judgement) (judgement, error) {
	var expressions, elements []string
	if len(j.pairs) > 0 {
		expressions = append(expressions, fmt.Sprintf("%s = data.%s[%q].%s", pairsVar, togetherRoot, kind, togetherRule))
	}
	for i, c := range j.sets {
		element := c.rule.module.Package.Path.Append(ast.StringTerm(c.entry)).String()
		if c.rule.needsOwnInput() {
			variable := fmt.Sprintf("x%d", i)
			expressions = append(expressions, fmt.Sprintf("%s = %s with input.parameters as data.parameters[%q]",
				variable, element, c.rule.info.ID))
			element = variable
		}
		elements = append(elements, element)
	}
	expressions = append(expressions, fmt.Sprintf("%s = [%s]", setsVar, strings.Join(elements, ", ")))
	var err error
	j.query, err = rego.New(
		rego.Compiler(compiler),
		rego.Store(requestStore{}),
		rego.Query(strings.Join(expressions, "; ")),
	).PrepareForEval(ctx)
	return j, err
}
