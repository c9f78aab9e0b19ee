// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package warmpool

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// give lets a claim take a member, as the claim controller does.
func (e *environment) give(member *agentsv1beta1.Sandbox, claim string) error {
	taken := member.DeepCopy()
	taken.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: extensionsv1beta1.GroupVersion.String(), Kind: extensionsv1beta1.SandboxClaimKind,
		Name: claim, UID: types.UID(claim), Controller: new(true),
	}}
	delete(taken.Labels, keys.WarmPoolSandbox)
	return e.Client.Patch(context.Background(), taken, client.MergeFromWithOptions(member, client.MergeFromWithOptimisticLock{}))
}

func TestPoolIsFilledAndEachMemberKnowsItsPodBeforeItIsReady(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makePool(3), makeTemplate())
	e.settled(3)
	for _, member := range e.members() {
		if member.Annotations[keys.PodName] != member.Name || !strings.HasPrefix(member.Name, "pool-") {
			t.Errorf("member %q has the annotation pod-name %q", member.Name, member.Annotations[keys.PodName])
		}
	}
	pool := e.pool()
	if want := keys.WarmPoolSandbox + "=" + keys.NameHash("pool"); pool.Status.Selector != want {
		t.Errorf("selector = %q, want %q", pool.Status.Selector, want)
	}
	e.saysProgressing(reasonComplete)
	e.writesAtMost(map[string]int{"create sandboxes": 3, "patch sandboxes": 0, "create pods": 3})
}

// writesAtMost counts the writes of all controllers in the namespace.
func (e *environment) writesAtMost(most map[string]int) {
	e.Helper()
	if err := server.Audit.Settle(e.Context(), server.Config); err != nil {
		e.Fatal(err)
	}
	counts, err := server.Audit.Writes(apiserver.Filter{User: e.User, Namespace: e.Namespace})
	if err != nil {
		e.Fatal(err)
	}
	for what, limit := range most {
		if counts[what] > limit {
			e.Errorf("%d times %q, want %d at most; all writes:\n%s", counts[what], what, limit, counts)
		}
	}
}

func TestPoolIsScaledThroughItsSubresourceAndKeepsItsSelectorAtNone(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makeTemplate(), makePool(2))
	e.settled(2)
	for _, replicas := range []int32{4, 0} {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		if err := e.Client.SubResource("scale").Update(t.Context(), e.pool(), client.WithSubResourceBody(scale)); err != nil {
			t.Fatal(err)
		}
		e.settled(replicas)
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxWarmPoolKind))
	e.Get("pool", stored)
	for _, field := range [][]string{{"spec", "replicas"}, {"status", "replicas"}, {"status", "readyReplicas"}} {
		if value, written, err := unstructured.NestedInt64(stored.Object, field...); value != 0 || !written || err != nil {
			t.Errorf("%v of a pool of none is stored as %d: %t, %v, want 0", field, value, written, err)
		}
	}
	var scale autoscalingv1.Scale
	if err := e.Client.SubResource("scale").Get(t.Context(), e.pool(), &scale); err != nil {
		t.Fatal(err)
	}
	if scale.Status.Selector != keys.WarmPoolSandbox+"="+keys.NameHash("pool") || scale.Status.Replicas != 0 {
		t.Errorf("scale at none = %+v", scale.Status)
	}
}

