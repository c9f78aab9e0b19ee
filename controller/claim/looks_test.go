// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim/candidates"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// shop is a pool with many members in memory, and how often claims looked at one.
type shop struct {
	*Reconciler

	pool     *extensionsv1beta1.SandboxWarmPool
	template *extensionsv1beta1.SandboxTemplate
	looks    int
}

func newShop(t *testing.T, strategy extensionsv1beta1.UpdateStrategyType, stale, fresh int) *shop {
	t.Helper()
	s := &shop{template: makeTemplate(), pool: makePool(func(p *extensionsv1beta1.SandboxWarmPool) {
		p.Spec.UpdateStrategy = &extensionsv1beta1.UpdateStrategy{Type: strategy}
	})}
	before := makeTemplate(func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.PodTemplate.Spec.Containers[0].Image = "python:2.7" })
	var members []*agentsv1beta1.Sandbox
	for i := range stale {
		members = append(members, makeMemberOf(t, s.pool, before, fmt.Sprintf("stale-%d", i), time.Hour))
	}
	for i := range fresh {
		members = append(members, makeMemberOf(t, s.pool, s.template, fmt.Sprintf("fresh-%d", i), time.Minute))
	}
	scheme, err := apiserver.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	s.Reconciler = New(s.store(scheme, members), s.store(scheme, nil), nil, clocktesting.NewFakePassiveClock(noon()),
		Settings{Current: apiserver.Platform, NoEvents: true})
	s.index.SetNode("node", true)
	for _, member := range members {
		s.index.SetPod(member.UID, candidates.Pod{UID: member.UID, Ready: true, Node: "node"})
		s.noteSandbox(nil, member)
	}
	return s
}

// makeMemberOf is a member that was made that long ago.
func makeMemberOf(
	t *testing.T, pool *extensionsv1beta1.SandboxWarmPool, template *extensionsv1beta1.SandboxTemplate, name string, ago time.Duration,
) *agentsv1beta1.Sandbox {
	t.Helper()
	member, err := blueprint.ForPool(pool, template, blueprint.Options{SafeToEvict: true})
	if err != nil {
		t.Fatal(err)
	}
	blueprint.SetName(member, name)
	member.UID, member.CreationTimestamp, member.ResourceVersion = types.UID(name), metav1.NewTime(noon().Add(-ago)), "999"
	member.Status.PodIPs = []string{"10.1.2.3"}
	withCondition(agentsv1beta1.ConditionReady, metav1.ConditionTrue, agentsv1beta1.ReasonDependenciesReady, "Pod is Ready", 0)(member)
	return member
}

// store is what reads and writes go to. It counts looks at members.
func (s *shop) store(scheme *runtime.Scheme, members []*agentsv1beta1.Sandbox) client.WithWatch {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.pool.Namespace}}, s.template.DeepCopy()}
	for _, member := range members {
		objects = append(objects, member)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if _, isMember := into.(*agentsv1beta1.Sandbox); isMember {
				s.looks++
			}
			return c.Get(ctx, key, into, options...)
		},
	}).Build()
}

// serve lets a claim ask the pool, and returns the name of what it got.
func (s *shop) serve(t *testing.T, name string) string {
	t.Helper()
	pass := makeScope()
	pass.claim.Name, pass.claim.UID = name, types.UID(name)
	pass.record.uid = pass.claim.UID
	pass.pool, pass.template, pass.epoch = s.pool, s.template, s.index.Epoch()
	if err := s.adopt(t.Context(), pass); err != nil {
		t.Fatal(err)
	}
	if pass.sandbox == nil {
		return ""
	}
	return pass.sandbox.Name
}

// What a claim costs does not grow with the members that are not for it: however many the
// template no longer describes, one is looked at, by one claim.
func TestStaleMembersCostOneLookHoweverManyThereAre(t *testing.T) {
	const claims = 20
	for _, strategy := range []extensionsv1beta1.UpdateStrategyType{
		extensionsv1beta1.UpdateStrategyRecreate, extensionsv1beta1.UpdateStrategyRollingUpdate,
	} {
		for _, stale := range []int{200, 2000} {
			t.Run(fmt.Sprintf("%s, %d stale", strategy, stale), func(t *testing.T) {
				s := newShop(t, strategy, stale, claims)
				var got []string
				for i := range claims {
					got = append(got, s.serve(t, fmt.Sprintf("claim-%d", i)))
				}
				if slices.ContainsFunc(got, func(name string) bool { return !strings.HasPrefix(name, "fresh-") }) {
					t.Errorf("claims got %q, want fresh ones only", got)
				}
				if none := s.serve(t, "late"); none != "" || s.looks != claims+1 {
					t.Errorf("the last claim got %q, and %d looks at members served %d claims, want none and %d", none, s.looks, claims, claims+1)
				}
				s.noteSandbox(nil, makeMemberOf(t, s.pool, s.template, "fresh-more", 0))
				s.index.SetPod("fresh-more", candidates.Pod{UID: "fresh-more", Ready: true, Node: "node"})
				if _, offered := s.index.Size(client.ObjectKeyFromObject(s.pool)); offered != 1 {
					t.Errorf("%d members are offered, want the new one alone", offered)
				}
			})
		}
	}
}

// unloaded is a judge whose policies are not loaded.
type unloaded struct{ verdict.Judge }

func (unloaded) Ready() bool { return false }

// While nobody can say which members today's rules refuse, none is looked at.
func TestAClaimThatNobodyCanJudgeForLooksAtNoMember(t *testing.T) {
	s := newShop(t, extensionsv1beta1.UpdateStrategyRecreate, 0, 200)
	s.settings.Verdicts = unloaded{}
	if got := s.serve(t, "claim"); got != "" || s.looks != 0 || s.index.TotalWaiting() != 1 {
		t.Errorf("the claim got %q after %d looks, and %d claims wait", got, s.looks, s.index.TotalWaiting())
	}
	s.settings.Verdicts = nil
	if got := s.serve(t, "claim"); got == "" {
		t.Error("the claim gets none when that has changed")
	}
}
