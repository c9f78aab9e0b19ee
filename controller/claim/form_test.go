// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// What was hashed is not hashed again while nothing of it can have changed. Each case has
// another spec: one that is not of another generation tells that nobody looked.
func TestTheFormOfAMemberIsFoundAnewWhenItMayHaveChanged(t *testing.T) {
	cases := map[string]struct {
		// between is what happens before the change.
		between func(*Reconciler)
		change  func(*agentsv1beta1.Sandbox)
		anew    bool
	}{
		"its status":                           {change: withCondition("Ready", "False", "DependenciesNotReady", "", 1)},
		"a label that is not of its form":      {change: func(s *agentsv1beta1.Sandbox) { s.Labels["team"] = "a" }},
		"its spec":                             {change: func(s *agentsv1beta1.Sandbox) { s.Generation++ }, anew: true},
		"the hash of its template":             {change: func(s *agentsv1beta1.Sandbox) { s.Labels[keys.SandboxTemplateHash] = "other" }, anew: true},
		"the hash of the name of its template": {change: func(s *agentsv1beta1.Sandbox) { s.Labels[keys.SandboxTemplateRefHash] = "other" }, anew: true},
		"the name of its template":             {change: func(s *agentsv1beta1.Sandbox) { s.Annotations[keys.SandboxTemplateRef] = "other" }, anew: true},
		"its status, when nobody noted it before": {
			between: func(r *Reconciler) { r.index.DropMember("box-uid") }, change: func(s *agentsv1beta1.Sandbox) { s.Status = agentsv1beta1.SandboxStatus{} }, anew: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(nil, nil, nil, clocktesting.NewFakePassiveClock(noon()), Settings{})
			before := makeSandbox(func(s *agentsv1beta1.Sandbox) { s.Generation = 4 })
			after := before.DeepCopy()
			after.ResourceVersion, after.Spec.PodTemplate.Spec.Containers[0].Image = "2", "python:3.13-slim"
			tc.change(after)
			r.sandboxEvents().Create(t.Context(), event.CreateEvent{Object: before}, nil)
			if tc.between != nil {
				tc.between(r)
			}
			r.sandboxEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, nil)
			want := formOf(before)
			if tc.anew {
				want = formOf(after)
			}
			if got := r.index.FormOf(after.UID); got != want {
				t.Errorf("the form is that of before: %t, want %t; that of now: %t", got == formOf(before), !tc.anew, got == formOf(after))
			}
		})
	}
}
