// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	saysNotReady = "False/SandboxNotReady: Sandbox is not ready"
	saysMissing  = "False/SandboxMissing: Sandbox does not exist"
	saysExpired  = "False/ClaimExpired: Claim expired. Sandbox cleanup initiated."
)

type (
	template = extensionsv1beta1.SandboxTemplate
	pool     = extensionsv1beta1.SandboxWarmPool
)

func emptyPool(_ *template, p *pool) { p.Spec.Replicas = new(int32(0)) }

// bound makes a claim that has the Sandbox pool-1 and is Ready, annotations and all.
func (e *environment) bound(edits ...func(*extensionsv1beta1.SandboxClaim)) *stock {
	e.Helper()
	stock := e.pool()
	stock.add("pool-1")
	stock.offers(1, 1)
	e.Create(makeClaim("claim", edits...))
	e.says(saysReady)
	e.Eventually("the claim is annotated", func() error {
		if e.claim("claim").Annotations[keys.SandboxName] == "" {
			return errors.New("it is not")
		}
		return nil
	})
	return stock
}

// named fails the test unless the claim's status names that Sandbox.
func (e *environment) named(want string) {
	e.Helper()
	if got := e.claim("claim").Status.SandboxStatus.Name; got != want {
		e.Errorf("status.sandbox.name = %q, want %q", got, want)
	}
}

func TestAnEmptyPoolThatIsNotRefilledStartsTheClaimCold(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.pool(emptyPool)
	e.Create(makeClaim("claim"))
	e.says(saysNotReady)
	e.named("claim")
	e.report("claim", func(s *agentsv1beta1.SandboxStatus) { *s = readyStatus() })
	e.says(saysReady)
}

func TestAClaimWaitsForTheRefillAndIsWokenByIt(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	stock := e.pool()
	e.Create(makeClaim("claim"))
	e.Eventually("the claim waits", func() error { return waits(e) })
	if got := sayReady(e.claim("claim")); got != "absent" {
		t.Errorf("while it waits the claim says %q, want nothing", got)
	}
	stock.add("pool-1")
	e.says(saysReady)
	e.named("pool-1")
}

// What a claim brings itself can only be part of a Sandbox of its own.
func TestVariablesAndVolumesLeaveThePoolAlone(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		claim func(*extensionsv1beta1.SandboxClaim)
		// has says what is missing of the Sandbox.
		has func(*agentsv1beta1.Sandbox) error
	}{
		"variables": {withEnv(extensionsv1beta1.EnvVar{Name: "A", Value: "b"}), func(s *agentsv1beta1.Sandbox) error {
			if env := s.Spec.PodTemplate.Spec.Containers[0].Env; len(env) != 1 || env[0].Name != "A" || env[0].Value != "b" {
				return fmt.Errorf("the container has the variables %v", env)
			}
			return nil
		}},
		"volumes": {withVolumes("more"), func(s *agentsv1beta1.Sandbox) error {
			if volumes := s.Spec.VolumeClaimTemplates; len(volumes) != 1 || volumes[0].Name != "more" {
				return fmt.Errorf("the Sandbox has the volumes %v", volumes)
			}
			return nil
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			stock := e.pool(func(t *template, _ *pool) {
				t.Spec.EnvVarsInjectionPolicy, t.Spec.VolumeClaimTemplatesPolicy = extensionsv1beta1.InjectionAllowed, extensionsv1beta1.InjectionAllowed
			})
			stock.add("pool-1")
			stock.offers(1, 1)
			e.Create(makeClaim("claim", tc.claim))
			e.says(saysNotReady)
			e.named("claim")
			if err := tc.has(e.sandbox("claim")); err != nil {
				t.Error(err)
			}
			stock.offers(1, 1)
		})
	}
}

