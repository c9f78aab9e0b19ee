// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// statusCase is what a pass came to and the status that it writes.
type statusCase struct {
	change func(*scope)
	// want are the conditions, with the minutes of their times, and the Sandbox.
	want []string
}

func served(s *scope) { s.sandbox = makeSandbox() }

func statusCases() map[string]statusCase {
	const stored = `sandbox "box" ["10.0.0.7"]`
	expired := withLifecycle(extensionsv1beta1.ClaimLifecycle{ShutdownTime: inMinutes(-1)})
	return map[string]statusCase{
		"the Sandbox's Ready is forwarded, with its addresses": {
			served, []string{"Ready True DependenciesReady 0: Pod is Ready", `sandbox "box" ["10.1.2.3"]`},
		},
		"one that is not Ready too": {
			func(s *scope) {
				s.sandbox = makeSandbox(withCondition("Ready", "False", "DependenciesNotReady", "Pod exists with phase: Pending", 2))
			},
			[]string{"Ready False DependenciesNotReady 0: Pod exists with phase: Pending", `sandbox "box" ["10.1.2.3"]`},
		},
		"one that says nothing yet": {
			func(s *scope) { s.sandbox = &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: "box"}} },
			[]string{"Ready False SandboxNotReady 0: Sandbox is not ready", `sandbox "box" []`},
		},
		"one that expired by itself": {
			func(s *scope) {
				s.sandbox = makeSandbox(withCondition("Ready", "False", "SandboxExpired", "Sandbox has expired", 2))
			},
			[]string{"Ready False SandboxExpired 0: Underlying Sandbox resource has expired independently of the Claim.", `sandbox "box" ["10.1.2.3"]`},
		},
		"Finished is mirrored with its time, and the types are sorted": {
			func(s *scope) {
				s.sandbox = makeSandbox(withCondition("Ready", "False", "PodSucceeded", "Pod completed successfully", 2),
					withCondition("Finished", "True", "PodSucceeded", "Pod completed successfully", 2))
			},
			[]string{
				"Finished True PodSucceeded 2: Pod completed successfully", "Ready False PodSucceeded 0: Pod completed successfully",
				`sandbox "box" ["10.1.2.3"]`,
			},
		},
		"a Sandbox that runs again takes Finished back": {
			func(s *scope) { served(s); finishedBefore(s) },
			[]string{"Ready True DependenciesReady 0: Pod is Ready", `sandbox "box" ["10.1.2.3"]`},
		},
		"a Sandbox that is gone": {
			func(s *scope) { s.missing, s.record.lost = true, true; boundBefore(s); finishedBefore(s) },
			[]string{"Ready False SandboxMissing 0: Sandbox does not exist", `sandbox "" []`},
		},
		"one that is gone takes Finished with it, whatever keeps the claim from another": {
			func(s *scope) {
				s.record.lost, s.problem = true, refuse(ReasonWarmPoolNotFound, "wrong")
				boundBefore(s)
				finishedBefore(s)
			},
			[]string{"Ready False WarmPoolNotFound 0: wrong", stored},
		},
		"one of which nobody knows whether it is gone does not": {
			func(s *scope) { s.problem = errors.New("no"); boundBefore(s); finishedBefore(s) },
			[]string{"Finished True PodFailed -9: Pod failed", "Ready False ReconcilerError 0: Error seen: no", stored},
		},
		"a refusal has its reason and leaves the Sandbox named": {
			func(s *scope) { s.problem = refuse(ReasonInvalidMetadata, "wrong"); boundBefore(s) },
			[]string{"Ready False InvalidMetadata 0: wrong", stored},
		},
		"any other error": {
			func(s *scope) { s.problem = fmt.Errorf("create: %w", errors.New("no")); boundBefore(s) },
			[]string{"Ready False ReconcilerError 0: Error seen: create: no", stored},
		},
		"an error that is longer than the apiserver takes": {
			func(s *scope) { s.problem = errors.New(strings.Repeat("x", 40<<10)) },
			[]string{"Ready False ReconcilerError 0: Error seen: " + strings.Repeat("x", 32<<10-len("Error seen: ...")) + "...", `sandbox "" []`},
		},
		"errors that came together": {
			func(s *scope) { s.problem = errors.Join(errors.New("a"), errors.New("b")); boundBefore(s) },
			[]string{"Ready False ReconcilerError 0: Error seen: a\nb", stored},
		},
		"a pool that does not exist": {
			func(s *scope) { s.problem = refuse(ReasonWarmPoolNotFound, "SandboxWarmPool %q not found", "p") },
			[]string{`Ready False WarmPoolNotFound 0: SandboxWarmPool "p" not found`, `sandbox "" []`},
		},
		"a claim whose time is up keeps its Sandbox named until that is gone": {
			func(s *scope) { expired(s.claim); served(s) },
			[]string{"Ready False ClaimExpired 0: Claim expired. Sandbox cleanup initiated.", `sandbox "box" ["10.1.2.3"]`},
		},
		"and keeps Finished afterwards": {
			func(s *scope) { expired(s.claim); boundBefore(s); finishedBefore(s); s.cleaned = true },
			[]string{
				"Finished True PodFailed -9: Pod failed", "Ready False ClaimExpired 0: Claim expired. Sandbox cleanup initiated.", `sandbox "" []`,
			},
		},
		"a Sandbox that is not the claim's is not deleted": {
			func(s *scope) { expired(s.claim); boundBefore(s); s.skipped = true },
			[]string{"Ready False ClaimExpired 0: Claim expired. Sandbox is not controlled by this claim; deletion skipped.", `sandbox "" []`},
		},
		"Ready keeps its time while its status stays": {
			func(s *scope) {
				served(s)
				ready(s.claim, "True", "DependenciesReady")
				s.now = noon().Add(time.Hour)
			},
			[]string{"Ready True DependenciesReady 0: Pod is Ready", `sandbox "box" ["10.1.2.3"]`},
		},
	}
}

func TestStatusSaysWhatTheContractSays(t *testing.T) {
	for name, tc := range statusCases() {
		t.Run(name, func(t *testing.T) {
			s := makeScope()
			tc.change(s)
			before := s.claim.DeepCopy()
			status := desiredStatus(s)
			var got []string
			for _, c := range status.Conditions {
				got = append(got, fmt.Sprintf("%s %s %s %.0f: %s", c.Type, c.Status, c.Reason, c.LastTransitionTime.Sub(noon()).Minutes(), c.Message))
				if c.ObservedGeneration != s.claim.Generation {
					t.Errorf("%s speaks of generation %d, want %d", c.Type, c.ObservedGeneration, s.claim.Generation)
				}
			}
			got = append(got, fmt.Sprintf("sandbox %q %q", status.SandboxStatus.Name, status.SandboxStatus.PodIPs))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, s.claim); diff != "" {
				t.Errorf("the claim was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// boundBefore lets the stored status name a Sandbox.
func boundBefore(s *scope) {
	s.claim.Status.SandboxStatus = extensionsv1beta1.SandboxStatus{Name: "box", PodIPs: []string{"10.0.0.7"}}
}

// finishedBefore lets the stored status say that the Pod failed.
func finishedBefore(s *scope) {
	s.claim.Status.Conditions = append(s.claim.Status.Conditions, metav1.Condition{
		Type: "Finished", Status: "True", Reason: "PodFailed", Message: "Pod failed", LastTransitionTime: *inMinutes(-9), ObservedGeneration: s.claim.Generation,
	})
}
