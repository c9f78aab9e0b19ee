// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
)

// oracle gives the verdicts that it was told, as the audit gives those of the rules.
type oracle struct {
	mu      sync.Mutex
	ready   bool
	says    map[string]verdict.State
	changed func(namespace string)
}

func (o *oracle) Ready() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ready
}

func (o *oracle) Of(_ context.Context, sandbox *agentsv1beta1.Sandbox) verdict.Verdict {
	o.mu.Lock()
	defer o.mu.Unlock()
	return verdict.Verdict{State: o.says[sandbox.Name]}
}

func (*oracle) Refused(context.Context, string, []*agentsv1beta1.Sandbox) sets.Set[types.UID] {
	return nil
}

func (o *oracle) OnChange(changed func(namespace string)) { o.changed = changed }

func (*oracle) OnRefused(func(pool types.NamespacedName)) {}

// tell changes what the oracle says.
func (o *oracle) tell(ready bool, says map[string]verdict.State) {
	o.mu.Lock()
	o.ready, o.says = ready, says
	o.mu.Unlock()
	o.changed("")
}

func TestAClaimGetsAWaitingSandboxOnlyOnceItIsAdmitted(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		ready bool
		says  map[string]verdict.State
	}{
		"the policies are not loaded": {false, map[string]verdict.State{"pool-1": verdict.Admitted}},
		"nobody can say":              {true, map[string]verdict.State{}},
		"it is refused":               {true, map[string]verdict.State{"pool-1": verdict.Refused}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("it waits until that changes", func(t *testing.T) {
				t.Parallel()
				o := &oracle{ready: tc.ready, says: tc.says}
				e := newEnvironment(t, func(e *environment) { e.setting.Verdicts = o })
				stock := e.pool()
				stock.add("pool-1")
				stock.offers(1, 1)
				e.Create(makeClaim("claim"))
				e.Eventually("the claim waits", func() error { return waits(e) })
				o.tell(true, map[string]verdict.State{"pool-1": verdict.Admitted})
				if got := e.says(saysReady).Status.SandboxStatus.Name; got != "pool-1" {
					t.Errorf("the claim has Sandbox %q, want pool-1", got)
				}
			})
			t.Run("and starts cold rather than wait for long", func(t *testing.T) {
				t.Parallel()
				o := &oracle{ready: tc.ready, says: tc.says}
				e := newEnvironment(t, func(e *environment) { e.setting.Verdicts, e.setting.ColdStartAfter = o, 50*time.Millisecond })
				stock := e.pool()
				stock.add("pool-1")
				stock.offers(1, 1)
				e.Create(makeClaim("claim"))
				e.Eventually("the claim has a Sandbox of its own", func() error { return ownSandbox(e) })
			})
		})
	}
}

func waits(e *environment) error {
	if e.reconciler.index.TotalWaiting() == 0 {
		return errors.New("it does not wait")
	}
	return nil
}

func ownSandbox(e *environment) error {
	if !e.Exists("claim", &agentsv1beta1.Sandbox{}) {
		return errors.New("there is none")
	}
	return nil
}