// The numbers are there when they were never anything but 0.
func TestAPoolOfNoneSaysSo(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makeTemplate(), makePool(0))
	e.saysProgressing(reasonComplete)
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxWarmPoolKind))
	e.Get("pool", stored)
	status, _, err := unstructured.NestedMap(stored.Object, "status")
	if err != nil {
		t.Fatal(err)
	}
	delete(status, "conditions")
	want := map[string]any{
		"replicas": int64(0), "readyReplicas": int64(0), "observedGeneration": stored.GetGeneration(),
		"selector": keys.WarmPoolSandbox + "=" + keys.NameHash("pool"),
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// Pods that wait for a node, or behind a gate, are held however long that takes: new ones
// would wait as well. One that ceased to be ready is replaced after its grace.
func TestMembersThatWaitAreHeldAndThoseThatFailAreReplaced(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, func(e *environment) { e.Told = &apiserver.Told{} })
	template := makeTemplate()
	template.Spec.PodTemplate.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
	e.Create(template, makePool(1))
	e.saysProgressing(reasonFilling)
	member := e.gated()
	e.Clock.Jump(e.settings.ReadinessGrace)
	e.wake()
	note := "1/1 sandboxes are unschedulable past the 5m0s readiness grace period; " +
		"holding them instead of replacing (replacements would be equally unschedulable)"
	if said := e.saysProgressing(reasonUnschedulable); said.Message != note {
		t.Errorf("message = %q, want %q", said.Message, note)
	}
	if now := e.members(); len(now) != 1 || now[0].UID != member.UID {
		t.Errorf("%d members after the grace, want %s held", len(now), member.Name)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: member.Name}}
	change(e, pod, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
	e.saysProgressing(reasonComplete)
	told := []string{"Warning WarmPoolNotProgressing: " + note, "Normal WarmPoolProgressing: Warm pool is progressing again"}
	e.Eventually("the Events are told", func() error {
		if diff := cmp.Diff(told, e.Told.All()); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	e.Get(member.Name, pod)
	if err := (apiserver.Kubelet{Client: e.Client}).Report(t.Context(), pod, func(s *corev1.PodStatus) {
		apiserver.SetCondition(s, corev1.PodReady, corev1.ConditionFalse)
	}); err != nil {
		t.Fatal(err)
	}
	e.saysProgressing(reasonFilling)
	e.Clock.Jump(2 * e.settings.ReadinessGrace)
	e.wake()
	e.Eventually("the member that failed is replaced", func() error {
		if now := e.members(); len(now) != 1 || now[0].UID == member.UID {
			return fmt.Errorf("there are %d members, among them the old one", len(now))
		}
		return nil
	})
}

// gated waits until the only member has a Pod that waits behind a gate.
func (e *environment) gated() *agentsv1beta1.Sandbox {
	e.Helper()
	var member agentsv1beta1.Sandbox
	e.Eventually("the member waits behind its gate", func() error {
		members := e.members()
		if len(members) != 1 {
			return fmt.Errorf("there are %d", len(members))
		}
		member = members[0]
		scheduled := meta.FindStatusCondition(member.Status.Conditions, agentsv1beta1.ConditionPodScheduled)
		if scheduled == nil || scheduled.Reason != corev1.PodReasonSchedulingGated {
			return fmt.Errorf("PodScheduled is %+v", scheduled)
		}
		return nil
	})
	return &member
}

// wake lets the controller look at the pools of the template.
func (e *environment) wake() {
	e.Helper()
	change(e, makeTemplate(), func(t *extensionsv1beta1.SandboxTemplate) {
		t.Annotations = map[string]string{"at": e.Clock.Now().String()}
	})
}

// lowestReady watches how few members are Ready at a moment once all of them were.
func (e *environment) lowestReady(all int) func() int64 {
	e.Helper()
	isReady := func(s *agentsv1beta1.Sandbox) bool {
		return meta.IsStatusConditionTrue(s.Status.Conditions, agentsv1beta1.ConditionReady)
	}
	var least atomic.Int64
	least.Store(int64(all))
	full := false
	caughtUp := e.watchOver(isReady, func(count int) {
		if full = full || count == all; full {
			least.Store(min(least.Load(), int64(count)))
		}
	})
	return func() int64 { caughtUp(); return least.Load() }
}

func TestPoolWaitsForItsTemplateAndSaysSo(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makePool(1))
	if said := e.saysProgressing(reasonTemplateNotFound); said.Message != `SandboxTemplate "python" not found` {
		t.Errorf("message = %q", said.Message)
	}
	e.Create(makeTemplate())
	e.settled(1)
}

// Admission judges no edit of a template that somebody's finalizer holds after it was deleted.
func TestAPoolMakesNothingFromATemplateThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	template := makeTemplate()
	template.Finalizers = []string{"example.com/hold"}
	e.Create(template, makePool(1))
	e.settled(1)
	e.Delete(template)
	change(e, template, func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.PodTemplate.Spec.HostNetwork = true })
	change(e, makePool(0), func(p *extensionsv1beta1.SandboxWarmPool) { p.Spec.Replicas = new(int32(2)) })
	e.Eventually("the pool says of its new size that it has no template", func() error {
		if said := e.saysProgressing(reasonTemplateNotFound); said.ObservedGeneration != e.pool().Generation {
			return fmt.Errorf("it says %v", said)
		}
		return nil
	})
	if got := len(e.members()); got != 1 {
		t.Errorf("the pool has %d members, want the one that it had", got)
	}
}

