// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blueprint_test

import (
	"testing"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
)

func TestASandboxHasTheFormThatItHadUnlessItsSpecOrOriginMayHaveChanged(t *testing.T) {
	cases := map[string]struct {
		change func(*agentsv1beta1.Sandbox)
		same   bool
	}{
		"its status":                           {func(s *agentsv1beta1.Sandbox) { s.Status.PodIPs = []string{"10.1.2.3"} }, true},
		"an annotation of somebody":            {func(s *agentsv1beta1.Sandbox) { s.Annotations["note"] = "mine" }, true},
		"its spec":                             {func(s *agentsv1beta1.Sandbox) { s.Generation++ }, false},
		"the hash of its template":             {func(s *agentsv1beta1.Sandbox) { s.Labels[keys.SandboxTemplateHash] = "other" }, false},
		"the hash of the name of its template": {func(s *agentsv1beta1.Sandbox) { s.Labels[keys.SandboxTemplateRefHash] = "other" }, false},
		"the name of its template":             {func(s *agentsv1beta1.Sandbox) { s.Annotations[keys.SandboxTemplateRef] = "other" }, false},
		"the Sandbox of the name":              {func(s *agentsv1beta1.Sandbox) { s.UID = "another" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, err := blueprint.ForPool(makePool(), makeTemplate(), blueprint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			after := before.DeepCopy()
			tc.change(after)
			if got := blueprint.SameForm(before, after); got != tc.same {
				t.Errorf("SameForm() = %t, want %t", got, tc.same)
			}
		})
	}
}