func TestAMistakeIsToldOnceAndMendedByTheTemplate(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	stock := e.pool()
	e.Create(makeClaim("claim", withEnv(extensionsv1beta1.EnvVar{Name: "A", Value: "b"})))
	e.says("False/EnvVarsInjectionRejected: environment variable injection rejected: " +
		"environment variable injection is not allowed by the template policy")
	if got := e.Writes().Total(); got != 1 {
		t.Errorf("%d writes, want 1:\n%s", got, e.Writes())
	}
	before := stock.template.DeepCopy()
	stock.template.Spec.EnvVarsInjectionPolicy = extensionsv1beta1.InjectionAllowed
	if err := e.Client.Patch(t.Context(), stock.template, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	e.says(saysNotReady)
}

// The older member would be the first to be handed out, and was fit until a moment ago.
func TestWhatIsNotHealthyNowIsNotHandedOut(t *testing.T) {
	t.Parallel()
	// Each spoils the member pool-1, and says whether the index knows of it.
	cases := map[string]struct {
		spoil func(*environment)
		known bool
	}{
		"a Pod that ceased to be ready": {func(e *environment) {
			e.reportPod("pool-1", func(s *corev1.PodStatus) { apiserver.SetCondition(s, corev1.PodReady, corev1.ConditionFalse) })
		}, true},
		"a Pod that is being deleted": {func(e *environment) {
			e.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "pool-1"}})
		}, true},
		"a Sandbox that ceased to be ready": {func(e *environment) {
			e.report("pool-1", func(s *agentsv1beta1.SandboxStatus) { s.Conditions[0].Status = metav1.ConditionFalse })
		}, true},
		"a Sandbox that lost its address": {func(e *environment) {
			e.report("pool-1", func(s *agentsv1beta1.SandboxStatus) { s.PodIPs = nil })
		}, true},
		"a Sandbox that was suspended": {func(e *environment) {
			e.editSandbox("pool-1", func(s *agentsv1beta1.Sandbox) { s.Spec.OperatingMode = agentsv1beta1.OperatingModeSuspended })
		}, true},
		"a node that is cordoned": {func(e *environment) {
			e.editNode(func(n *corev1.Node) { n.Spec.Unschedulable = true })
		}, true},
		"a node that is being drained": {func(e *environment) {
			e.editNode(func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule})
			})
		}, true},
		"a node that is not ready": {func(e *environment) {
			node := &corev1.Node{}
			if err := e.Client.Get(e.Context(), client.ObjectKey{Name: e.node}, node); err != nil {
				e.Fatal(err)
			}
			node.Status.Conditions[0].Status = corev1.ConditionUnknown
			if err := e.Client.Status().Update(e.Context(), node); err != nil {
				e.Fatal(err)
			}
		}, true},
		"a member that its template no longer describes, under Recreate": {func(e *environment) {
			e.templateIs(func(t *template) { t.Spec.PodTemplate.Spec.Containers[0].Image = newImage })
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			stock := e.pool(func(_ *template, p *pool) {
				p.Spec.UpdateStrategy = &extensionsv1beta1.UpdateStrategy{Type: extensionsv1beta1.UpdateStrategyRecreate}
			})
			stock.add("pool-1")
			stock.offers(1, 1)
			tc.spoil(e)
			offered := 1
			if tc.known {
				offered = 0
			}
			stock.offers(offered, 1)
			e.Get("template", stock.template)
			elsewhere := "other-" + e.node
			e.MakeNode(elsewhere)
			stock.add("pool-2", func(_ *agentsv1beta1.Sandbox, p *corev1.Pod) { p.Spec.NodeName = elsewhere })
			stock.offers(offered+1, 2)
			e.Create(makeClaim("claim"))
			e.says(saysReady)
			e.named("pool-2")
			if owner := stock.member("pool-1").OwnerReferences[0]; owner.Name != stock.pool.Name {
				t.Errorf("the member that is not fit belongs to %s", owner.Name)
			}
		})
	}
}

// newImage is what a template describes after a change.
const newImage = "python:3.13-slim"

func (e *environment) editSandbox(name string, change func(*agentsv1beta1.Sandbox)) {
	e.Helper()
	apiserver.Change(e.Environment, name, &agentsv1beta1.Sandbox{}, change)
}

// editNode changes the node of the members.
func (e *environment) editNode(change func(*corev1.Node)) {
	e.Helper()
	node := &corev1.Node{}
	if err := e.Client.Get(e.Context(), client.ObjectKey{Name: e.node}, node); err != nil {
		e.Fatal(err)
	}
	before := node.DeepCopy()
	change(node)
	if err := e.Client.Patch(e.Context(), node, client.MergeFrom(before)); err != nil {
		e.Fatal(err)
	}
}

// reportPod writes the status of a Pod as the kubelet would.
func (e *environment) reportPod(name string, change func(*corev1.PodStatus)) {
	e.Helper()
	pod := &corev1.Pod{}
	e.Get(name, pod)
	if err := (apiserver.Kubelet{Client: e.Client, Node: e.node}).Report(e.Context(), pod, change); err != nil {
		e.Fatal(err)
	}
}

