// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
)

// FuzzAdmission sends any object through mutation and validation. Nothing may panic,
// no answer may be a fault of our own, and a mutated object is never refused for what
// mutation had to set.
func FuzzAdmission(f *testing.F) {
	for _, kind := range []string{"Sandbox", "SandboxTemplate", "SandboxWarmPool", "SandboxClaim", "Scale"} {
		for _, object := range []string{
			`{}`, sandbox(""), sandbox(hostPath), `{"metadata": null, "spec": {"podTemplate": null, "volumeClaimTemplates": [null, 1, {"metadata": 5}]}}`,
			`{"metadata": {"name": 1, "labels": [], "annotations": {"agents.x-k8s.io/pod-name": 3}, "ownerReferences": [null, {"controller": true, "apiVersion": "agents.x-k8s.io/v1"}]}, "spec": 7}`,
			`{"metadata": {"name": "c"}, "spec": {"warmPoolRef": {"name": "none"}, "replicas": 1.5, "env": [{"name": {}}, 3], "additionalPodMetadata": {"labels": {"a": {}}}}}`,
			`{"metadata": {"name": "x"}, "spec": {"podTemplate": {"spec": {"containers": [{"securityContext": {"capabilities": {"add": [[]]}}, "resources": {"limits": {"cpu": {}}}}]}}}}`,
		} {
			f.Add(kind, object, `null`)
			f.Add(kind, object, sandbox(""))
		}
	}
	var decide *Judge
	f.Fuzz(func(t *testing.T, kind, object, old string) {
		if decide == nil {
			decide = world{}.judge(t)
		}
		var probe map[string]any
		if json.Unmarshal([]byte(object), &probe) != nil || probe == nil || json.Unmarshal([]byte(old), &probe) != nil {
			t.Skip("the apiserver sends objects only")
		}
		request := admission.Request{AdmissionRequest: creation("tenant", kind, object)}
		if old != "null" {
			request.Operation, request.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(old)}
		}
		mutated := decide.Mutate(t.Context(), request)
		requireOurselvesFaultless(t, mutated)
		request.Object.Raw = patched(t, request.Object.Raw, mutated)
		if again := decide.Mutate(t.Context(), request); len(again.Patches) > 0 {
			t.Errorf("a second pass has a patch: %v", again.Patches)
		}
		verdict := decide.Validate(t.Context(), request)
		requireOurselvesFaultless(t, verdict)
		if !verdict.Allowed && strings.Contains(verdict.Result.Message, judge.RuleDefaults+":") {
			t.Errorf("refused for what mutation had to set: %s", verdict.Result.Message)
		}
	})
}

func requireOurselvesFaultless(t *testing.T, response admission.Response) {
	t.Helper()
	if response.Result != nil && response.Result.Code >= 400 && response.Result.Code != 403 {
		t.Errorf("a fault of our own: %s", response.Result.Message)
	}
}

func patched(t *testing.T, object []byte, response admission.Response) []byte {
	t.Helper()
	if len(response.Patches) == 0 {
		return object
	}
	raw, err := json.Marshal(response.Patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		t.Fatal(err)
	}
	result, err := patch.Apply(object)
	if err != nil {
		t.Fatalf("apply %s to %s: %v", raw, object, err)
	}
	return result
}