// A user may give a member an end: no claim gets it any more, and another takes its place.
func TestAMemberThatItsUserGivesAnEndIsReplaced(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makeTemplate(), makePool(1))
	e.settled(1)
	e.Clock.Jump(e.settings.ReadinessGrace) // before that nothing is replaced that was Ready
	ending := e.members()[0]
	change(e, &ending, func(s *agentsv1beta1.Sandbox) {
		s.Spec.ShutdownTime = new(metav1.NewTime(e.Clock.Now().Add(time.Hour)))
	})
	e.Eventually("another has its place", func() error {
		if now := e.members(); len(now) != 1 || now[0].UID == ending.UID {
			return fmt.Errorf("there are %d", len(now))
		}
		return nil
	})
}

// What waits in a pool runs its template, and ends with its tier like all that runs there.
func TestAMemberThatItsTierEndsIsReplaced(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, func(e *environment) {
		e.settings.Current = func() *config.Platform {
			platform := apiserver.Platform()
			tier := platform.Tiers["standard"]
			tier.MaxLifetime = metav1.Duration{Duration: 5 * time.Second}
			platform.Tiers["standard"] = tier
			return platform
		}
	})
	e.Create(makeTemplate(), makePool(1))
	var first agentsv1beta1.Sandbox
	e.Eventually("the pool has a member", func() error {
		now := e.members()
		if len(now) != 1 {
			return fmt.Errorf("there are %d", len(now))
		}
		first = now[0]
		return nil
	})
	e.Clock.Jump(e.settings.ReadinessGrace) // before that nothing is replaced that was Ready
	e.Eventually("another has its place", func() error {
		if now := e.members(); len(now) != 1 || now[0].UID == first.UID {
			return fmt.Errorf("there are %d", len(now))
		}
		return nil
	})
}

func TestStrategies(t *testing.T) {
	t.Parallel()
	newImage := func(template *extensionsv1beta1.SandboxTemplate) {
		template.Spec.PodTemplate.Spec.Containers[0].Image = "python:3.13-slim"
	}
	fresh := func(e *environment) int {
		count := 0
		for _, member := range e.members() {
			if member.Spec.PodTemplate.Spec.Containers[0].Image == "python:3.13-slim" {
				count++
			}
		}
		return count
	}
	for _, strategy := range []extensionsv1beta1.UpdateStrategyType{
		extensionsv1beta1.UpdateStrategyRecreate, extensionsv1beta1.UpdateStrategyRollingUpdate,
	} {
		t.Run(string(strategy)+" replaces them, and a new label of the Pod replaces none", func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			lowest := e.lowestReady(6)
			e.Create(makeTemplate(), makePool(5, byStrategy(strategy)))
			e.settled(5)
			before := names(e.members())
			change(e, makeTemplate(), func(template *extensionsv1beta1.SandboxTemplate) {
				template.Spec.PodTemplate.ObjectMeta.Labels = map[string]string{"team": "blue"}
			})
			change(e, makePool(0), func(p *extensionsv1beta1.SandboxWarmPool) { p.Spec.Replicas = new(int32(6)) })
			e.settled(6)
			after := names(e.members())
			for name := range before {
				if !after[name] {
					t.Errorf("member %q was replaced for a label", name)
				}
			}
			change(e, makeTemplate(), newImage)
			e.Eventually("all members are new", func() error {
				if got := fresh(e); got != 6 || len(e.members()) != 6 {
					return fmt.Errorf("%d of %d", got, len(e.members()))
				}
				return nil
			})
			if got := lowest(); strategy == extensionsv1beta1.UpdateStrategyRollingUpdate && got < 6 {
				t.Errorf("only %d of 6 members were Ready at a moment", got)
			}
		})
	}
	t.Run("OnReplenish keeps them until they are taken", func(t *testing.T) {
		t.Parallel()
		e := newEnvironment(t)
		e.Create(makeTemplate(), makePool(2))
		e.settled(2)
		before := e.members()
		change(e, makeTemplate(), newImage)
		if err := e.give(&before[0], "claim"); err != nil {
			t.Fatal(err)
		}
		e.Eventually("the one that is missing is new", func() error {
			if got := fresh(e); got != 1 || len(e.members()) != 2 {
				return fmt.Errorf("%d of %d", got, len(e.members()))
			}
			return nil
		})
		if !names(e.members())[before[1].Name] {
			t.Errorf("the stale member %q is gone", before[1].Name)
		}
	})
}

