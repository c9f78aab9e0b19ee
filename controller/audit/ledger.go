// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// state is what a judgement was about. Equal states have equal judgements, but for what
// time does and for what rules read of the cluster: see entry.holds.
type state struct {
	// digest names the policies.
	digest string
	// facts is the fingerprint of the namespace and of the RuntimeClasses, object that of
	// the object and of what it refers to.
	facts, object uint64
}

// finding is shared by all objects that have the same one: most come from a template.
type finding = unique.Handle[engine.Finding]

// entry is what is known of one object.
type entry struct {
	kind schema.GroupVersionKind
	name string
	uid  types.UID
	// pool is the name of the pool that controls a Sandbox; empty when none does.
	pool string

	state    state
	findings []finding

	// at is when it was judged, and vintage what rules could read of the cluster then.
	at      time.Time
	vintage vintage
	// valid is what of time and cluster decided.
	valid engine.Validity
}

// timed is how long a verdict is remembered that a rule gave by the clock.
const timed = time.Minute

// holds says whether the judgement is still the one that the same object would get.
func (e *entry) holds(facts known, now time.Time) bool {
	if e.failed() || !e.valid.Until.IsZero() && !now.Before(e.valid.Until) {
		return false
	}
	return !slices.ContainsFunc(e.valid.Read, func(data engine.Data) bool { return e.vintage[data] != facts.vintage[data] })
}

// stale says whether the clock may have changed the judgement.
func (e *entry) stale(now time.Time) bool {
	return e.valid.Timed && !now.Before(e.at.Add(timed))
}

// ends is when the first of the entries holds no longer; zero for never.
func ends(entries []*entry) time.Time {
	var first time.Time
	for _, e := range entries {
		if until := e.valid.Until; !until.IsZero() && (first.IsZero() || until.Before(first)) {
			first = until
		}
	}
	return first
}

// verdict says whether the findings refuse the object.
func (e *entry) verdict() verdict.Verdict {
	v := verdict.Verdict{State: verdict.Admitted}
	for _, handle := range e.findings {
		f := handle.Value()
		if f.Enforcement != engine.Deny {
			continue
		}
		reason := f.Rule + ": " + f.Message
		if f.Field != "" {
			reason = f.Rule + ": " + f.Field + ": " + f.Message
		}
		if !f.Failure {
			return verdict.Verdict{State: verdict.Refused, Reason: reason}
		}
		v = verdict.Verdict{State: verdict.Unknown, Reason: reason}
	}
	return v
}

// failed says whether a rule failed, so that the same may be judged otherwise the next
// time.
func (e *entry) failed() bool {
	return slices.ContainsFunc(e.findings, func(f finding) bool { return f.Value().Failure })
}

// ledger holds what is known of all objects. Entries are not changed once they are in.
type ledger struct {
	mu         sync.Mutex
	namespaces map[string]map[types.UID]*entry
}

func newLedger() *ledger {
	return &ledger{namespaces: map[string]map[types.UID]*entry{}}
}

// get returns the entry of an object; nil when there is none.
func (l *ledger) get(namespace string, uid types.UID) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.namespaces[namespace][uid]
}

// put replaces the entry of an object and returns the one before.
func (l *ledger) put(namespace string, e *entry) (before *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.namespaces[namespace] == nil {
		l.namespaces[namespace] = map[types.UID]*entry{}
	}
	before = l.namespaces[namespace][e.uid]
	l.namespaces[namespace][e.uid] = e
	return before
}

// drop forgets an object.
func (l *ledger) drop(namespace string, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.namespaces[namespace], uid)
	if len(l.namespaces[namespace]) == 0 {
		delete(l.namespaces, namespace)
	}
}

// keep forgets the objects of a namespace that are not among those there.
func (l *ledger) keep(namespace string, there sets.Set[types.UID]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid := range l.namespaces[namespace] {
		if !there.Has(uid) {
			delete(l.namespaces[namespace], uid)
		}
	}
	if len(l.namespaces[namespace]) == 0 {
		delete(l.namespaces, namespace)
	}
}

// of returns the entries of a namespace, in no order.
func (l *ledger) of(namespace string) []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := make([]*entry, 0, len(l.namespaces[namespace]))
	for _, e := range l.namespaces[namespace] {
		entries = append(entries, e)
	}
	return entries
}

// size is the number of objects.
func (l *ledger) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, entries := range l.namespaces {
		n += len(entries)
	}
	return n
}
