// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
)

var allMutants = flag.Bool("mutants", false, "try every mutant of the rules and every value of a wrong type, not a sample")

const (
	// sampleOf says that one mutant of so many is tried unless all are asked for.
	sampleOf = 12
	// fewestMutants keeps the test from passing because it found nothing to change.
	fewestMutants = 700
)

// TestMutantsOfTheRulesAreCaught changes each comparison, negation and member of a collection of each rule in
// turn: a test of the rule has to fail. The sample differs from rule to rule; -mutants tries all, and
// -run TestMutantsOfTheRulesAreCaught/RULE -mutants those of one rule.
func TestMutantsOfTheRulesAreCaught(t *testing.T) {
	modules := regoModules(t)
	total, tried := 0, 0
	for _, folder := range ruleFolders(t) {
		file := path.Join(folder, path.Base(folder)+".rego")
		sites := len(mutations(modules[file].Copy()))
		if sites == 0 && !slices.Contains([]string{"library/image-malformed"}, folder) {
			t.Errorf("%s has nothing to change", file)
		}
		before := total
		total += sites
		t.Run(path.Base(folder), func(t *testing.T) {
			for i := range sites {
				if *allMutants || (before+i+1)%sampleOf == 0 {
					tried++
					tryMutant(t, modules, file, i)
				}
			}
		})
	}
	t.Logf("%d of %d mutants were tried", tried, total)
	if total < fewestMutants {
		t.Errorf("%d mutants, want at least %d", total, fewestMutants)
	}
}

// tryMutant makes one change of a rule and wants a test of it to fail.
func tryMutant(t *testing.T, modules map[string]*ast.Module, file string, site int) {
	t.Helper()
	mutant := modules[file].Copy()
	change := mutations(mutant)[site]
	change.apply()
	if survives(t, modules, file, mutant) {
		t.Errorf("%s:%d: no test fails when %s", file, change.row, change.what)
	}
}

// mutation is one change of a module.
type mutation struct {
	row   int
	what  string
	apply func()
}

// opposites are the comparisons and what each is changed to.
var opposites = map[string]*ast.Builtin{
	ast.Equal.Name: ast.NotEqual, ast.NotEqual.Name: ast.Equal,
	ast.LessThan.Name: ast.LessThanEq, ast.LessThanEq.Name: ast.LessThan,
	ast.GreaterThan.Name: ast.GreaterThanEq, ast.GreaterThanEq.Name: ast.GreaterThan,
}

// mutations lists the changes that can be made to a module, in a fixed order.
func mutations(module *ast.Module) []mutation {
	var all []mutation
	for _, rule := range module.Rules {
		ast.WalkExprs(rule, func(expr *ast.Expr) bool {
			all = append(all, ofExpression(expr)...)
			return false
		})
		messages := map[*ast.Term]bool{}
		ast.WalkTerms(rule, func(term *ast.Term) bool {
			if call, ok := term.Value.(ast.Call); ok && call[0].String() == ast.Sprintf.Name {
				messages[call[2]] = true
			}
			if !messages[term] {
				all = append(all, ofCollection(term)...)
			}
			return false
		})
	}
	return all
}

func ofExpression(expr *ast.Expr) []mutation {
	var all []mutation
	row := 0
	if expr.Location != nil {
		row = expr.Location.Row
	}
	if expr.Negated {
		all = append(all, mutation{row, "not is left out of " + expr.String(), func() { expr.Negated = false }})
	}
	if !expr.IsCall() {
		return all
	}
	name := expr.Operator().String()
	if other, ok := opposites[name]; ok {
		all = append(all, mutation{row, fmt.Sprintf("%s becomes %s", expr, other.Infix), func() { expr.SetOperator(ast.NewTerm(other.Ref())) }})
	}
	if name == ast.Member.Name && !expr.Negated {
		all = append(all, mutation{row, "not comes before " + expr.String(), func() { expr.Negated = true }})
	}
	return all
}

// ofCollection leaves out each member of an array or set that has more than one, or the only one.
func ofCollection(term *ast.Term) []mutation {
	var members []*ast.Term
	var without func([]*ast.Term) ast.Value
	switch value := term.Value.(type) {
	case *ast.Array:
		value.Foreach(func(m *ast.Term) { members = append(members, m) })
		without = func(rest []*ast.Term) ast.Value { return ast.NewArray(rest...) }
	case ast.Set:
		members = value.Slice()
		without = func(rest []*ast.Term) ast.Value { return ast.NewSet(rest...) }
	}
	var all []mutation
	for i, member := range members {
		if !member.IsGround() {
			continue
		}
		row := 0
		if term.Location != nil {
			row = term.Location.Row
		}
		all = append(all, mutation{row, fmt.Sprintf("%s is left out of %s", member, term), func() {
			term.Value = without(slices.Delete(slices.Clone(members), i, i+1))
		}})
	}
	return all
}

// survives says whether all tests of the rule pass for the mutant. One that does not compile is caught.
func survives(t *testing.T, modules map[string]*ast.Module, file string, mutant *ast.Module) bool {
	t.Helper()
	own := maps.Clone(modules)
	maps.DeleteFunc(own, func(name string, _ *ast.Module) bool {
		other := path.Dir(name) != path.Dir(file) && strings.HasPrefix(name, "library/")
		return other || (strings.HasPrefix(name, "lib/") && strings.HasSuffix(name, "_test.rego") && name != "lib/fixtures_test.rego")
	})
	own[file] = mutant
	for name := range own {
		if name != file {
			own[name] = own[name].Copy()
		}
	}
	ctx, store := context.Background(), inmem.New()
	txn, err := store.NewTransaction(ctx, storage.WriteParams)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Abort(ctx, txn)
	finished, err := tester.NewRunner().SetStore(store).SetModules(own).RaiseBuiltinErrors(true).RunTests(ctx, txn)
	if err != nil {
		return false
	}
	ran, passed := 0, true
	for result := range finished {
		ran++
		passed = passed && result.Pass()
	}
	if ran == 0 {
		t.Fatalf("%s has no tests", file)
	}
	return passed
}
