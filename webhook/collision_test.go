// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Labels that select Pods carry a hash of 32 bits of a name that anyone may choose.
func TestANameWhoseHashIsTakenIsRefused(t *testing.T) {
	// Two names with the same hash.
	const taken, other = "costarring", "liquid"
	if keys.NameHash(taken) != keys.NameHash(other) {
		t.Fatalf("%q and %q no longer collide: the test proves nothing", taken, other)
	}
	handlers := world{objects: []client.Object{
		&agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: taken, Namespace: "tenant"}},
		extension(`{"kind": "SandboxTemplate", "metadata": {"name": "` + taken + `", "namespace": "tenant"}}`),
		extension(`{"kind": "SandboxWarmPool", "metadata": {"name": "` + taken + `", "namespace": "tenant"}}`),
	}}.start(t)
	named := func(name string) string { return strings.Replace(sandbox(""), `"box"`, `"`+name+`"`, 1) }
	pool := `{"metadata": {"name": "` + other + `"}, "spec": {"replicas": 1, "sandboxTemplateRef": {"name": "t"}}}`
	cases := map[string]struct {
		request admissionv1.AdmissionRequest
		refused bool
	}{
		"a Sandbox":                           {creation("tenant", "Sandbox", named(other)), true},
		"a template":                          {creation("tenant", "SandboxTemplate", named(other)), true},
		"a pool":                              {creation("tenant", "SandboxWarmPool", pool), true},
		"a claim, whose name is not hashed":   {creation("tenant", "SandboxClaim", `{"metadata": {"name": "`+other+`"}, "spec": {"warmPoolRef": {"name": "p"}}}`), false},
		"another name":                        {creation("tenant", "Sandbox", named("liquids")), false},
		"the same name again":                 {creation("tenant", "Sandbox", named(taken)), false},
		"in another namespace":                {creation("labelled", "SandboxWarmPool", pool), false},
		"an update of one that is there":      {update("tenant", "SandboxWarmPool", pool, strings.Replace(pool, "1", "2", 1)), false},
		"a name that the apiserver will make": {creation("tenant", "SandboxWarmPool", `{"metadata": {"generateName": "liquid"}, "spec": {}}`), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			response := ask(t, handlers[PathValidate], tc.request)
			said := strings.Contains(response.Result.Message, `names: metadata.name (`+other+`): its hash equals that of `)
			if response.Allowed == tc.refused || said != tc.refused {
				t.Errorf("allowed %t, want refused %t: %s", response.Allowed, tc.refused, response.Result.Message)
			}
		})
	}
}
