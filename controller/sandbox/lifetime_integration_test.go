// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const curtailedSay = expiredSay + ": the tier of its namespace lets none live longer"

// bounded gives the namespace's tier a longest life. No webhook is there: what the user
// stores, nobody has judged.
func bounded(most time.Duration) func(*environment) {
	return func(e *environment) {
		e.platform = apiserver.Platform()
		tier := e.platform.Tiers["standard"]
		tier.MaxLifetime = metav1.Duration{Duration: most}
		e.platform.Tiers["standard"] = tier
	}
}

func TestTheTierEndsWhatNobodyJudged(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, bounded(time.Hour))
	pod := e.running(makeSandbox(neverShutDown))
	e.expectEvents(eventCurtailed, 1)
	e.Get("box", pod)
	if got := pod.Labels[keys.MaxLifetime]; got != "1h0m0s" {
		t.Errorf("the Pod notes a life of %q, want 1h0m0s", got)
	}
	e.idle("box")

	e.jump(2 * time.Hour)
	e.saysReady("box", curtailedSay)
	e.Eventually("the Pod goes", func() error {
		if e.Exists("box", pod) && pod.DeletionTimestamp == nil {
			return errors.New("it stays")
		}
		return nil
	})
	e.release(pod)
	e.saysReady("box", curtailedSay)
	e.Gone(boxName, &corev1.Pod{})
	e.idle("box")

	e.edit(shutDownAt(e.Clock.Now().Add(time.Hour), agentsv1beta1.ShutdownPolicyRetain))
	e.saysReady("box", curtailedSay)
	e.idle("box")
	e.Gone(boxName, &corev1.Pod{})
}

// A longer life than the tier's, given while nobody judged, is not had; and it costs not
// one write more than any other Sandbox.
func TestAnExtensionThatNobodyJudgedIsNotHad(t *testing.T) {
	t.Parallel()
	writes := map[string]apiserver.Counts{}
	for name, edits := range map[string][]func(*environment){"bounded": {bounded(time.Hour)}, "free": nil} {
		e := newEnvironment(t, edits...)
		e.running(makeSandbox(shutDownAt(e.Clock.Now().Add(30*time.Minute), agentsv1beta1.ShutdownPolicyDelete)))
		e.idle("box")
		writes[name] = e.Writes()
		e.edit(shutDownAt(e.Clock.Now().Add(300*time.Hour), agentsv1beta1.ShutdownPolicyDelete))
		e.jump(2 * time.Hour)
		if name == "bounded" {
			e.Gone(boxName, &agentsv1beta1.Sandbox{})
			continue
		}
		e.idle("box")
		e.saysReady("box", "True/DependenciesReady: Pod is Ready")
	}
	if diff := cmp.Diff(writes["free"], writes["bounded"]); diff != "" {
		t.Errorf("writes until Ready (-without a bound +with one):\n%s", diff)
	}
}

// What runs outlives the day on which its tier becomes stricter. What does not run gets
// no new Pod, and keeps its files.
func TestAStricterTierEndsNothingThatRuns(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]time.Duration{"after one without a bound": 0, "after a wider one": 5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t, bounded(before))
			e.running(makeSandbox(withVolume("data"), withClaimSpec, neverShutDown))
			bounded(time.Hour)(e)
			e.restart()
			e.jump(2 * time.Hour)
			e.idle("box")
			pod := &corev1.Pod{}
			e.Get("box", pod)
			if ready := e.saysReady("box", "True/DependenciesReady: Pod is Ready"); pod.DeletionTimestamp != nil {
				t.Fatalf("the Pod is deleted: %s", sayCondition(ready, agentsv1beta1.ConditionReady))
			}

			e.edit(suspend)
			e.release(pod)
			e.saysReady("box", "False/SandboxSuspended: Sandbox is suspended")
			e.idle("box")
			e.edit(func(s *agentsv1beta1.Sandbox) { s.Spec.OperatingMode = agentsv1beta1.OperatingModeRunning })
			began := e.sandbox("box").CreationTimestamp.UTC().Format(time.RFC3339)
			e.saysReady("box", fmt.Sprintf(`False/ReconcilerError: Error seen: spec.shutdownTime: Invalid value: "": the tier of the namespace `+
				"ends every Sandbox at most 1h0m0s after it began, which was at %s: make a new one", began))
			e.idle("box")
			e.Gone(boxName, &corev1.Pod{})
			claimOf(e)
		})
	}
}

// The floor refuses a Pod above the tier's ceilings when no webhook did.
func TestTheFloorRefusesAPodAboveTheCeilings(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, func(e *environment) {
		e.platform = apiserver.Platform()
		tier := e.platform.Tiers["standard"]
		tier.Resources = config.Resources{Max: amounts("1", "1Gi")}
		e.platform.Tiers["standard"] = tier
	})
	e.Create(makeSandbox(func(s *agentsv1beta1.Sandbox) {
		s.Spec.PodTemplate.Spec.Containers[0].Resources.Limits = amounts("64", "1Gi")
	}))
	e.saysReady("box", `False/ReconcilerError: Error seen: spec.podTemplate.spec.containers: Invalid value: "64": the containers together `+
		"may use more cpu than the 1 of this tier: ask for at most 1 of cpu in all")
	e.idle("box")
	e.Gone(boxName, &corev1.Pod{})
	e.edit(func(s *agentsv1beta1.Sandbox) {
		s.Spec.PodTemplate.Spec.Containers[0].Resources.Limits = amounts("1", "1Gi")
	})
	e.runPod("box")
	e.saysReady("box", "True/DependenciesReady: Pod is Ready")
}

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}
