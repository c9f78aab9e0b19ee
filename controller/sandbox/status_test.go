// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

func TestDesiredStatus(t *testing.T) {
	selector := "agents.x-k8s.io/sandbox-name-hash=" + keys.NameHash("box")
	full := agentsv1beta1.SandboxStatus{
		Service: "box", ServiceFQDN: "box.team-a.svc.cluster.local", LabelSelector: selector,
		PodIPs: []string{"10.0.0.7"}, NodeName: "n1",
	}
	stored := func(s *agentsv1beta1.Sandbox) { s.Status = full }
	cases := map[string]struct {
		scope *scope
		want  agentsv1beta1.SandboxStatus
	}{
		"a Sandbox that has nothing": {scope: makeScope(makeSandbox())},
		"a Pod and a Service": {
			makeScope(makeSandbox(withService(true)), having(makePod("box", ready, onNode)), withOwnService), full,
		},
		"what the Pod had goes with it, the selector stays": {
			makeScope(makeSandbox(stored, suspend)), agentsv1beta1.SandboxStatus{LabelSelector: selector},
		},
		"somebody else's Pod gives the selector and no address": {
			makeScope(makeSandbox(), squatting(makePod("box", ready, onNode))), agentsv1beta1.SandboxStatus{LabelSelector: selector},
		},
		"more Pods than one give no address and leave the Service": {
			makeScope(makeSandbox(stored), having(makePod("box", ready), makePod("twin", ready)), failing(multiplePodsError{count: 2})),
			agentsv1beta1.SandboxStatus{Service: "box", ServiceFQDN: "box.team-a.svc.cluster.local", LabelSelector: selector},
		},
		"a Pod that could not be read leaves the addresses": {
			makeScope(makeSandbox(stored, suspend), func(s *scope) { s.podUnknown = true }, failing(errors.New("timeout")), withOwnService), full,
		},
		"expiry is first only announced": {
			makeScope(makeSandbox(stored, expire), having(makePod("box", ready, onNode))), full,
		},
		"expiry that was announced keeps nothing but conditions": {
			scope: makeScope(makeSandbox(stored, expire), having(makePod("box", ready)), func(s *scope) { s.announced = true }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := desiredStatus(tc.scope, "cluster.local")
			if len(got.Conditions) == 0 {
				t.Error("there are no conditions")
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(agentsv1beta1.SandboxStatus{}, "Conditions")); diff != "" {
				t.Errorf("desiredStatus() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorthWriting(t *testing.T) {
	status := func(readiness metav1.ConditionStatus, node string) agentsv1beta1.SandboxStatus {
		return agentsv1beta1.SandboxStatus{
			NodeName:   node,
			Conditions: []metav1.Condition{{Type: agentsv1beta1.ConditionReady, Status: readiness}},
		}
	}
	cases := map[string]struct {
		stored, desired agentsv1beta1.SandboxStatus
		want            bool
	}{
		"nothing changed":                  {status("True", "n1"), status("True", "n1"), false},
		"the node of one that is ready":    {status("True", ""), status("True", "n1"), true},
		"the node of one that is not":      {status("False", ""), status("False", "n1"), false},
		"a condition":                      {status("False", ""), status("True", ""), true},
		"a condition of one that is not":   {status("True", "n1"), status("False", "n1"), true},
		"the first status, without a Pod":  {agentsv1beta1.SandboxStatus{}, status("False", ""), true},
		"nil and empty lists are the same": {agentsv1beta1.SandboxStatus{PodIPs: []string{}}, agentsv1beta1.SandboxStatus{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := worthWriting(tc.stored, tc.desired); got != tc.want {
				t.Errorf("worthWriting() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestMayWait(t *testing.T) {
	pending := having(makePod("box", inPhase(corev1.PodPending)))
	storedReady := withCondition(agentsv1beta1.ConditionReady, metav1.ConditionFalse, "DependenciesNotReady", "", noon())
	member := makeSandbox(controlledBy("SandboxWarmPool"))
	cases := map[string]struct {
		scope *scope
		made  time.Time
		want  bool
	}{
		"a Pod that was made just now":       {makeScope(makeSandbox(), pending), noon().Add(-time.Millisecond), true},
		"a member's Pod of five seconds ago": {makeScope(member, pending), noon().Add(-5 * time.Second), false},
		"a member's Pod of a moment less":    {makeScope(member, pending), noon().Add(-5*time.Second + time.Millisecond), true},
		"a claim's Pod of a second ago": {
			makeScope(makeSandbox(controlledBy("SandboxClaim")), pending), noon().Add(-time.Second), false,
		},
		"a Pod that was made a second ago":         {makeScope(makeSandbox(), pending), noon().Add(-time.Second), false},
		"a Pod that another process made":          {makeScope(makeSandbox(), pending), time.Time{}, false},
		"a Sandbox that has a status":              {makeScope(makeSandbox(storedReady), pending), noon(), false},
		"a Pod that is ready":                      {makeScope(makeSandbox(), having(makePod("box", ready))), noon(), false},
		"a Pod that failed":                        {makeScope(makeSandbox(), having(makePod("box", inPhase(corev1.PodFailed)))), noon(), false},
		"an error":                                 {makeScope(makeSandbox(), pending, failing(errors.New("no service"))), noon(), false},
		"a Sandbox that was suspended meanwhile":   {makeScope(makeSandbox(suspend), pending), noon(), false},
		"a Pod that somebody deletes at that time": {makeScope(makeSandbox(), having(makePod("box", deletedAt(noon())))), noon(), false},
		"no Pod": {makeScope(makeSandbox()), noon(), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			until, got := mayWait(tc.scope, desiredStatus(tc.scope, "cluster.local"), tc.made)
			if got != tc.want {
				t.Errorf("mayWait() = %t, want %t", got, tc.want)
			}
			within := time.Second
			if tc.scope.sandbox == member {
				within = 5 * time.Second
			}
			if got && !until.Equal(tc.made.Add(within)) {
				t.Errorf("mayWait() until %s, want %s after %s", until, within, tc.made)
			}
		})
	}
}

func TestBirthsAreForgotten(t *testing.T) {
	var b births
	box := types.NamespacedName{Namespace: "team-a", Name: "box"}
	b.note(box, noon())
	if got := b.of(box); !got.Equal(noon()) {
		t.Errorf("of() = %s, want noon", got)
	}
	b.forget(box)
	if got := b.of(box); !got.IsZero() {
		t.Errorf("of() after forget() = %s, want the zero time", got)
	}
}
