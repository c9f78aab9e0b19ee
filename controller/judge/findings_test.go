// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

func TestOneLineForEachFault(t *testing.T) {
	finding := func(rule string, enforcement engine.Enforcement, field string) engine.Finding {
		return engine.Finding{Rule: rule, Enforcement: enforcement, Field: field}
	}
	const ports, add = "spec.containers[0].ports", "spec.containers[0].securityContext.capabilities.add"
	cases := map[string]struct {
		specific, podSecurity engine.Finding
		// both says that the user is told both.
		both bool
	}{
		"the same field":                            {finding("hostpath", engine.Deny, "v[0].hostPath"), finding(engine.RulePSSBaseline, engine.Deny, "v[0].hostPath"), false},
		"a member of the list":                      {finding("host-port", engine.Deny, ports+"[1].hostPort"), finding(engine.RulePSSBaseline, engine.Deny, ports), false},
		"the profile as a whole":                    {finding("apparmor", engine.Deny, "a.appArmorProfile"), finding(engine.RulePSSBaseline, engine.Deny, "a.appArmorProfile.type"), false},
		"another field":                             {finding("hostpath", engine.Deny, "v[0].hostPath"), finding(engine.RulePSSBaseline, engine.Deny, "v[1].hostPath"), true},
		"a field whose name begins alike":           {finding("x", engine.Deny, ports+"Extra"), finding(engine.RulePSSBaseline, engine.Deny, ports), true},
		"a rule that only warns":                    {finding("hostpath", engine.Warn, "v[0].hostPath"), finding(engine.RulePSSBaseline, engine.Deny, "v[0].hostPath"), true},
		"restricted asks for more beside the field": {finding("capabilities-add", engine.Deny, add+"[0]"), finding(engine.RulePSSRestricted, engine.Deny, "spec.containers[0].securityContext.capabilities"), true},
		"a rule that failed says nothing":           {engine.Finding{Rule: "hostpath", Enforcement: engine.Deny, Failure: true}, finding(engine.RulePSSBaseline, engine.Deny, "v[0].hostPath"), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := []engine.Finding{tc.specific}
			if tc.both {
				want = append(want, tc.podSecurity)
			}
			if diff := cmp.Diff(want, Distinct([]engine.Finding{tc.specific, tc.podSecurity})); diff != "" {
				t.Errorf("Distinct() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergeKeepsTheStricterOfTwoFindingsOfOneRule(t *testing.T) {
	own := []engine.Finding{{Rule: "r", Field: "f", Enforcement: engine.Deny, Message: "own"}, {Rule: "s", Field: "f", Enforcement: engine.Warn, Message: "own"}}
	theirs := []engine.Finding{{Rule: "r", Field: "f", Enforcement: engine.Warn, Message: "theirs"}, {Rule: "s", Field: "f", Enforcement: engine.Deny, Message: "theirs"},
		{Rule: "r", Field: "a", Enforcement: engine.Audit, Message: "theirs"}}
	want := []engine.Finding{
		{Rule: "r", Field: "f", Enforcement: engine.Deny, Message: "own"}, {Rule: "s", Field: "f", Enforcement: engine.Deny, Message: "theirs"},
		{Rule: "r", Field: "a", Enforcement: engine.Audit, Message: "theirs"},
	}
	if diff := cmp.Diff(want, merge(own, theirs)); diff != "" {
		t.Errorf("merge() (-want +got):\n%s", diff)
	}
}