// The tier got a floor after the pool had made its members: those below it stay where
// they are, whatever the pool's strategy, and the claim takes one that reaches it.
func TestAMemberBelowTheFloorOfTheTierIsNotHandedOut(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, func(e *environment) {
		e.setting.Current().RuntimeClassOrder = []string{"kata", "gvisor", "runc"}
		tier := e.setting.Current().Tiers["standard"]
		tier.RuntimeClass.Floor = "gvisor"
		e.setting.Current().Tiers["standard"] = tier
	})
	stock := e.pool()
	under := func(class string) func(*agentsv1beta1.Sandbox, *corev1.Pod) {
		return func(b *agentsv1beta1.Sandbox, _ *corev1.Pod) { b.Spec.PodTemplate.Spec.RuntimeClassName = new(class) }
	}
	stock.add("pool-1")
	stock.add("pool-2", under("runc"))
	stock.add("pool-3", under("kata"))
	stock.offers(3, 3)
	e.Create(makeClaim("claim"))
	e.says(saysReady)
	e.named("pool-3")
	e.Create(makeClaim("second"))
	e.Eventually("the second claim waits", func() error { return waits(e) })
	e.jump("second", time.Hour)
	e.Eventually("the second claim starts cold", func() error {
		if got := e.claim("second").Status.SandboxStatus.Name; got != "second" {
			return fmt.Errorf("its Sandbox is %q", got)
		}
		return nil
	})
	for _, name := range []string{"pool-1", "pool-2"} {
		left := &agentsv1beta1.Sandbox{}
		e.Get(name, left)
		if owner := metav1.GetControllerOf(left); owner == nil || owner.Name != stock.pool.Name {
			t.Errorf("Sandbox %s is controlled by %v, want it left to the pool", name, owner)
		}
	}
}

func TestNotFoundIsToldLateAndEndsWhenTheObjectComes(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	made := time.Now() //nolint:forbidigo // The apiserver's clock is the machine's.
	e.Create(makeClaim("claim"))
	e.says(`False/WarmPoolNotFound: SandboxWarmPool "pool" not found`)
	if told := time.Since(made); told < notFoundAfter { //nolint:forbidigo // As above.
		t.Errorf("told after %s, want at least %s", told, notFoundAfter)
	}
	pass := &scope{claim: makeClaim("claim"), now: e.Clock.Now(), record: &record{}}
	pass.claim.Namespace = e.Namespace
	if err := e.reconciler.findBlueprint(t.Context(), pass); err == nil || pass.wake.Sub(pass.now) != time.Minute {
		t.Errorf("what is not found (%v) is looked for again after %s, should its event be missed, want a minute", err, pass.wake.Sub(pass.now))
	}
	e.Create(makePool(func(p *pool) { emptyPool(nil, p) }))
	e.says(`False/TemplateNotFound: SandboxTemplate "template" not found`)
	e.Create(makeTemplate())
	e.says(saysNotReady)
}

func TestAClaimWhoseSandboxWasDeletedSaysSoAndTakesNoOther(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	stock := e.bound()
	stock.add("pool-2")
	sandbox := &agentsv1beta1.Sandbox{}
	e.Get("pool-1", sandbox)
	e.Delete(sandbox)
	e.says(saysMissing)
	e.named("")
	e.restart()
	stock.offers(1, 1)
	e.jump("claim", 0)
	e.Eventually("the new controller has looked", func() error { return e.seen("claim") })
	e.stop() // it ends what it has begun
	e.says(saysMissing)
	if owner := stock.member("pool-2").OwnerReferences[0]; owner.Name != stock.pool.Name {
		t.Errorf("another member belongs to %s", owner.Name)
	}
}

func TestABoundClaimOutlivesItsPoolAndTemplate(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	stock := e.bound(withPodMetadata(map[string]string{"sandbox.users.io/a": "b"}, nil))
	e.Delete(stock.pool)
	e.Delete(stock.template)
	e.Eventually("the controller has seen that they are gone", func() error {
		cached := e.reconciler.client
		for _, err := range []error{
			cached.Get(e.Context(), client.ObjectKeyFromObject(stock.pool), &pool{}),
			cached.Get(e.Context(), client.ObjectKeyFromObject(stock.template), &template{}),
		} {
			if !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("it has not"), err)
			}
		}
		return nil
	})
	e.edit("claim", func(c *extensionsv1beta1.SandboxClaim) { c.Spec.Lifecycle = &extensionsv1beta1.ClaimLifecycle{} })
	e.says(saysReady)
}

func TestChangedMetadataReachesTheSandbox(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.bound()
	e.edit("claim", withPodMetadata(map[string]string{"sandbox.users.io/a": "b"}, nil))
	e.Eventually("the Sandbox has it", func() error {
		sandbox := &agentsv1beta1.Sandbox{}
		e.Get("pool-1", sandbox)
		if got := sandbox.Spec.PodTemplate.ObjectMeta.Labels; got["sandbox.users.io/a"] != "b" || got["app"] != "workspace" {
			return fmt.Errorf("labels are %v", got)
		}
		return nil
	})
	e.edit("claim", withPodMetadata(map[string]string{"app": "other"}, nil))
	e.says("False/InvalidMetadata: spec.additionalPodMetadata.labels[app]: the key needs a domain: write sandbox.users.io/app")
	e.named("pool-1")
}

