// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	jsonpatchapply "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/defaults"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// standard is a tier with every default, in a cluster that lacks its first choice.
func standard(kind, object string) defaults.Request {
	return defaults.Request{
		Operation: "CREATE", Kind: kind, Object: decode(object), User: "ann", Now: now,
		Tier: config.Tier{
			RuntimeClass:     config.RuntimeClass{Classes: []config.Class{{Name: "kata"}, {Name: "gvisor"}}},
			DropCapabilities: []string{"NET_RAW"},
		},
		RuntimeClasses: sets.New("gvisor", "runc"),
	}
}

func decode(text string) map[string]any {
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		panic(err) //nolint:forbidigo // the literal of a test is wrong
	}
	return object
}

// hardened is what every default together looks like on one container.
const hardened = `{
  "automountServiceAccountToken": false, "enableServiceLinks": false, "runtimeClassName": "gvisor",
  "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
  "containers": [{"name": "a", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["NET_RAW"]}}}]
}`

func TestOperationsHardenThePod(t *testing.T) {
	cases := map[string]struct{ pod, want string }{
		"a Pod that leaves everything open": {`{"containers": [{"name": "a"}]}`, hardened},
		"null counts as open": {
			`{"automountServiceAccountToken": null, "enableServiceLinks": null, "runtimeClassName": null, "securityContext": null,
			  "containers": [{"name": "a", "securityContext": null}]}`, hardened,
		},
		"null further down counts as open": {
			`{"runtimeClassName": "", "securityContext": {"seccompProfile": null},
			  "containers": [{"name": "a", "securityContext": {"allowPrivilegeEscalation": null, "capabilities": {"drop": null}}}]}`, hardened,
		},
		"empty objects count as open": {
			`{"securityContext": {}, "containers": [{"name": "a", "securityContext": {"capabilities": {}}}]}`, hardened,
		},
		"what the user set stays": {
			`{"automountServiceAccountToken": true, "enableServiceLinks": true, "runtimeClassName": "runc",
			  "securityContext": {"seccompProfile": {"type": "Unconfined"}, "runAsUser": 0},
			  "containers": [{"name": "a", "securityContext": {"allowPrivilegeEscalation": true, "capabilities": {"drop": [], "add": ["CHOWN"]}}}]}`,
			`{"automountServiceAccountToken": true, "enableServiceLinks": true, "runtimeClassName": "runc",
			  "securityContext": {"seccompProfile": {"type": "Unconfined"}, "runAsUser": 0},
			  "containers": [{"name": "a", "securityContext": {"allowPrivilegeEscalation": true, "capabilities": {"drop": [], "add": ["CHOWN"]}}}]}`,
		},
		"init containers and sidecars are containers": {
			`{"automountServiceAccountToken": false, "enableServiceLinks": false, "runtimeClassName": "gvisor",
			  "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
			  "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]}`,
			`{"automountServiceAccountToken": false, "enableServiceLinks": false, "runtimeClassName": "gvisor",
			  "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
			  "initContainers": [
			    {"name": "i", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["NET_RAW"]}}},
			    {"name": "s", "restartPolicy": "Always", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["NET_RAW"]}}}]}`,
		},
		"a container that needs escalation is left to validation": {
			`{"containers": [{"securityContext": {"privileged": true}}, {"securityContext": {"capabilities": {"add": ["CAP_SYS_ADMIN"]}}}]}`,
			`{"automountServiceAccountToken": false, "enableServiceLinks": false, "runtimeClassName": "gvisor",
			  "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
			  "containers": [
			    {"securityContext": {"privileged": true, "capabilities": {"drop": ["NET_RAW"]}}},
			    {"securityContext": {"capabilities": {"add": ["CAP_SYS_ADMIN"], "drop": ["NET_RAW"]}}}]}`,
		},
		"Windows knows neither seccomp nor capabilities nor gVisor": {
			`{"os": {"name": "windows"}, "containers": [{"name": "a"}]}`,
			`{"os": {"name": "windows"}, "automountServiceAccountToken": false, "enableServiceLinks": false, "containers": [{"name": "a"}]}`,
		},
		"what is no object is left to the schema": {
			`{"securityContext": "x", "containers": ["x", null, {"securityContext": 5}]}`,
			`{"automountServiceAccountToken": false, "enableServiceLinks": false, "runtimeClassName": "gvisor",
			  "securityContext": "x", "containers": ["x", null, {"securityContext": 5}]}`,
		},
	}
	for name, tc := range cases {
		for _, kind := range []string{"Sandbox", "SandboxTemplate"} {
			t.Run(kind+": "+name, func(t *testing.T) {
				object := `{"metadata": {"name": "x"}, "spec": {"podTemplate": {"spec": ` + tc.pod + `}}}`
				patched := apply(t, object, defaults.Operations(standard(kind, object)))
				got := patched["spec"].(map[string]any)["podTemplate"].(map[string]any)["spec"]
				if diff := cmp.Diff(any(decode(tc.want)), got); diff != "" {
					t.Errorf("patched Pod (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestOperationsAnnotate(t *testing.T) {
	const full = `"spec": {"podTemplate": {"spec": {"enableServiceLinks": false, "runtimeClassName": "runc",
		"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}, "containers": []`
	const token = "spec.podTemplate.spec.automountServiceAccountToken"
	cases := map[string]struct {
		kind, object string
		want         map[string]any
	}{
		"a Sandbox gets the name of its Pod and the list": {
			"Sandbox", `{"metadata": {"name": "x"}, ` + full + `}}}}`,
			map[string]any{"platform.agents.x-k8s.io/creator": "ann", "agents.x-k8s.io/pod-name": "x", "platform.agents.x-k8s.io/defaulted": token},
		},
		"a Sandbox whose name is not known yet gets no pod-name": {
			"Sandbox", `{"metadata": {"generateName": "x-", "annotations": null}, ` + full + `}}}}`,
			map[string]any{"platform.agents.x-k8s.io/creator": "ann", "platform.agents.x-k8s.io/defaulted": token},
		},
		"annotations of the user stay, those that validation judges included": {
			"Sandbox", `{"metadata": {"name": "x", "annotations": {"a/b~c": "d", "agents.x-k8s.io/pod-name": "other",
				"platform.agents.x-k8s.io/creator": "bob"}}, ` + full + `}}}}`,
			map[string]any{"a/b~c": "d", "platform.agents.x-k8s.io/creator": "bob", "agents.x-k8s.io/pod-name": "other", "platform.agents.x-k8s.io/defaulted": token},
		},
		"what an earlier pass set stays on the list, what it did not set leaves it": {
			"SandboxTemplate", `{"metadata": {"annotations": {"platform.agents.x-k8s.io/defaulted":
				"spec.podTemplate.spec.enableServiceLinks,spec.podTemplate.spec.runtimeClassName"}}, ` + full + `}}}}`,
			map[string]any{"platform.agents.x-k8s.io/defaulted": token + ",spec.podTemplate.spec.enableServiceLinks"},
		},
		"a claim is stamped": {
			"SandboxClaim", `{"metadata": {"name": "c"}, "spec": {}}`,
			map[string]any{"platform.agents.x-k8s.io/creator": "ann", "agents.x-k8s.io/controller-first-observed-at": "2026-11-29T12:00:00Z"},
		},
		"a claim that has a stamp keeps it": {
			"SandboxClaim", `{"metadata": {"name": "c", "annotations": {"agents.x-k8s.io/controller-first-observed-at": "t"}}}`,
			map[string]any{"platform.agents.x-k8s.io/creator": "ann", "agents.x-k8s.io/controller-first-observed-at": "t"},
		},
		"a pool gets nothing": {"SandboxWarmPool", `{"metadata": {"name": "p", "annotations": {"a": "b"}}}`, map[string]any{"a": "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			patched := apply(t, tc.object, defaults.Operations(standard(tc.kind, tc.object)))
			got := patched["metadata"].(map[string]any)["annotations"]
			if diff := cmp.Diff(any(tc.want), got); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// The annotation does not grow with the object, and a second pass finds it as it is.
func TestTheListOfDefaultsIsCut(t *testing.T) {
	containers := strings.TrimSuffix(strings.Repeat(`{"name": "a"},`, 2000), ",")
	object := `{"metadata": {"name": "x"}, "spec": {"podTemplate": {"spec": {"containers": [` + containers + `]}}}}`
	request := standard("Sandbox", object)
	request.Object = apply(t, object, defaults.Operations(request))
	metadata, _ := request.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	listed, _ := annotations["platform.agents.x-k8s.io/defaulted"].(string)
	if names := strings.Split(listed, ","); len(names) != 101 || names[100] != "..." {
		t.Errorf("%d names, the last is %q, want 100 and ...", len(names), names[len(names)-1])
	}
	if again := defaults.Operations(request); len(again) > 0 {
		t.Errorf("a second pass has operations: %v", again)
	}
}

func TestOperationsLeaveAlone(t *testing.T) {
	const open = `{"metadata": {"name": "x"}, "spec": {"operatingMode": "Running", "podTemplate": {"spec": {"containers": []}}}}`
	const suspended = `{"metadata": {"name": "x"}, "spec": {"operatingMode": "Suspended", "podTemplate": {"spec": {"containers": []}}}}`
	const leaving = `{"metadata": {"name": "x", "deletionTimestamp": "2026-11-29T12:00:00Z"}, "spec": {"podTemplate": {"spec": {}}}}`
	const other = `{"metadata": {"name": "x"}, "spec": {"podTemplate": {"spec": {"containers": [{"name": "a"}]}}}}`
	cases := map[string]struct {
		operation, object, old string
		touched                bool
	}{
		"creation is hardened":                            {"CREATE", open, "null", true},
		"a change of the podTemplate is hardened":         {"UPDATE", other, open, true},
		"a change of the operating mode is left alone":    {"UPDATE", suspended, open, false},
		"an object on its way out is left alone":          {"UPDATE", leaving, strings.Replace(leaving, `"spec": {}`, `"spec": {"hostname": "x"}`, 1), false},
		"a new object that says so is not on its way out": {"CREATE", leaving, "null", true},
		"nor is one whose update says so":                 {"UPDATE", leaving, open, true},
		"an object without a podTemplate is left alone":   {"UPDATE", `{"metadata": {}, "spec": {}}`, open, false},
		"an object that is nothing at all is left alone":  {"CREATE", `{}`, "null", false},
		"an object with no sane metadata is left at that": {"CREATE", `{"metadata": 5, "spec": "x"}`, "null", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := standard("Sandbox", tc.object)
			request.Operation, request.OldObject = tc.operation, decode(tc.old)
			operations, unmet := defaults.Operations(request), defaults.Unmet(request)
			if (len(operations) > 0) != tc.touched || (len(unmet) > 0) != tc.touched {
				t.Errorf("Operations() = %v and Unmet() = %v, want any: %t", operations, unmet, tc.touched)
			}
		})
	}
}

func TestUnmetNamesFieldAndRemedy(t *testing.T) {
	request := standard("Sandbox", `{"metadata": {"name": "x"}, "spec": {"podTemplate": {"spec": {"enableServiceLinks": false,
		"runtimeClassName": "", "automountServiceAccountToken": true, "securityContext": {"seccompProfile": {"type": "Unconfined"}}}}}}`)
	want := "spec.podTemplate.spec.runtimeClassName: Required value: hardened defaults were not applied, try again"
	if got := defaults.Unmet(request).ToAggregate(); got == nil || got.Error() != want {
		t.Errorf("Unmet() = %v, want %s", got, want)
	}
	request.RuntimeClasses = nil
	if got := defaults.Unmet(request); len(got) > 0 {
		t.Errorf("Unmet() = %v in a cluster without the tier's classes, want none", got)
	}
}

// FuzzOperations holds the mutation to its promises on any object that a client may
// send: only additions, nothing that was there changes, a second pass has nothing to
// do and validation finds nothing unmet.
func FuzzOperations(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"metadata": null, "spec": null}`,
		`{"metadata": {"name": "x", "annotations": {"platform.agents.x-k8s.io/defaulted": "a,b", "k": null}}, "spec": {"podTemplate": {"spec": ` + hardened + `}}}`,
		`{"metadata": {"annotations": 1}, "spec": {"podTemplate": {"spec": {"securityContext": [], "containers": [{"securityContext": {"capabilities": []}}, {}]}}}}`,
		`{"metadata": {"name": 5}, "spec": {"volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": "1024Mi"}}}}],
		  "podTemplate": {"spec": {"runtimeClassName": "", "initContainers": [{"resources": {"limits": {"cpu": "1000m"}}}]}}}}`,
	} {
		f.Add(seed, "Sandbox")
		f.Add(seed, "SandboxTemplate")
		f.Add(seed, "SandboxClaim")
	}
	f.Fuzz(func(t *testing.T, text, kind string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil {
			t.Skip("no JSON object")
		}
		normal, err := json.Marshal(object)
		if err != nil {
			t.Skip("no JSON object")
		}
		request := everything(kind, string(normal))
		operations := defaults.Operations(request)
		for _, operation := range operations {
			if operation.Operation != "add" {
				t.Fatalf("operation %s, want add", operation.Json())
			}
		}
		patched := apply(t, string(normal), operations)
		requireKept(t, "", request.Object, patched)
		request.Object = patched
		if again := defaults.Operations(request); len(again) > 0 {
			t.Errorf("a second pass has operations: %v\nobject: %v", again, patched)
		}
		if unmet := defaults.Unmet(request); len(unmet) > 0 {
			t.Errorf("the patched object has unmet defaults: %v", unmet)
		}
	})
}

// requireKept compares everything that the user set with the patched object.
func requireKept(t *testing.T, path string, before, after any) {
	t.Helper()
	switch before := before.(type) {
	case nil:
	case map[string]any:
		object, ok := after.(map[string]any)
		if !ok {
			t.Fatalf("%s was an object and is now %v", path, after)
		}
		for key, value := range before {
			if rewritten(path, key, value) {
				continue
			}
			requireKept(t, path+"/"+key, value, object[key])
		}
	case []any:
		list, ok := after.([]any)
		if !ok || len(list) != len(before) {
			t.Fatalf("%s was a list of %d and is now %v", path, len(before), after)
		}
		for i := range before {
			requireKept(t, path+"/-", before[i], list[i])
		}
	default:
		if before != after {
			t.Fatalf("%s was %v and is now %v", path, before, after)
		}
	}
}

// rewritten reports whether the mutation may replace a value: its own list, and an empty
// name, which is none.
func rewritten(path, key string, value any) bool {
	ours := path == "/metadata/annotations" && key == "platform.agents.x-k8s.io/defaulted"
	return ours || value == "" && (key == "runtimeClassName" || key == "serviceAccountName")
}

// apply patches the object as the apiserver does.
func apply(t *testing.T, object string, operations any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) == "null" {
		return decode(object)
	}
	patch, err := jsonpatchapply.DecodePatch(raw)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patch.Apply([]byte(object))
	if err != nil {
		t.Fatalf("apply %s to %s: %v", raw, object, err)
	}
	return decode(string(patched))
}
