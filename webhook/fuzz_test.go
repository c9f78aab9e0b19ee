// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	jsonpatchv2 "gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
)

// FuzzAdmission sends any object through mutation and validation. Nothing may panic,
// no answer may be a fault of our own, and a mutated object is never refused for what
// mutation had to set or for what it did set, in a tier that sets little and in one that
// sets, and requires, all that a tier can, and by the rules of staging and prod. The corpus
// is where it begins.
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
	seedFromCorpus(f)
	// Here and not within: loading the policies may take longer than one input may.
	own := world{platform: strings.Replace(platform, "tiers:\n", "tiers:\n"+demanding, 1), objects: []client.Object{
		namespace("bounded", map[string]string{"platform.agents.x-k8s.io/tier": "demanding"}),
	}}.judge(f)
	places := []struct {
		*Judge
		namespace string
	}{{own, "tenant"}, {own, "bounded"}, {corpusWorld(f, "staging"), "standard"}, {corpusWorld(f, "prod"), "standard"}}
	f.Fuzz(func(t *testing.T, kind, object, old string) {
		var probe map[string]any
		if json.Unmarshal([]byte(object), &probe) != nil || probe == nil || json.Unmarshal([]byte(old), &probe) != nil {
			t.Skip("the apiserver sends objects only")
		}
		for _, place := range places {
			request := admission.Request{AdmissionRequest: creation(place.namespace, kind, object)}
			if old != "null" {
				request.Operation, request.OldObject = admissionv1.Update, runtime.RawExtension{Raw: []byte(old)}
			}
			requireSound(t, place.Judge, request)
		}
	})
}

// demanding is a tier that sets, and requires, all that a tier can.
const demanding = `  demanding:
    podSecurity: {deny: baseline, version: v1.37}
    runtimeClass: {classes: [{name: gvisor, hostUsers: false}], required: true}
    hardening: {token: Require, serviceLinks: Require, userNamespaces: Require, seccomp: Require,
      privilegeEscalation: Require, capabilities: Require, rootFilesystem: Require}
    dropCapabilities: [NET_RAW]
    resources: {requests: {cpu: 100m}, limits: {cpu: 1, memory: 1Gi}, max: {cpu: 2, memory: 2Gi}, podLevel: true}
    serviceAccounts: [agent]
    egress: {profile: none}
    creates: [Sandbox, SandboxClaim]
`

// seedFromCorpus adds every state of every object of the corpus, with the one before.
func seedFromCorpus(f *testing.F) {
	f.Helper()
	cases, err := corpus.Cases(os.DirFS(filepath.Join("..", "e2e", "corpus")))
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		old := []byte("null")
		for _, document := range c.Documents {
			object, err := json.Marshal(document.Object)
			if err != nil {
				f.Fatal(err)
			}
			kind, _ := document.Object["kind"].(string)
			f.Add(kind, string(object), string(old))
			old = object
		}
	}
}

// requireSound sends a request through mutation, twice, and validation.
func requireSound(t *testing.T, decide *Judge, request admission.Request) {
	t.Helper()
	mutated := decide.Mutate(t.Context(), request)
	requireOurselvesFaultless(t, mutated)
	untouched, complete := causesOf(t, decide.Validate(t.Context(), request))
	bare := request
	bare.Object.Raw = patched(t, request.Object.Raw, onlyClass(mutated))
	unmutated, alsoComplete := causesOf(t, decide.Validate(t.Context(), bare))
	complete = complete && alsoComplete
	request.Object.Raw = patched(t, request.Object.Raw, mutated)
	if again := decide.Mutate(t.Context(), request); len(again.Patches) > 0 {
		t.Errorf("a second pass has a patch: %v", again.Patches)
	}
	verdict := decide.Validate(t.Context(), request)
	requireOurselvesFaultless(t, verdict)
	causes, _ := causesOf(t, verdict)
	for of, message := range causes {
		if !complete && of.rule != judge.RuleDefaults {
			continue
		}
		without := unmutated
		if strings.HasSuffix(of.field, ".runtimeClassName") {
			without = untouched
		}
		if _, before := without[of]; !before || of.rule == judge.RuleDefaults {
			t.Errorf("refused for what mutation set or had to set: %s", message)
		}
	}
}

// onlyClass is what mutation says of the RuntimeClass. With it a tier asks for more of a
// Pod than mutation can give to one that shares the node's namespaces.
func onlyClass(mutated admission.Response) admission.Response {
	mutated.Patches = slices.DeleteFunc(slices.Clone(mutated.Patches), func(operation jsonpatchv2.Operation) bool {
		return !strings.HasSuffix(operation.Path, "/runtimeClassName")
	})
	return mutated
}

// cause is what an object is refused for.
type cause struct{ rule, field string }

// causesOf are the messages of a refusal by cause, and whether they are all of them.
func causesOf(t *testing.T, response admission.Response) (causes map[cause]string, complete bool) {
	t.Helper()
	causes = map[cause]string{}
	if response.Allowed {
		return causes, true
	}
	if details := response.Result.Details; details == nil || len(details.Causes) == 0 {
		if response.Result.Code == http.StatusForbidden {
			t.Errorf("refused without a cause: %s", response.Result.Message)
		}
		return causes, false
	}
	for _, c := range response.Result.Details.Causes {
		causes[cause{string(c.Type), c.Field}] = fmt.Sprintf("%s %s: %s", c.Type, c.Field, c.Message)
	}
	_, omits := causes[cause{"engine", ""}]
	return causes, len(causes) < maxCauses && !omits
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
