// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
)

var allMutants = flag.Bool("mutants", false, "try every mutant of the rules and every value of a wrong type, not a sample")

const (
	// sampleOf says that one mutant of so many is tried unless all are asked for.
	sampleOf = 7
	// fewestMutants keeps the tests from passing because they found nothing to change.
	fewestMutants = 40
	// mostInvalid is how many in a hundred mutants may be no modules at all: nothing is learnt of those. A sample may
	// happen to hold more of them.
	mostInvalid, mostInvalidOfSample = 3, 10
)

// equivalent are mutants, by their place, that do what the module does, each with the reason.
var equivalent = map[string]string{
	"library/template-weakening/template-weakening.rego:104: 2 becomes 3":     "ranks are only compared, and 3 is above the others as well",
	"lib/quantities.rego:109: gt(most, ceilings[resource]) becomes >=":        "it only saves to look at each amount, which has to be above",
	"lib/quantities.rego:219: \"0\" becomes \"0~\"":                           "no digits have a ~ in front",
	"lib/quantities.rego:224: \"-\" becomes \"-~\"":                           "only how a number is written that nobody prints",
	"lib/quantities.rego:225: \"+\" becomes \"+~\"":                           "only how a number is written that nobody prints",
	"lib/quantities.rego:227: \"00000000000000\" becomes \"00000000000000~\"": "there are more zeros than anybody takes",
	"lib/quantities.rego:230: 0 becomes 1":                                    "one zero is as good as another",
	"lib/quantities.rego:235: lt(places, 0) becomes <=":                       "no places are cut off by both definitions alike",
	"lib/quantities.rego:235: 0 becomes 1":                                    "no places are cut off by both definitions alike",
	"lib/images.rego:42: 1 becomes 2":                                         "the grammar is anchored, so that there is one match at most",
	"lib/quantities.rego:164: 1 becomes 2":                                    "the grammar is anchored, so that there is one match at most",
	"lib/times.rego:14: 1 becomes 2":                                          "the grammar is anchored, so that there is one match at most",
	"lib/quantities.rego:241: \"0\" becomes \"0~\"":                           "no digits have a ~ at an end",
	"lib/sizes.rego:39: gt(of_pod.env, most) becomes >=":                      "it only saves to look at each container, which has to be above",
}

// fixtures are what the tests of rules share.
const fixtures = "lib/fixtures_test.rego"

// fate is what became of a mutant.
type fate int

const (
	caught fate = iota
	survived
	// invalid ones do not compile.
	invalid
)

// trial tries mutants and counts them by their fate.
type trial struct {
	modules map[string]*ast.Module
	// folder is where the modules are that are changed.
	folder string
	// seed chooses the sample.
	seed   uint32
	counts [3]atomic.Int64
	// excused are those that are listed as equivalent.
	excused atomic.Int64
}

func newTrial(t *testing.T, folder string) *trial {
	t.Helper()
	modules := regoModules(t)
	hash := fnv.New32a()
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		_, _ = hash.Write([]byte(modules[name].String())) // it never fails
	}
	return &trial{modules: modules, folder: folder, seed: hash.Sum32()}
}

// TestMutantsOfTheRulesAreCaught changes each comparison, negation, literal and member of an array, a set or an object of
// each rule in turn: a test of the rule has to fail. A sample is tried, which is another one whenever any Rego changes; -mutants
// tries all, and -run TestMutantsOfTheRulesAreCaught/rules/RULE -mutants those of one rule.
func TestMutantsOfTheRulesAreCaught(t *testing.T) {
	tried := newTrial(t, "library/")
	t.Run("rules", func(t *testing.T) {
		for _, folder := range ruleFolders(t) {
			file := path.Join(folder, path.Base(folder)+".rego")
			t.Run(path.Base(folder), func(t *testing.T) {
				t.Parallel()
				tried.mutantsOf(t, file, testsOf(tried.modules, file))
			})
		}
	})
	tried.check(t)
}

// TestMutantsOfTheHelpersAreCaught does the same with what rules share: a test of the helpers has to fail, or one of
// any rule.
func TestMutantsOfTheHelpersAreCaught(t *testing.T) {
	tried := newTrial(t, "lib/")
	helpers := maps.Clone(tried.modules)
	maps.DeleteFunc(helpers, func(name string, _ *ast.Module) bool { return !strings.HasPrefix(name, "lib/") })
	t.Run("helpers", func(t *testing.T) {
		for _, file := range slices.Sorted(maps.Keys(helpers)) {
			if strings.HasSuffix(file, "_test.rego") {
				continue
			}
			t.Run(strings.TrimSuffix(path.Base(file), ".rego"), func(t *testing.T) {
				t.Parallel()
				tried.mutantsOf(t, file, testsOf(tried.modules, file), helpers, tried.modules)
			})
		}
	})
	tried.check(t)
}

