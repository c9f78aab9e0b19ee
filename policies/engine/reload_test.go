// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// versionRule is a rule whose finding names its version.
func versionRule(version int) engine.Module {
	return ruleFile("version", fmt.Sprintf("deny contains \"version %d\" if input.kind == \"Sandbox\"\n", version))
}

// answer is what one decision said of itself.
type answer struct {
	digest, version string
	// loads are how many reloads had ended when the request came in.
	loads int64
}

// TestReloadsDoNotDisturbRequests changes one rule again and again while requests run: every decision is that of one
// policy digest as a whole, none fails, and what comes in after a load has ended is judged by what was loaded.
func TestReloadsDoNotDisturbRequests(t *testing.T) {
	const reloads, clients = 5, 3
	e := newEngine(t)
	load(t, e, "", versionRule(0))
	digests := []string{e.Digest()}
	var loads atomic.Int64
	answers := make([][]answer, clients)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for client := range clients {
		in := requestOf(t)
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				before := loads.Load()
				d := e.Evaluate(context.Background(), in)
				answers[client] = append(answers[client], answer{d.Digest, versionOf(d), before})
			}
		})
	}
	for version := 1; version <= reloads; version++ {
		load(t, e, "", versionRule(version))
		digests = append(digests, e.Digest())
		loads.Add(1)
		// Some are judged by this version before the next one comes.
		for range clients {
			if d := e.Evaluate(context.Background(), requestOf(t)); d.Digest != digests[version] {
				t.Errorf("after load %d a request is judged by %s", version, d.Digest)
			}
		}
	}
	close(stop)
	running.Wait()
	count := 0
	for _, all := range answers {
		for _, a := range all {
			count++
			loaded := slices.Index(digests, a.digest)
			if loaded < 0 || a.version != fmt.Sprintf("version %d", loaded) {
				t.Fatalf("digest %s (load %d) gave %q: a decision is of one set only", a.digest, loaded, a.version)
			}
			if int64(loaded) < a.loads {
				t.Fatalf("a request that came after load %d was judged by load %d", a.loads, loaded)
			}
		}
	}
	if count < reloads {
		t.Errorf("%d requests during %d reloads", count, reloads)
	}
}

// versionOf is the finding of the rule, or what went wrong.
func versionOf(d engine.Decision) string {
	version := "no finding"
	for _, f := range d.Findings {
		if f.Failure {
			return "failure: " + f.Message
		}
		if f.Rule == "version" {
			version = f.Message
		}
	}
	return version
}

// A rule that changes is loaded while requests wait for it to be in force, so that costs little of what loading all of
// them does. The share does not depend on the machine.
func TestAReloadOfOneRuleCostsLittleOfALoad(t *testing.T) {
	const most = 0.08
	e, library, cfg := newEngine(t), unseen(libraryModules(t)), configured(t, "")
	cost := func(version int) uint64 {
		return allocated(func() {
			if _, err := e.Load(context.Background(), append(slices.Clone(library), versionRule(version)), cfg); err != nil {
				t.Fatal(err)
			}
		})
	}
	all := cost(0)
	one := cost(1)
	share := float64(one) / float64(all)
	t.Logf("a rule that changed costs %.2f of the load of all (%d of %d MB)", share, one>>20, all>>20)
	if share > most {
		t.Errorf("a rule that changed costs %.2f of the load of all, want at most %.2f", share, most)
	}
}

// unseen returns the modules with a comment that no load of this process met: what other tests compiled is remembered.
func unseen(modules []engine.Module) []engine.Module {
	comment := "\n# " + rand.Text() + "\n"
	for i := range modules {
		modules[i].Content = append(slices.Clone(modules[i].Content), comment...)
	}
	return modules
}
