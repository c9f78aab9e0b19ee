// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/agent-sandbox-platform/agent-sandbox/policies"
)

// Floors of what the Rego tests have to execute, in percent of lines.
const (
	folderFloor = 99
	ruleFloor   = 100
)

// regoFiles reads all Rego of the folder, tests with it, as the stock tools do.
func regoFiles(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, root := range []string{"lib", "library"} {
		err := fs.WalkDir(os.DirFS("."), root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(name) != ".rego" {
				return err
			}
			content, err := os.ReadFile(name)
			texts[name] = string(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

func regoModules(t *testing.T) map[string]*ast.Module {
	t.Helper()
	modules := map[string]*ast.Module{}
	for name, text := range regoFiles(t) {
		module, err := ast.ParseModuleWithOpts(name, text, ast.ParserOptions{ProcessAnnotation: true, RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		modules[name] = module
	}
	return modules
}

// TestRego runs the tests of the rules as `opa test policies/lib policies/library` does.
func TestRego(t *testing.T) {
	modules := regoModules(t)
	coverage := cover.New()
	results := runRego(t, modules, coverage)
	passed := map[string]int{}
	for _, r := range results {
		if !r.Pass() {
			t.Errorf("%s: %s.%s failed: %v\n%s", r.Location, r.Package, r.Name, r.Error, r.Output)
			continue
		}
		passed[path.Dir(r.Location.File)]++
	}
	if len(results) == 0 {
		t.Fatal("no Rego test ran")
	}
	for _, rule := range ruleFolders(t) {
		if passed[rule] < 3 {
			t.Errorf("%s has %d tests that pass; a rule needs tests that deny, that allow, and of what is absent", rule, passed[rule])
		}
	}
	checkCoverage(t, coverage.Report(modules))
	t.Logf("%d Rego tests ran", len(results))
}

func runRego(t *testing.T, modules map[string]*ast.Module, coverage *cover.Cover) []*tester.Result {
	t.Helper()
	ctx, store := context.Background(), inmem.New()
	txn, err := store.NewTransaction(ctx, storage.WriteParams)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Abort(ctx, txn)
	runner := tester.NewRunner().
		SetStore(store).
		SetModules(modules).
		CapturePrintOutput(true).
		RaiseBuiltinErrors(true).
		SetCoverageQueryTracer(coverage)
	finished, err := runner.RunTests(ctx, txn)
	if err != nil {
		t.Fatal(err)
	}
	var results []*tester.Result
	for r := range finished {
		results = append(results, r)
	}
	return results
}

func ruleFolders(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("library")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, entry := range entries {
		folders = append(folders, path.Join("library", entry.Name()))
	}
	return folders
}

func checkCoverage(t *testing.T, report cover.Report) {
	t.Helper()
	covered, all := 0, 0
	for _, name := range slices.Sorted(maps.Keys(report.Files)) {
		file := report.Files[name]
		if strings.HasSuffix(name, "_test.rego") {
			continue
		}
		covered, all = covered+file.CoveredLines, all+file.CoveredLines+file.NotCoveredLines
		if strings.HasPrefix(name, "library/") && file.Coverage < ruleFloor {
			t.Errorf("%s: %.1f %% is covered, want %d: not covered is %v", name, file.Coverage, ruleFloor, file.NotCovered)
		}
	}
	if all == 0 || 100*covered < folderFloor*all {
		t.Errorf("%d of %d lines are covered, want %d %%", covered, all, folderFloor)
	}
}

// TestRegoIsStrictAndFormatted does what `opa check --strict` and `opa fmt --diff` do.
func TestRegoIsStrictAndFormatted(t *testing.T) {
	compiler := ast.NewCompiler().WithStrict(true)
	if compiler.Compile(regoModules(t)); compiler.Failed() {
		t.Error(compiler.Errors)
	}
	for name, text := range regoFiles(t) {
		formatted, err := format.SourceWithOpts(name, []byte(text), format.Opts{RegoVersion: ast.RegoV1})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(formatted), text); diff != "" {
			t.Errorf("%s is not formatted, run opa fmt -w (-formatted +is):\n%s", name, diff)
		}
	}
}

// TestRuleFoldersAreComplete keeps each rule where people look for it.
func TestRuleFoldersAreComplete(t *testing.T) {
	texts := regoFiles(t)
	for _, folder := range ruleFolders(t) {
		id := path.Base(folder)
		text, ok := texts[path.Join(folder, id+".rego")]
		if !ok {
			t.Errorf("%s has no %s.rego", folder, id)
			continue
		}
		if _, ok := texts[path.Join(folder, id+"_test.rego")]; !ok {
			t.Errorf("%s has no %s_test.rego", folder, id)
		}
		for _, part := range []string{"\n#   id: " + id + "\n", "\npackage policies.library." + strings.ReplaceAll(id, "-", "_") + "\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q", folder, part)
			}
		}
	}
}

func TestLibraryHasNoTests(t *testing.T) {
	modules, err := policies.Library()
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, m := range modules {
		if strings.HasSuffix(m.Name, "_test.rego") {
			t.Errorf("%s is part of the library", m.Name)
		}
		if strings.HasPrefix(m.Name, "library/") {
			rules++
		}
		onDisk, err := os.ReadFile(m.Name)
		if errors.Is(err, fs.ErrNotExist) || !bytes.Equal(onDisk, m.Content) {
			t.Errorf("%s differs from the file: %v", m.Name, err)
		}
	}
	if rules != len(ruleFolders(t)) {
		t.Errorf("%d rules are embedded, there are %d folders", rules, len(ruleFolders(t)))
	}
}