func TestTheNameOfSomebodyElsesSandbox(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.pool(emptyPool)
	foreign := makeSandbox(func(s *agentsv1beta1.Sandbox) { s.Name, s.OwnerReferences, s.ResourceVersion = "claim", nil, "" })
	e.Create(foreign)
	e.Create(makeClaim("claim"))
	e.says(`False/ReconcilerError: Error seen: sandbox "claim" is not controlled by claim "claim". ` +
		"Please use a different claim name or delete the sandbox manually")
	e.Delete(foreign)
	e.says(saysNotReady)
}

func TestExpiryFollowsThePolicy(t *testing.T) {
	t.Parallel()
	ends := func(policy extensionsv1beta1.ClaimShutdownPolicy) func(*extensionsv1beta1.SandboxClaim) {
		return withLifecycle(extensionsv1beta1.ClaimLifecycle{TTLSecondsAfterFinished: new(int32(0)), ShutdownPolicy: policy})
	}
	finish := func(e *environment) {
		e.report("pool-1", func(s *agentsv1beta1.SandboxStatus) {
			meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: "Finished", Status: "True", Reason: "PodSucceeded", Message: "Pod completed successfully"})
		})
	}
	t.Run("Delete deletes the claim", func(t *testing.T) {
		t.Parallel()
		e := newEnvironment(t)
		e.bound(ends(extensionsv1beta1.ClaimShutdownPolicyDelete))
		said := e.reasons()
		finish(e)
		e.Gone("claim", &extensionsv1beta1.SandboxClaim{})
		e.Eventually("it is seen that the claim said so before it went", func() error {
			if got := said(); !slices.Contains(got, ReasonClaimExpired) {
				return fmt.Errorf("it said %v", got)
			}
			return nil
		})
	})
	t.Run("DeleteForeground lets the claim wait for its Sandbox", func(t *testing.T) {
		t.Parallel()
		e := newEnvironment(t)
		e.bound(ends(extensionsv1beta1.ClaimShutdownPolicyDeleteForeground))
		finish(e)
		e.Eventually("the claim is going", func() error {
			if c := e.claim("claim"); c.DeletionTimestamp == nil || c.Finalizers[0] != metav1.FinalizerDeleteDependents {
				return fmt.Errorf("it is not: %v", c.Finalizers)
			}
			return nil
		})
	})
	t.Run("Retain deletes the Sandbox and keeps the claim with its end", func(t *testing.T) {
		t.Parallel()
		e := newEnvironment(t)
		e.bound(ends(extensionsv1beta1.ClaimShutdownPolicyRetain))
		finish(e)
		e.Gone("pool-1", &agentsv1beta1.Sandbox{})
		e.Eventually("the claim names it no more", func() error {
			if got := e.claim("claim").Status.SandboxStatus.Name; got != "" {
				return errors.New(got)
			}
			return nil
		})
		claim := e.says(saysExpired)
		if !meta.IsStatusConditionTrue(claim.Status.Conditions, agentsv1beta1.ConditionFinished) {
			t.Error("Finished is gone")
		}
	})
	t.Run("a claim that is never bound gives up", func(t *testing.T) {
		t.Parallel()
		e := newEnvironment(t)
		e.pool()
		e.Create(makeClaim("claim", patient))
		e.Eventually("the claim waits", func() error { return waits(e) })
		e.jump("claim", 5*time.Minute)
		e.gaveUp()
	})
}

func TestAClaimOfTheSameNameGetsASandboxOfItsOwn(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.pool(emptyPool)
	e.Create(makeClaim("claim"))
	e.says(saysNotReady)
	first := &agentsv1beta1.Sandbox{}
	e.Get("claim", first)
	e.Delete(e.claim("claim"))
	e.Gone("claim", &extensionsv1beta1.SandboxClaim{})
	e.Create(makeClaim("claim"))
	e.says("False/SandboxCreatePending: Sandbox already created; waiting for cache to converge")
	e.Delete(first) // the garbage collector's part
	e.says(saysNotReady)
	second := &agentsv1beta1.Sandbox{}
	e.Get("claim", second)
	if second.UID == first.UID {
		t.Error("the new claim has the Sandbox of the old one")
	}
}

func TestAnAdoptionThatTheClaimNamesAlreadyIsFinished(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	stock := e.pool()
	stock.add("pool-1")
	stock.add("pool-2")
	stock.offers(2, 2)
	e.Create(makeClaim("claim", func(c *extensionsv1beta1.SandboxClaim) { c.Annotations = map[string]string{keys.SandboxName: "pool-2"} }))
	e.says(saysReady)
	e.named("pool-2")
}
