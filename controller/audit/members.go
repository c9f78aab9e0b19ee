// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/log"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
)

// notLoaded is the reason of verdicts before the policies are loaded.
const notLoaded = "the policies are not loaded yet"

// errNotJudged says that a Sandbox is in a namespace that nobody judges.
var errNotJudged = errors.New("the namespace is not judged")

// members judges the Sandboxes that wait in pools.
type members struct {
	*examiner
	metrics *metrics

	mu        sync.Mutex
	onChange  []func(namespace string)
	onRefused []func(pool types.NamespacedName)
}

var _ verdict.Judge = (*members)(nil)

func newMembers(x *examiner, m *metrics) *members {
	made := &members{examiner: x, metrics: m}
	x.found = made.note
	return made
}

// Ready says whether the policies are loaded.
func (m *members) Ready() bool { return m.engine.Ready() }

// Of judges a Sandbox, unless it was judged in this state before.
func (m *members) Of(ctx context.Context, sandbox *agentsv1beta1.Sandbox) verdict.Verdict {
	if !m.Ready() {
		return m.count(verdict.Verdict{Reason: notLoaded})
	}
	e, err := m.entry(ctx, sandbox)
	if errors.Is(err, errNotJudged) {
		return verdict.Verdict{State: verdict.Admitted}
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot judge a Sandbox that waits, so nobody gets it", "sandbox", sandbox.Name)
		return m.count(verdict.Verdict{Reason: err.Error()})
	}
	return m.count(e.verdict())
}

func (m *members) entry(ctx context.Context, sandbox *agentsv1beta1.Sandbox) (*entry, error) {
	facts, err := m.facts(ctx, sandbox.Namespace)
	if err != nil {
		return nil, err
	}
	if !m.judges(facts.Namespace.Labels) {
		return nil, errNotJudged
	}
	now, err := m.state(ctx, sandbox, facts)
	if err != nil {
		return nil, err
	}
	if e := m.remembered(sandbox, facts, now); e != nil && !e.stale(m.judge.Clock.Now()) {
		return e, nil
	}
	return m.examine(ctx, sandbox, facts, now)
}

// Refused are those that are known to be refused. Where none is, that costs next to
// nothing.
func (m *members) Refused(ctx context.Context, namespace string, sandboxes []*agentsv1beta1.Sandbox) sets.Set[types.UID] {
	refused := sets.New[types.UID]()
	for _, sandbox := range sandboxes {
		if e := m.ledger.get(namespace, sandbox.UID); e != nil && e.verdict().State == verdict.Refused {
			refused.Insert(sandbox.UID)
		}
	}
	if refused.Len() == 0 {
		return refused
	}
	facts, err := m.facts(ctx, namespace)
	for _, sandbox := range sandboxes {
		if !refused.Has(sandbox.UID) {
			continue
		}
		var now state
		if err == nil {
			now, err = m.state(ctx, sandbox, facts)
		}
		if err != nil || m.remembered(sandbox, facts, now) == nil {
			refused.Delete(sandbox.UID) // that was another state
		}
	}
	return refused
}

func (m *members) count(v verdict.Verdict) verdict.Verdict {
	m.metrics.members.WithLabelValues(v.State.String()).Inc()
	return v
}

// OnChange adds a function that hears when verdicts may be other ones.
func (m *members) OnChange(changed func(namespace string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onChange = append(m.onChange, changed)
}

// OnRefused adds a function that hears of pools with a Sandbox that is refused.
func (m *members) OnRefused(refused func(pool types.NamespacedName)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onRefused = append(m.onRefused, refused)
}

// changed tells that verdicts of a namespace, or of all, may be other ones now.
func (m *members) changed(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, tell := range m.onChange {
		tell(namespace)
	}
}

// note tells of a pool's Sandbox whose verdict is another one now.
func (m *members) note(namespace string, before, now *entry) {
	if now.pool == "" {
		return
	}
	was, is := verdict.Unknown, now.verdict().State
	if before != nil {
		was = before.verdict().State
	}
	switch {
	case is == was:
	case is == verdict.Refused:
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, tell := range m.onRefused {
			tell(poolKey(namespace, now))
		}
	case is == verdict.Admitted && before != nil:
		m.changed(namespace)
	}
}

// poolKey names the pool of an entry.
func poolKey(namespace string, e *entry) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: e.pool}
}
