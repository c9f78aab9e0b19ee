// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLibraryJudgesSandboxes(t *testing.T) {
	e := loaded(t, "rules: {registry-allowed: {enforcement: Deny, parameters: {registries: [docker.io]}}}")
	cases := map[string]struct {
		changes []string
		want    []brief
	}{
		"The first Sandbox of the README is admitted": {},
		"A privileged container is denied": {
			changes: []string{`containers: [{name: a, image: "a:1", securityContext: {privileged: true}, resources: {limits: {cpu: 1, memory: 1Gi}}}]`},
			want: []brief{
				{"privileged", "Deny", "spec.podTemplate.spec.containers[0].securityContext.privileged", "true"},
				{"pss-baseline", "Deny", "spec.podTemplate.spec.containers[0].securityContext.privileged", "true"},
			},
		},
		"A hostPath is denied": {
			changes: []string{"volumes: [{name: host, hostPath: {path: /etc}}]"},
			want: []brief{
				{"hostpath", "Deny", "spec.podTemplate.spec.volumes[0].hostPath", "/etc"},
				{"pss-baseline", "Deny", "spec.podTemplate.spec.volumes[0].hostPath", "hostPath"},
			},
		},
		"An image of a foreign registry is denied": {
			changes: []string{`containers: [{name: a, image: "evil.com/a:1", resources: {limits: {cpu: 1, memory: 1Gi}}}]`},
			want:    []brief{{"registry-allowed", "Deny", "spec.podTemplate.spec.containers[0].image", "evil.com/a:1"}},
		},
		"Missing limits are a warning": {
			changes: []string{`containers: [{name: a, image: "a:1", resources: {limits: {cpu: 1}}}]`},
			want:    []brief{{"limits-required", "Warn", "spec.podTemplate.spec.containers[0].resources.limits.memory", ""}},
		},
		"Several faults come back together, denials first": {
			changes: []string{"hostPID: true", "automountServiceAccountToken: true", "shareProcessNamespace: true"},
			want: []brief{
				{"automount-token", "Deny", "spec.podTemplate.spec.automountServiceAccountToken", "true"},
				{"host-namespaces", "Deny", "spec.podTemplate.spec.hostPID", "true"},
				{"pss-baseline", "Deny", "spec.podTemplate.spec.hostPID", "true"},
				{"share-process-namespace", "Warn", "spec.podTemplate.spec.shareProcessNamespace", "true"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := e.Evaluate(context.Background(), requestOf(t, tc.changes...))
			if diff := cmp.Diff(tc.want, briefs(d.Findings)); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%s", diff, show(t, d))
			}
			for _, f := range d.Findings {
				if f.Message == "" || f.Remediation == "" || f.Severity == "" || f.Failure {
					t.Errorf("a finding lacks something: %s", show(t, f))
				}
			}
		})
	}
}
