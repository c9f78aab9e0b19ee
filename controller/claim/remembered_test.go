// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// archive is what is stored of a claim, and passes over it of controllers that know no more.
type archive struct {
	*testing.T

	stored client.WithWatch
	clock  *clocktesting.FakeClock
	r      *Reconciler
}

// newArchive stores a claim and other objects.
func newArchive(t *testing.T, claim *extensionsv1beta1.SandboxClaim, objects ...client.Object) *archive {
	t.Helper()
	scheme, err := apiserver.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(append(objects, claim, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: claim.Namespace}})...).
		WithStatusSubresource(&extensionsv1beta1.SandboxClaim{})
	for _, index := range relations.OfExtensions() {
		builder = builder.WithIndex(index.Object, index.Name, func(o client.Object) []string { return []string{index.Value(o)} })
	}
	a := &archive{T: t, stored: builder.Build(), clock: clocktesting.NewFakeClock(noon())}
	a.restart()
	return a
}

// restart lets another controller follow, which remembers nothing. It wants no times.
func (a *archive) restart() {
	a.r = New(a.stored, a.stored, events.NewFakeRecorder(99), a.clock, Settings{Current: apiserver.Platform, NoTimes: true})
}

// answers lets the apiserver carry no creation out, and answer as it is told.
func (a *archive) answers(answer func() error) {
	a.r.client = interceptor.NewClient(a.stored, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return answer() },
	})
}

// pass is one pass over the claim, whose errors are for the claim to say.
func (a *archive) pass() *extensionsv1beta1.SandboxClaim {
	a.Helper()
	if err := a.r.pass(a.Context(), a.claim()); err != nil {
		a.Logf("the pass ends in %v", err)
	}
	return a.claim()
}

