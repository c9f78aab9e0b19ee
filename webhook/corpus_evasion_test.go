// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// An evasion hides something from a check that reads objects as a beginner would.
type evasion struct {
	// blind are the ways in which that check reads an object, each made of a copy of it.
	blind []func(map[string]any)
	// uses reports whether an object makes use of what the evasion needs.
	uses func(map[string]any) bool
}

// A manifest that must be refused proves something about an evasion only if a check that
// is blind to it would have found less; and one that must be admitted, only if it has what
// an eager check looks for.
func TestEveryEvasionOfTheCorpusWouldHaveWorked(t *testing.T) {
	cases, err := corpus.Cases(os.DirFS(filepath.Join("..", "e2e", "corpus")))
	if err != nil {
		t.Fatal(err)
	}
	judges := map[string]*Judge{}
	for _, c := range cases {
		for _, name := range c.Evasions {
			t.Run(c.Name+" "+name, func(t *testing.T) {
				if judges[c.Values] == nil {
					judges[c.Values] = corpusWorld(t, c.Values)
				}
				if tried := evasions()[name]; c.Allowed {
					mustUse(t, judges[c.Values], c, name, tried)
				} else {
					mustBeNeeded(t, judges[c.Values], c, name, tried)
				}
			})
		}
	}
}

// mustUse fails the test unless the manifest, or the template that it borrows, has what
// the evasion needs.
func mustUse(t *testing.T, decide *Judge, c corpus.Case, name string, tried evasion) {
	t.Helper()
	r := review{kind: textAt(c.Last(), "kind"), namespace: c.Namespace, object: c.Last()}
	switch {
	case name == corpus.EvasionSteps:
		mustComeInSteps(t, c)
	case tried.uses(r.object):
	case r.kind != engine.KindSandboxWarmPool && r.kind != engine.KindSandboxClaim, !tried.uses(borrowed(t, decide, r)):
		t.Error("nothing in it is what an eager check would refuse")
	}
}

// borrowed is the template that a pool or claim makes Sandboxes of.
func borrowed(t *testing.T, decide *Judge, r review) map[string]any {
	t.Helper()
	owner := r.object
	if r.kind == engine.KindSandboxClaim {
		owner = poolOf(t, decide, r)
	}
	template, err := decide.Lookup.Template(t.Context(), r.namespace, textAt(owner, "spec", "sandboxTemplateRef", "name"))
	if err != nil {
		t.Fatal(err)
	}
	return template
}

func poolOf(t *testing.T, decide *Judge, r review) map[string]any {
	t.Helper()
	pool, err := decide.Lookup.Pool(t.Context(), r.namespace, textAt(r.object, "spec", "warmPoolRef", "name"))
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// mustBeNeeded fails the test when a check that is blind to the evasion would have found
// everything that there is to find.
func mustBeNeeded(t *testing.T, decide *Judge, c corpus.Case, name string, tried evasion) {
	t.Helper()
	if name == corpus.EvasionSteps {
		mustComeInSteps(t, c)
		return
	}
	for _, blind := range tried.blind {
		blinded := *decide
		inner := *decide.Judge
		inner.Lookup = blindLookup{decide.Lookup, blind}
		blinded.Judge = &inner
		if missed(c.Denials, verdictOf(t, &blinded, c, blind).with(engine.Deny)) {
			return
		}
	}
	t.Errorf("a check that knows nothing of %q finds all the same", name)
}

// mustComeInSteps fails the test unless several states of the manifest are judged, all but
// the last of which TestCorpus wants admitted: what is there before a rule is no step.
func mustComeInSteps(t *testing.T, c corpus.Case) {
	t.Helper()
	judged := slices.DeleteFunc(slices.Clone(c.Documents), func(d corpus.Document) bool { return d.Stored })
	if len(judged) < 2 {
		t.Errorf("%d of its states are judged, want two or more", len(judged))
	}
}

// verdictOf judges the last state of a manifest, with every state read blindly.
func verdictOf(t *testing.T, decide *Judge, c corpus.Case, blind func(map[string]any)) verdict {
	t.Helper()
	var v verdict
	var stored map[string]any
	for _, document := range c.Documents {
		object := runtime.DeepCopyJSON(asDecoded(t, document.Object))
		blind(object)
		if document.Stored {
			stored = object
			continue
		}
		v, stored = submit(t, decide, c, object, stored)
	}
	return v
}

func asDecoded(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	var decoded map[string]any
	if err := json.Unmarshal(asJSONText(t, object), &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

// missed reports whether one of the findings that are stated is not among those.
func missed(want []corpus.Finding, got []engine.Finding) bool {
	return slices.ContainsFunc(want, func(w corpus.Finding) bool {
		return !slices.ContainsFunc(got, func(f engine.Finding) bool { return w.Is(f.Rule, f.Field) })
	})
}

// blindLookup reads templates blindly too.
type blindLookup struct {
	judge.Lookup
	blind func(map[string]any)
}

func (b blindLookup) Template(ctx context.Context, namespace, name string) (map[string]any, error) {
	template, err := b.Lookup.Template(ctx, namespace, name)
	if err != nil || template == nil {
		return nil, err
	}
	template = runtime.DeepCopyJSON(template)
	b.blind(template)
	return template, nil
}

func evasions() map[string]evasion {
	return map[string]evasion{
		corpus.EvasionInit:      {[]func(map[string]any){without("initContainers", isNoSidecar)}, hasIn("initContainers", isNoSidecar)},
		corpus.EvasionSidecar:   {[]func(map[string]any){without("initContainers", isSidecar)}, hasIn("initContainers", isSidecar)},
		corpus.EvasionEphemeral: {[]func(map[string]any){without("ephemeralContainers", isAny)}, has("ephemeralContainers")},
		corpus.EvasionEmpty:     {[]func(map[string]any){pruned, filled}, hasEmpty},
		corpus.EvasionDuplicate: {[]func(map[string]any){firstOfAName, lastOfAName}, hasDuplicate},
		corpus.EvasionCase: {
			[]func(map[string]any){readAs(strings.ToLower), readAs(strings.ToUpper), entries("add", isUpper)},
			anyText(func(text string) bool { return text != strings.ToLower(text) }),
		},
		corpus.EvasionLookAlike:  {[]func(map[string]any){readAs(folded), readAs(ascii)}, anyText(func(text string) bool { return text != ascii(text) })},
		corpus.EvasionImage:      {[]func(map[string]any){images(beforeDigest), images(portAsTag), images(withoutPort)}, anyImage},
		corpus.EvasionProjected:  {[]func(map[string]any){withoutMember("projected")}, has("projected")},
		corpus.EvasionSteps:      {},
		corpus.EvasionAnnotation: {[]func(map[string]any){withoutMember("annotations")}, has("annotations")},
		corpus.EvasionHuge:       {[]func(map[string]any){cut}, isHuge},
		corpus.EvasionEnv:        {[]func(map[string]any){withoutMember("env")}, has("env")},
	}
}