func names(sandboxes []agentsv1beta1.Sandbox) map[string]bool {
	set := map[string]bool{}
	for i := range sandboxes {
		set[sandboxes[i].Name] = true
	}
	return set
}

func TestOrphans(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makeTemplate(), makePool(1))
	e.settled(1)
	orphan := e.members()[0].DeepCopy()
	// The owner goes, the Sandbox stays: as when a pool is deleted and its members kept.
	change(e, orphan, func(s *agentsv1beta1.Sandbox) { s.OwnerReferences = nil })
	e.settled(1)
	other := orphan.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Name: "somebodys", Labels: orphan.Labels, Annotations: map[string]string{keys.SandboxTemplateRef: "python"}}
	other.Spec.PodTemplate.Spec.Containers[0].Image = "evil"
	e.Create(other)
	anothers := other.DeepCopy()
	anothers.ObjectMeta = metav1.ObjectMeta{Name: "anothers", Labels: orphan.Labels, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: extensionsv1beta1.GroupVersion.String(), Kind: extensionsv1beta1.SandboxWarmPoolKind, Name: "pool", UID: "another", Controller: new(true),
	}}}
	e.Create(anothers)
	if note := e.event(eventOrphanLeft); !strings.Contains(note, "somebodys") && !strings.Contains(note, orphan.Name) {
		t.Errorf("the Event says %q", note)
	}
	change(e, makePool(0), func(p *extensionsv1beta1.SandboxWarmPool) { p.Spec.Replicas = new(int32(3)) })
	e.Eventually("the pool has three and counts no other's", func() error {
		if status := e.pool().Status; status.Replicas != 3 || status.ReadyReplicas != 3 {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})
	for _, left := range []*agentsv1beta1.Sandbox{other, anothers} {
		owners := len(left.OwnerReferences)
		e.Get(left.GetName(), left)
		if len(left.OwnerReferences) != owners || left.DeletionTimestamp != nil {
			t.Errorf("a Sandbox that is not the pool's was touched: %+v", left.ObjectMeta)
		}
	}
	e.Get(orphan.GetName(), orphan)
	if metav1.GetControllerOf(orphan) == nil {
		t.Errorf("a Sandbox that is what the pool makes was not taken over")
	}
}