// claim is the claim as it is stored; nil once it is deleted.
func (a *archive) claim() *extensionsv1beta1.SandboxClaim {
	a.Helper()
	claim := &extensionsv1beta1.SandboxClaim{}
	err := a.stored.Get(a.Context(), client.ObjectKey{Namespace: "team-a", Name: "claim"}, claim)
	if client.IgnoreNotFound(err) != nil {
		a.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return claim
}

// edit changes the claim as its owner.
func (a *archive) edit(change func(*extensionsv1beta1.SandboxClaim)) {
	a.Helper()
	claim := a.claim()
	change(claim)
	if err := a.stored.Update(a.Context(), claim); err != nil {
		a.Fatal(err)
	}
}

// A claim was Ready, its Sandbox was deleted, and what it asks of its Pod is refused by now.
// When that is mended, no controller gives it another Sandbox without a word.
func TestALossIsNotForgottenForAnotherTrouble(t *testing.T) {
	a := newArchive(t, makeClaim("claim", withPodMetadata(map[string]string{"app": "sandbox-router"}, nil), func(c *extensionsv1beta1.SandboxClaim) {
		ready(c, metav1.ConditionTrue, agentsv1beta1.ReasonDependenciesReady)
		c.Status.SandboxStatus.Name, c.Annotations = "box", map[string]string{keys.SandboxName: "box"}
	}), makeTemplate(), makePool())
	a.pass()
	a.restart()
	a.edit(func(c *extensionsv1beta1.SandboxClaim) { c.Spec.AdditionalPodMetadata.Labels = nil })
	if claim := a.pass(); storedReason(claim) != ReasonSandboxMissing || claim.Status.SandboxStatus.Name != "" {
		t.Errorf("the claim says %q and has Sandbox %q", storedReason(claim), claim.Status.SandboxStatus.Name)
	}
}

// A claim was told what it lacks, and waits for its pool now that it lacks that no more. It says
// so at once, whenever the pool is ready; one that was told nothing says nothing.
func TestAClaimThatWaitsSaysNothingThatIsTrueNoMore(t *testing.T) {
	told := func(reason string) func(*extensionsv1beta1.SandboxClaim) {
		return func(c *extensionsv1beta1.SandboxClaim) { ready(c, metav1.ConditionFalse, reason) }
	}
	cases := map[string]struct {
		claim *extensionsv1beta1.SandboxClaim
		want  string
	}{
		"of its pool":       {makeClaim("claim", told(ReasonWarmPoolNotFound)), "False/SandboxNotReady: Sandbox is not ready"},
		"of its template":   {makeClaim("claim", told(ReasonTemplateNotFound)), "False/SandboxNotReady: Sandbox is not ready"},
		"of its metadata":   {makeClaim("claim", told(ReasonInvalidMetadata)), "False/SandboxNotReady: Sandbox is not ready"},
		"of nothing so far": {makeClaim("claim"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.claim.Generation = 2
			a := newArchive(t, tc.claim, makeTemplate(), makePool())
			a.r.settings.ColdStartAfter = time.Hour
			claim, got := a.pass(), ""
			if c := meta.FindStatusCondition(claim.Status.Conditions, agentsv1beta1.ConditionReady); c != nil {
				got = string(c.Status) + "/" + c.Reason + ": " + c.Message
				if c.ObservedGeneration != claim.Generation {
					t.Errorf("it speaks of generation %d of %d", c.ObservedGeneration, claim.Generation)
				}
			}
			if got != tc.want || a.r.index.Waiting(types.NamespacedName{Namespace: "team-a", Name: "pool"}) != 1 {
				t.Errorf("the claim says %q, want %q, and is to wait", got, tc.want)
			}
			written := claim.ResourceVersion
			if again := a.pass(); again.ResourceVersion != written {
				t.Error("a second pass wrote the claim again")
			}
		})
	}
}

// The Pod of a claim failed before it was ever Ready, and somebody deleted the Sandbox. The
// end of that Pod is no end of the claim.
func TestTheEndOfAPodThatIsGoneEndsNoClaim(t *testing.T) {
	failed := func(c *extensionsv1beta1.SandboxClaim) {
		ready(c, metav1.ConditionFalse, agentsv1beta1.ReasonPodFailed)
		c.Status.SandboxStatus.Name = "claim"
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{
			Type: agentsv1beta1.ConditionFinished, Status: metav1.ConditionTrue, Reason: agentsv1beta1.ReasonPodFailed,
			LastTransitionTime: metav1.NewTime(noon()),
		})
	}
	ends := withLifecycle(extensionsv1beta1.ClaimLifecycle{
		TTLSecondsAfterFinished: new(int32(60)), ShutdownPolicy: extensionsv1beta1.ClaimShutdownPolicyDelete,
	})
	t.Run("a claim that waits for its pool meanwhile", func(t *testing.T) {
		a := newArchive(t, makeClaim("claim", failed, ends))
		a.pass() // tells nothing: pool and template may still come
		a.clock.Step(time.Hour)
		claim := a.pass()
		if meta.FindStatusCondition(claim.Status.Conditions, agentsv1beta1.ConditionFinished) != nil || storedReason(claim) != ReasonWarmPoolNotFound {
			t.Errorf("the claim says %+v", claim.Status.Conditions)
		}
	})
	t.Run("one whose time was up before anybody looked", func(t *testing.T) {
		a := newArchive(t, makeClaim("claim", failed, ends))
		a.clock.Step(time.Hour)
		if claim := a.pass(); storedReason(claim) != ReasonClaimExpired {
			t.Errorf("the claim says %+v", claim.Status.Conditions)
		}
		if claim := a.pass(); claim != nil {
			t.Errorf("the claim is there and says %+v", claim.Status.Conditions)
		}
	})
}

// A claim that ceases to be Ready before its annotations are written gets them all the same.
func TestAClaimThatWasReadyForAMomentIsAnnotated(t *testing.T) {
	claim := makeClaim("claim")
	a := newArchive(t, claim, makeSandbox(func(s *agentsv1beta1.Sandbox) {
		s.ResourceVersion, s.OwnerReferences = "", []metav1.OwnerReference{
			*metav1.NewControllerRef(claim, extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxClaimKind)),
		}
	}))
	if claim := a.pass(); !isReady(claim.Status) || claim.Annotations[keys.SandboxName] != "" {
		t.Fatalf("the claim says %+v, %v: the test proves nothing", claim.Status, claim.Annotations)
	}
	sandbox := &agentsv1beta1.Sandbox{}
	if err := a.stored.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "box"}, sandbox); err != nil {
		t.Fatal(err)
	}
	sandbox.Status.Conditions[0].Status = metav1.ConditionFalse
	if err := a.stored.Update(t.Context(), sandbox); err != nil {
		t.Fatal(err)
	}
	if claim := a.pass(); isReady(claim.Status) {
		t.Fatalf("the claim says %+v: the test proves nothing", claim.Status)
	}
	if claim := a.pass(); claim.Annotations[keys.SandboxName] != "box" {
		t.Errorf("its annotations are %v", claim.Annotations)
	}
}
