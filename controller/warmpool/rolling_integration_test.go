// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package warmpool

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	laterImage = "python:3.13-slim"
	// countSandboxes is what a quota bounds.
	countSandboxes corev1.ResourceName = "count/sandboxes.agents.x-k8s.io"
)

// describeLater changes the image of the template.
func (e *environment) describeLater() {
	e.Helper()
	change(e, makeTemplate(), func(template *extensionsv1beta1.SandboxTemplate) {
		template.Spec.PodTemplate.Spec.Containers[0].Image = laterImage
	})
}

// later counts the members of the later image.
func (e *environment) later() int {
	e.Helper()
	count := 0
	for _, member := range e.members() {
		if member.Spec.PodTemplate.Spec.Containers[0].Image == laterImage {
			count++
		}
	}
	return count
}

// bounded puts a quota of Sandboxes in force and plays the controller that gives back what
// those took that go.
func (e *environment) bounded(most string) {
	e.Helper()
	if err := apiserver.Quota(e.Context(), e.Client, e.Namespace, corev1.ResourceList{countSandboxes: resource.MustParse(most)}); err != nil {
		e.Fatal(err)
	}
	e.Watch(&agentsv1beta1.SandboxList{}, func(event watch.Event) {
		if event.Type != watch.Deleted {
			return
		}
		err := retry.OnError(retry.DefaultBackoff, func(error) bool { return true }, func() error {
			var quota corev1.ResourceQuota
			if err := e.Client.Get(context.Background(), e.Key("quota"), &quota); err != nil {
				return err
			}
			used := quota.Status.Used[countSandboxes]
			used.Sub(resource.MustParse("1"))
			quota.Status.Used[countSandboxes] = used
			return e.Client.Status().Update(context.Background(), &quota)
		})
		if err != nil && e.Context().Err() == nil {
			e.Errorf("give back what a Sandbox took of the quota: %v", err)
		}
	})
}

// A quota has room for the replicas and no more, so that nothing can be made before
// something goes: a fifth of the pool at most, and never the last one.
func TestARollingUpdateWithoutRoomKeepsToItsFloor(t *testing.T) {
	t.Parallel()
	t.Run("a pool of five is updated with four Ready", func(t *testing.T) {
		t.Parallel()
		e := newEnvironment(t)
		lowest, highest := e.lowestReady(5), e.highest()
		e.bounded("5")
		e.Create(makeTemplate(), makePool(5, byStrategy(extensionsv1beta1.UpdateStrategyRollingUpdate)))
		e.settled(5)
		e.describeLater()
		e.Eventually("all members are new", func() error {
			if got := e.later(); got != 5 {
				return fmt.Errorf("%d of %d", got, len(e.members()))
			}
			return nil
		})
		e.settled(5)
		if least, most := lowest(), highest(); least != 4 || most != 5 {
			t.Errorf("there were %d Ready members at least and %d members at most, want 4 and 5", least, most)
		}
	})
	t.Run("a pool of one keeps its member and says why, until there is room", func(t *testing.T) {
		t.Parallel()
		e := newEnvironment(t)
		lowest := e.lowestReady(1)
		e.bounded("1")
		e.Create(makeTemplate(), makePool(1, byStrategy(extensionsv1beta1.UpdateStrategyRollingUpdate)))
		e.settled(1)
		before := e.members()[0]
		e.describeLater()
		e.Eventually("the pool says that the quota is in the way", func() error {
			said := meta.FindStatusCondition(e.pool().Status.Conditions, extensionsv1beta1.PoolConditionQuotaExceeded)
			if said == nil || said.Reason != reasonQuotaExceeded || !strings.Contains(said.Message, "exceeded quota: quota") {
				return fmt.Errorf("QuotaExceeded = %+v", said)
			}
			return nil
		})
		if left := e.members(); len(left) != 1 || left[0].UID != before.UID {
			t.Errorf("the pool has %d members, want the one that it had", len(left))
		}
		var quota corev1.ResourceQuota
		e.Get("quota", &quota)
		quota.Spec.Hard[countSandboxes] = resource.MustParse("2")
		if err := e.Client.Update(t.Context(), &quota); err != nil {
			t.Fatal(err)
		}
		quota.Status.Hard = quota.Spec.Hard
		if err := e.Client.Status().Update(t.Context(), &quota); err != nil {
			t.Fatal(err)
		}
		e.Eventually("the member is new", func() error {
			if got := e.later(); got != 1 || len(e.members()) != 1 {
				return fmt.Errorf("%d of %d", got, len(e.members()))
			}
			return nil
		})
		if least := lowest(); least != 1 {
			t.Errorf("there were %d Ready members at a moment, want 1", least)
		}
	})
}

// refusing is a judge that refuses what it is told to.
type refusing struct {
	verdict.Judge

	mu     sync.Mutex
	member types.UID
}

func (r *refusing) refuse(member types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.member = member
}

// Refused implements verdict.Judge.
func (r *refusing) Refused(context.Context, string, []*agentsv1beta1.Sandbox) sets.Set[types.UID] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sets.New(r.member)
}

// OnRefused implements verdict.Judge.
func (*refusing) OnRefused(func(types.NamespacedName)) {}

// A rule of today refuses the one member that there is, which the template describes. Under
// RollingUpdate another one is Ready before it goes; under the others it goes first.
func TestTheOnlyMemberThatIsRefusedGoesOnceAnotherIsReady(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[extensionsv1beta1.UpdateStrategyType]int64{
		extensionsv1beta1.UpdateStrategyRollingUpdate: 1, extensionsv1beta1.UpdateStrategyOnReplenish: 0,
	} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			rules := &refusing{}
			e := newEnvironment(t, func(e *environment) { e.settings.Verdicts = rules })
			lowest := e.lowestReady(1)
			e.Create(makeTemplate(), makePool(1, byStrategy(strategy)))
			e.settled(1)
			before := e.members()[0].UID
			rules.refuse(before)
			e.Clock.Jump(e.settings.ReadinessGrace)
			e.wake()
			e.Eventually("the member is another one", func() error {
				if now := e.members(); len(now) != 1 || now[0].UID == before || countReady(now) != 1 {
					return fmt.Errorf("there are %d members, %d Ready", len(now), countReady(now))
				}
				return nil
			})
			if least := lowest(); least != want {
				t.Errorf("there were %d Ready members at least, want %d", least, want)
			}
		})
	}
}
