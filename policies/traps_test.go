// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// trap is a way in which an engine that is put together in the obvious way lets an object through, or stops what it
// should not, and the test that would then fail: a function of a file, and a case of it.
type trap struct {
	what, file, test, name string
}

// traps are those for which no engine but ours can be asked: what happens outside of an engine, or as time goes by.
// engine/traps_test.go has the others, with a naive engine that each of them catches.
var traps = []trap{
	{"a deadline is only asked for between steps", "engine/evaluation_test.go", "TestAFaultOfARuleIsAFindingOfThatRule", "An evaluation that does not end"},
	{"a reload is seen half", "engine/reload_test.go", "TestReloadsDoNotDisturbRequests", ""},
	{"two exemptions: the looser one wins for ever", "engine/override_test.go", "TestExemptionsRecordUntilTheirLastDay", "The day after"},
	{"a level that cannot be read is privileged", "engine/podsecurity_test.go", "TestWhatDecidesOnPodSecurity", "A level that cannot be read"},
	{"a new check is not looked at where it should be", "engine/internal_test.go", "TestEveryCheckOfPodSecurityHasAPlaceAndARemedy", ""},
	{"a field of a new Kubernetes touches the node, and no rule looks at it", "controls_test.go", "TestReviewedFieldsAreThoseOfKubernetes", ""},
	{"builtins that leave the process, or that nobody can cancel, are allowed unless they are taken away", "engine/internal_test.go", "TestDangerousBuiltinsAreNotAllowed", ""},
	{"a bad file takes its last good content away", "engine/loading_test.go", "TestBrokenModuleKeepsItsLastGoodContent", ""},

	// What the operation means.
	{"a rule keeps an object from going away", "engine/evaluation_test.go", "TestKindsAndOperationsThatAreNotJudged", ""},
	{"an object with a finalizer cannot end under stricter rules", "../webhook/handlers_test.go", "TestValidate", "an object on its way out is never judged"},
	{"a stricter rule blocks a change of a label", "../webhook/handlers_test.go", "TestValidate", "a fault that was there does not block a label"},
	{"an update brings a second fault of the same kind", "../webhook/handlers_test.go", "TestValidate", "a second fault of the same kind is refused"},
	{"validation trusts that the mutation ran", "../webhook/handlers_test.go", "TestValidate", "a Sandbox that did not pass the mutation"},
	{"a pool grows by its scale subresource", "../webhook/handlers_test.go", "TestValidate", "scaling up brings no fault in"},
	{"a fault of a template is seen by the controller only", "../webhook/handlers_test.go", "TestValidate", "a pool of a template that has a fault"},
	{"a dry run is counted", "../webhook/mutate_test.go", "TestDryRunsAreNotCounted", ""},
	{"a ConfigMap that is deleted takes its rules away", "../controller/policysource/source_test.go", "TestTheRemovalOfAPolicyConfigMapIsConfirmedByAnAnnotation", ""},
}

// TestEveryTrapHasATest keeps the list and the tests together.
func TestEveryTrapHasATest(t *testing.T) {
	for _, trap := range traps {
		file, err := parser.ParseFile(token.NewFileSet(), trap.file, nil, 0)
		if err != nil {
			t.Errorf("%s: %v", trap.what, err)
			continue
		}
		at := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
			function, ok := d.(*ast.FuncDecl)
			return ok && function.Recv == nil && function.Name.Name == trap.test
		})
		switch {
		case at < 0:
			t.Errorf("%s: %s has no %s", trap.what, trap.file, trap.test)
		case !complains(file.Decls[at]):
			t.Errorf("%s: %s has nothing that can fail", trap.what, trap.test)
		case trap.name != "" && !hasCase(file.Decls[at], trap.name):
			t.Errorf("%s: %s has no case %q, or it says nothing", trap.what, trap.test, trap.name)
		}
	}
}

// complains says whether something in the node fails a test.
func complains(node ast.Node) bool {
	found := false
	ast.Inspect(node, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		found = found || (ok && slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf"}, selector.Sel.Name))
		return !found
	})
	return found
}

// hasCase says whether a table in the node has a case of that name, with something beside it.
func hasCase(node ast.Node, name string) bool {
	found := false
	is := func(e ast.Expr) bool {
		literal, ok := e.(*ast.BasicLit)
		return ok && literal.Value == strconv.Quote(name)
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			value, isTable := n.Value.(*ast.CompositeLit)
			found = found || (is(n.Key) && (!isTable || len(value.Elts) > 0))
		case *ast.CompositeLit:
			found = found || (len(n.Elts) > 1 && is(n.Elts[0]))
		}
		return !found
	})
	return found
}
