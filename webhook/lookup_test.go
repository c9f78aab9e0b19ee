// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// What a request names may have been made a moment ago, so that no informer knows it
// yet. It is judged all the same.
func TestWhatTheInformersDoNotKnowYetIsReadLive(t *testing.T) {
	template := `"spec": {"podTemplate": {"spec": {"volumes": [{"name": "h", "hostPath": {"path": "/"}}], "containers": [{"name": "main", "image": "i:1"}]}}}}`
	decide := world{objects: []client.Object{
		extension(`{"kind": "SandboxTemplate", "metadata": {"name": "new", "namespace": "tenant"}, ` + template),
		extension(`{"kind": "SandboxWarmPool", "metadata": {"name": "new", "namespace": "tenant"}, "spec": {"sandboxTemplateRef": {"name": "new"}}}`),
		extension(`{"kind": "SandboxWarmPool", "metadata": {"name": "new", "namespace": "lost"}, "spec": {"sandboxTemplateRef": {"name": "new"}}}`),
	}}.judge(t)
	// Whatever there is, the cache is the one of a world without it.
	live, cached := lookupOf(t, decide), lookupOf(t, world{}.judge(t))
	decide.Lookup = Lookup{Cached: cached.Cached, Live: live.Live}
	scaled := scale("new", 1, 5)
	scaled.Namespace = "lost"
	for name, tc := range map[string]struct {
		request admissionv1.AdmissionRequest
		want    string
	}{
		"a claim":               {creation("tenant", "SandboxClaim", `{"metadata": {"name": "c"}, "spec": {"warmPoolRef": {"name": "new"}}}`), "hostpath"},
		"a pool that is scaled": {scaled, "lax"},
	} {
		t.Run(name, func(t *testing.T) {
			response := decide.Validate(t.Context(), admission.Request{AdmissionRequest: tc.request})
			if response.Allowed || !strings.Contains(response.Result.Message, tc.want) {
				t.Errorf("allowed %t, %v, want a refusal that names %s", response.Allowed, response.Result, tc.want)
			}
		})
	}
}

func lookupOf(t *testing.T, decide *Judge) Lookup {
	t.Helper()
	lookup, ok := decide.Lookup.(Lookup)
	if !ok {
		t.Fatalf("the judge looks up by a %T", decide.Lookup)
	}
	return lookup
}