func TestQuotaAndPolicyAreSaidInTheirOwnWords(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	hard := corev1.ResourceList{"count/sandboxes.agents.x-k8s.io": resource.MustParse("2")}
	if err := apiserver.Quota(t.Context(), e.Client, e.Namespace, hard); err != nil {
		t.Fatal(err)
	}
	e.Create(makeTemplate(), makePool(4))
	said := e.saysProgressing(reasonQuotaExceeded)
	if !strings.Contains(said.Message, "exceeded quota: quota") {
		t.Errorf("message = %q", said.Message)
	}
	e.Eventually("the members that the quota allows are there, and no more", func() error {
		pool := e.pool()
		if !meta.IsStatusConditionTrue(pool.Status.Conditions, extensionsv1beta1.PoolConditionQuotaExceeded) || pool.Status.ReadyReplicas != 2 {
			return fmt.Errorf("%+v", pool.Status)
		}
		return nil
	})
	change(e, makePool(0), func(p *extensionsv1beta1.SandboxWarmPool) { p.Spec.Replicas = new(int32(2)) })
	e.saysProgressing(reasonComplete)
	change(e, makeTemplate(), func(template *extensionsv1beta1.SandboxTemplate) {
		template.Annotations = map[string]string{keys.EgressProfile: "wide"}
	})
	e.Eventually("a profile that the tier does not allow is denied", func() error {
		denied := meta.FindStatusCondition(e.pool().Status.Conditions, extensionsv1beta1.PoolConditionPolicyDenied)
		if denied == nil || denied.Status != metav1.ConditionTrue || !strings.Contains(denied.Message, `"wide"`) {
			return fmt.Errorf("PolicyDenied = %+v", denied)
		}
		return nil
	})
}

// A template that opens more than the ceiling is not used, until the Service comes that the
// ceiling names.
func TestPoolIsWokenByATemplateThatMayBeUsedNow(t *testing.T) {
	t.Parallel()
	var platform atomic.Pointer[config.Platform]
	bounded := func(ceiling config.EgressProfile) {
		p := apiserver.Platform()
		tier := p.Tiers["standard"]
		tier.Egress.Ceiling, p.EgressProfiles["bound"] = "bound", ceiling
		p.Tiers["standard"] = tier
		platform.Store(p)
	}
	bounded(config.EgressProfile{Unresolved: []string{"Service tools/git opens nothing"}})
	e := newEnvironment(t, func(e *environment) { e.settings.Current = platform.Load })
	template := makeTemplate()
	pods := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "git"}}}
	template.Spec.NetworkPolicy = &extensionsv1beta1.NetworkPolicySpec{
		Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{pods}}},
	}
	e.Create(template, makePool(1))
	e.saysProgressing(reasonPolicyDenied)
	e.Eventually("the template says what it waits for", func() error {
		e.Get(template.Name, template)
		ready := meta.FindStatusCondition(template.Status.Conditions, extensionsv1beta1.TemplateConditionReady)
		if ready == nil || !strings.Contains(ready.Message, "Service tools/git opens nothing") {
			return fmt.Errorf("it is %+v", ready)
		}
		return nil
	})
	bounded(config.EgressProfile{Rules: []config.EgressRule{{PodSelector: pods.PodSelector}}})
	e.changed <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{}}
	e.Eventually("the pool makes its member", func() error {
		if got := len(e.members()); got != 1 {
			return fmt.Errorf("it has %d", got)
		}
		return nil
	})
}

func TestPoolIsWokenByTheTierOfItsNamespace(t *testing.T) {
	t.Parallel()
	platform := apiserver.Platform()
	wide := platform.Tiers["standard"]
	wide.Egress.Allowed = append(wide.Egress.Allowed, "wide")
	platform.Tiers["trusted"], platform.EgressProfiles["wide"] = wide, config.EgressProfile{Internet: true}
	e := newEnvironment(t, func(e *environment) { e.settings.Current = func() *config.Platform { return platform } })
	template := makeTemplate()
	template.Annotations = map[string]string{keys.EgressProfile: "wide"}
	e.Create(template, makePool(1))
	e.saysProgressing(reasonPolicyDenied)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+keys.Tier+`":"trusted"}}}`))
	if err := e.Client.Patch(t.Context(), namespace, patch); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the pool makes its member", func() error {
		if got := len(e.members()); got != 1 {
			return fmt.Errorf("it has %d", got)
		}
		return nil
	})
}