// listed is how many of the modules' mutants are listed as equivalent.
func (r *trial) listed() int {
	n := 0
	for place := range equivalent {
		if strings.HasPrefix(place, r.folder) {
			n++
		}
	}
	return n
}

func (r *trial) check(t *testing.T) {
	t.Helper()
	caughtOnes, survivors, invalidOnes := r.counts[caught].Load(), r.counts[survived].Load(), r.counts[invalid].Load()
	all := caughtOnes + survivors + invalidOnes
	t.Logf("%d mutants: %d caught, %d survived, %d do not compile", all, caughtOnes, survivors, invalidOnes)
	whole := *allMutants && !strings.Contains(flag.Lookup("test.run").Value.String(), "/")
	if listed := int64(r.listed()); whole && r.excused.Load() != listed {
		t.Errorf("%d mutants are listed as equivalent, of which %d were met: the others are elsewhere now", listed, r.excused.Load())
	}
	if all < fewestMutants {
		t.Errorf("%d mutants were tried, want at least %d", all, fewestMutants)
	}
	most := int64(mostInvalidOfSample)
	if *allMutants {
		most = mostInvalid
	}
	if 100*invalidOnes > most*all {
		t.Errorf("%d of %d mutants do not compile, want at most %d %%", invalidOnes, all, most)
	}
}

// mutantsOf makes changes of a module in turn, and wants a test to fail: one of the first modules, or of the next.
func (r *trial) mutantsOf(t *testing.T, file string, suites ...map[string]*ast.Module) {
	t.Helper()
	for site := range mutations(r.modules[file].Copy()) {
		if !*allMutants && (int(r.seed%sampleOf)+len(file)+site)%sampleOf != 0 {
			continue
		}
		mutant := r.modules[file].Copy()
		change := mutations(mutant)[site]
		if place := fmt.Sprintf("%s:%d: %s", file, change.row, change.what); equivalent[place] != "" {
			r.excused.Add(1)
			continue
		}
		change.apply()
		result := survived
		for _, suite := range suites {
			if result == survived {
				result = fateOf(t, suite, file, mutant)
			}
		}
		r.counts[result].Add(1)
		if result == survived {
			t.Errorf("%s:%d: no test fails when %s", file, change.row, change.what)
		}
	}
}

// testsOf are a rule, its tests, and the helpers that they use.
func testsOf(modules map[string]*ast.Module, file string) map[string]*ast.Module {
	byPackage := map[string]string{}
	for name, module := range modules {
		if strings.HasPrefix(name, "lib/") && (!strings.HasSuffix(name, "_test.rego") || name == fixtures) {
			byPackage[module.Package.Path.String()] = name
		}
	}
	own := map[string]*ast.Module{}
	var add func(name string)
	add = func(name string) {
		if _, known := own[name]; known || modules[name] == nil {
			return
		}
		own[name] = modules[name]
		for _, imported := range modules[name].Imports {
			add(byPackage[imported.Path.String()])
		}
	}
	add(file)
	add(strings.TrimSuffix(file, ".rego") + "_test.rego")
	return own
}

// fateOf runs all tests among the modules with the mutant in its place.
func fateOf(t *testing.T, modules map[string]*ast.Module, file string, mutant *ast.Module) fate {
	t.Helper()
	own := make(map[string]*ast.Module, len(modules))
	for name, module := range modules {
		own[name] = module.Copy()
	}
	own[file] = mutant.Copy()
	store := inmem.New()
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	txn, err := store.NewTransaction(ctx, storage.WriteParams)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Abort(context.WithoutCancel(ctx), txn)
	finished, err := tester.NewRunner().SetStore(store).SetModules(own).RaiseBuiltinErrors(true).RunTests(ctx, txn)
	if err != nil {
		return fateOfTypes(own)
	}
	failed := false
	for result := range finished {
		if failed = failed || !result.Pass(); failed {
			enough()
		}
	}
	if failed {
		return caught
	}
	return survived
}

// fateOfTypes is the fate of a mutant with which the tests do not compile: they have noticed it if it compiles without
// them, as one whose findings lack a field that they ask for.
func fateOfTypes(modules map[string]*ast.Module) fate {
	maps.DeleteFunc(modules, func(name string, _ *ast.Module) bool { return strings.HasSuffix(name, "_test.rego") })
	compiler := ast.NewCompiler()
	if compiler.Compile(modules); compiler.Failed() {
		return invalid
	}
	return caught
}
