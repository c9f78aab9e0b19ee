// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"maps"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// examiner judges stored objects and remembers what it found.
type examiner struct {
	judge  *judge.Judge
	engine *engine.Engine
	cached cached
	ledger *ledger
	// judged selects the namespaces that are judged.
	judged   labels.Selector
	versions *versions
	// found is called with what was known of an object before and is now; nil for
	// nobody.
	found func(namespace string, before, now *entry)
}

func newExaminer(reader client.Reader, rules *engine.Engine, clk clock.PassiveClock, settings Settings) *examiner {
	c := cached{lookup.Glancing(reader)}
	x := &examiner{
		judge: &judge.Judge{
			Current: settings.Current, Lookup: c, Engine: rules, RelaxedServiceNames: settings.RelaxedServiceNames, Clock: clk,
		},
		engine: rules, cached: c, ledger: newLedger(), versions: newVersions(), judged: settings.Judged,
	}
	if x.judged == nil {
		x.judged = labels.Everything()
	}
	return x
}

// judges says whether admission judges the objects of a namespace with such labels.
func (x *examiner) judges(namespace map[string]string) bool {
	return x.judged.Matches(labels.Set(namespace))
}

// known are facts, their fingerprint, and the versions of what rules may read.
type known struct {
	judge.Facts
	sum     uint64
	vintage vintage
}

// facts reads what every judgement in a namespace rests on.
func (x *examiner) facts(ctx context.Context, namespace string) (known, error) {
	vintage := x.versions.of(namespace)
	facts, err := x.judge.Facts(ctx, namespace)
	if err != nil {
		return known{}, err
	}
	f := newFingerprint()
	f.texts(facts.Namespace.Labels)
	f.texts(facts.Namespace.Annotations)
	for _, classes := range []sets.Set[string]{facts.Classes.Existing, facts.Classes.Usable} {
		f.number(int64(classes.Len()))
		for _, class := range sets.List(classes) {
			f.text(class)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(facts.Platform.EgressProfiles)) {
		for _, why := range facts.Platform.EgressProfiles[name].Unresolved {
			f.text(name)
			f.text(why)
		}
	}
	if err := f.rules(facts.Platform.EgressProfiles[facts.Tier.Egress.Ceiling]); err != nil {
		return known{}, err
	}
	return known{facts, f.sum(), vintage}, nil
}

// state is what a judgement of the object would be about.
func (x *examiner) state(ctx context.Context, object client.Object, facts known) (state, error) {
	f := newFingerprint()
	f.object(object)
	if err := x.cached.referred(ctx, f, object); err != nil {
		return state{}, err
	}
	colliding, err := x.cached.Colliding(ctx, kindOf(object).Kind, object.GetNamespace(), object.GetName())
	if err != nil {
		return state{}, err
	}
	f.text(colliding)
	return state{digest: x.engine.Digest(), facts: facts.sum, object: f.sum()}, nil
}

// remembered is the entry of an object in that state; nil when it would have to be
// judged.
func (x *examiner) remembered(object client.Object, facts known, now state) *entry {
	e := x.ledger.get(object.GetNamespace(), object.GetUID())
	if e == nil || e.state != now || !e.holds(facts, x.judge.Clock.Now()) {
		return nil
	}
	return e
}

// examine judges an object and remembers it.
func (x *examiner) examine(ctx context.Context, object client.Object, facts known, now state) (*entry, error) {
	content, err := document(object)
	if err != nil {
		return nil, err
	}
	kind, begun := kindOf(object), x.judge.Clock.Now()
	judged, err := x.judge.Standing(ctx, judge.Question{
		Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName(),
		Object: content, Controller: owner(object) != nil,
	}, facts.Facts)
	if err != nil {
		return nil, err
	}
	now.digest = judged.Digest // the policies may have changed since
	e := &entry{
		kind: kind, name: object.GetName(), uid: object.GetUID(), pool: poolOf(object), state: now,
		at: begun, vintage: facts.vintage, valid: judged.Validity,
	}
	for _, f := range engine.Listed(judge.Distinct(judged.Findings)) {
		e.findings = append(e.findings, shown(f))
	}
	before := x.ledger.put(object.GetNamespace(), e)
	if x.found != nil {
		x.found(object.GetNamespace(), before, e)
	}
	return e, nil
}

// shown is a finding as reports and metrics show it. What only updates are compared by would tell findings apart that look
// alike.
func shown(f engine.Finding) unique.Handle[engine.Finding] {
	f.Content, f.Amount = "", 0
	return unique.Make(f)
}
