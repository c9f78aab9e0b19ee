// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package warmpool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// watchOver follows which members stay, as the apiserver has them, and shows how many
// there are after each change.
func (e *environment) watchOver(stays func(*agentsv1beta1.Sandbox) bool, see func(count int)) (caughtUp func()) {
	e.Helper()
	live := map[types.UID]bool{}
	return e.Watch(&agentsv1beta1.SandboxList{}, func(event watch.Event) {
		sandbox, isSandbox := event.Object.(*agentsv1beta1.Sandbox)
		if !isSandbox {
			return
		}
		delete(live, sandbox.UID)
		if event.Type != watch.Deleted && sandbox.DeletionTimestamp == nil && relations.Pool(sandbox) != nil && stays(sandbox) {
			live[sandbox.UID] = true
		}
		see(len(live))
	})
}

// highest watches how many members there are at once at most.
func (e *environment) highest() func() int64 {
	e.Helper()
	var most atomic.Int64
	caughtUp := e.watchOver(func(*agentsv1beta1.Sandbox) bool { return true }, func(count int) { most.Store(max(most.Load(), int64(count))) })
	return func() int64 { caughtUp(); return most.Load() }
}

func TestNeverTooManyMembers(t *testing.T) {
	t.Parallel()
	for seed := range apiserver.Seeds(t, 3) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { t.Parallel(); neverTooMany(t, seed) })
	}
}

// neverTooMany lets claims and users take members from a pool whose controller sees
// every event up to five seconds late, is answered wrongly or not at all, and is
// restarted.
func neverTooMany(t *testing.T, seed uint64) {
	t.Helper()
	const replicas = 10
	lag, faults := apiserver.NewLag(seed, 5*time.Second, 0.02), apiserver.NewFaults(seed, 0.15)
	e := newEnvironment(t, func(e *environment) { e.Lag, e.Faults = lag, faults })
	lag.Begin()
	highest := e.highest()
	e.Create(makeTemplate(), makePool(replicas))
	taken := e.takeAtRandom(rand.New(rand.NewPCG(seed, seed)))
	lag.Stop()
	faults.Stop()
	e.Eventually("the pool has its replicas and says so", func() error {
		members, status := e.members(), e.pool().Status
		if ready := countReady(members); len(members) != replicas || status.Replicas != replicas || int(status.ReadyReplicas) != ready {
			return fmt.Errorf("%d members, %d Ready, status: %+v", len(members), ready, status)
		}
		return nil
	})
	if most := highest(); most > replicas {
		t.Errorf("there were %d members at once, want %d at most", most, replicas)
	}
	for name, claim := range taken {
		sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: name}}
		e.Get(sandbox.GetName(), sandbox)
		if owner := metav1.GetControllerOf(sandbox); owner == nil || owner.Name != claim || sandbox.DeletionTimestamp != nil {
			t.Errorf("Sandbox %q of claim %q was touched: %+v", name, claim, sandbox.ObjectMeta)
		}
	}
	if faults.Count() == 0 || len(taken) == 0 {
		t.Errorf("%d requests were disturbed and %d members taken: the test proves nothing", faults.Count(), len(taken))
	}
}

// Requests that were not answered are carried out seconds later, while they are repeated and
// refused, and claims take members.
func TestNeverTooManyMembersThoughSomeAreMadeLate(t *testing.T) {
	t.Parallel()
	for seed := range apiserver.Seeds(t, 2) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { t.Parallel(); madeLate(t, seed) })
	}
}

func madeLate(t *testing.T, seed uint64) {
	t.Helper()
	const replicas, taken = 5, 20
	faults := apiserver.NewFaults(seed, 0.4)
	faults.Belate(4 * time.Second)
	e := newEnvironment(t, func(e *environment) { e.Faults = faults })
	highest := e.highest()
	e.Create(makeTemplate(), makePool(replicas))
	random := rand.New(rand.NewPCG(seed, seed))
	for i := range taken {
		_ = e.give(e.anyMember(random), fmt.Sprintf("claim-%d", i)) // it may be gone, or another's by now
	}
	faults.Stop()
	faults.Settle()
	e.settled(replicas)
	if most := highest(); most > replicas {
		t.Errorf("there were %d members at once, want %d at most", most, replicas)
	}
}

// turn is how many members are taken before another controller follows.
const turn = 12

// takeAtRandom lets claims take members, or users delete them, and restarts the
// controller now and then. It returns the claims by the members they have.
func (e *environment) takeAtRandom(random *rand.Rand) map[string]string {
	e.Helper()
	taken := map[string]string{}
	steps := turn * 2
	if apiserver.LongRun() {
		steps = turn * 4
	}
	for step := range steps {
		if step > 0 && step%turn == 0 {
			e.restart()
		}
		<-clock.RealClock{}.After(time.Duration(random.IntN(300)) * time.Millisecond)
		member, claim := e.anyMember(random), fmt.Sprintf("claim-%d", step)
		if random.IntN(3) == 0 {
			if err := e.Client.Delete(e.Context(), member); client.IgnoreNotFound(err) != nil {
				e.Fatal(err)
			}
		} else if e.give(member, claim) == nil {
			taken[member.Name] = claim
		}
	}
	return taken
}

// anyMember waits until the pool has a member, so that the controller must work between
// any two restarts however fast the machine is.
func (e *environment) anyMember(random *rand.Rand) *agentsv1beta1.Sandbox {
	e.Helper()
	var members []agentsv1beta1.Sandbox
	e.Eventually("there is a member to take", func() error {
		if members = e.members(); len(members) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	return &members[random.IntN(len(members))]
}

func countReady(sandboxes []agentsv1beta1.Sandbox) int {
	ready := 0
	for i := range sandboxes {
		if meta.IsStatusConditionTrue(sandboxes[i].Status.Conditions, agentsv1beta1.ConditionReady) {
			ready++
		}
	}
	return ready
}
