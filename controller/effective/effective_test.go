// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package effective_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/effective"
)

func decode(text string) map[string]any {
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		panic(err) //nolint:forbidigo // the literal of a test is wrong
	}
	return object
}

// template is a SandboxTemplate with these members of its spec besides the Pod.
func template(members string) map[string]any {
	return decode(`{"spec": {` + members + ` "networkPolicyManagement": "Unmanaged", "podTemplate": {
		"metadata": {"labels": {"app": "a", "agents.x-k8s.io/claim-uid": "forged"}, "annotations": {"opentelemetry.io/trace-context": "x"}},
		"spec": {"containers": [{"name": "main", "env": [{"name": "HOME", "valueFrom": {}}]}, {"name": "full", "envFrom": [{}]}],
		         "initContainers": [{"name": "init"}]}}}}`)
}

func TestOfOwnDropsReservedKeysAndKeepsTheRest(t *testing.T) {
	got := effective.OfOwn(template(``))
	want := decode(`{"metadata": {"labels": {"app": "a"}}, "spec": {
		"containers": [{"name": "main", "env": [{"name": "HOME", "valueFrom": {}}]}, {"name": "full", "envFrom": [{}]}],
		"initContainers": [{"name": "init"}]}}`)
	if diff := cmp.Diff(want, got.Pod); diff != "" || got.Path != "spec.podTemplate" {
		t.Errorf("OfOwn() at %s (-want +got):\n%s", got.Path, diff)
	}
}

func TestOfPool(t *testing.T) {
	cases := map[string]struct{ template, want string }{
		"a pool whose template does not exist has no Pod": {`null`, `null`},
		"a managed template gets public resolvers": {
			`{"spec": {"podTemplate": {"spec": {}}}}`,
			`{"metadata": {}, "spec": {"automountServiceAccountToken": false, "dnsPolicy": "None",
			  "dnsConfig": {"nameservers": ["8.8.8.8", "1.1.1.1"]}}}`,
		},
		"a token that the template wants and a DNS policy of its own stay": {
			`{"spec": {"podTemplate": {"spec": {"automountServiceAccountToken": true, "dnsPolicy": "Default"}}}}`,
			`{"metadata": {}, "spec": {"automountServiceAccountToken": true, "dnsPolicy": "Default"}}`,
		},
		"a template with rules of its own keeps the cluster's resolvers": {
			`{"spec": {"networkPolicy": {}, "podTemplate": {"spec": {}}}}`,
			`{"metadata": {}, "spec": {"automountServiceAccountToken": false}}`,
		},
		"a template that makes no sense gives an empty Pod": {
			`{"spec": {"networkPolicyManagement": "Unmanaged", "podTemplate": 5, "volumeClaimTemplates": {}}}`,
			`{"metadata": {}, "spec": {"automountServiceAccountToken": false}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := effective.OfPool(decode(tc.template))
			if diff := cmp.Diff(decode(tc.want), got.Pod); diff != "" || got.Path != "template.spec.podTemplate" {
				t.Errorf("OfPool() at %s (-want +got):\n%s", got.Path, diff)
			}
		})
	}
}

func TestOfClaim(t *testing.T) {
	const allowed = `"envVarsInjectionPolicy": "Allowed", "volumeClaimTemplatesPolicy": "Allowed", `
	const overrides = `"envVarsInjectionPolicy": "Overrides", "volumeClaimTemplatesPolicy": "Overrides", `
	const volume = `"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"a": 1}}], `
	cases := map[string]struct {
		template, claim string
		// member is compared: env of the container main, labels, or volumes.
		member string
		want   string
		errs   []string
	}{
		"a variable goes into the first container": {
			allowed, `"env": [{"name": "A", "value": "secret"}]`, "env",
			`[{"name": "HOME", "valueFrom": {}}, {"name": "A", "value": "secret"}]`, nil,
		},
		"variables are refused unless the template permits them": {
			``, `"env": [{"name": "A", "value": "secret"}]`, "env", `[{"name": "HOME", "valueFrom": {}}]`,
			[]string{`spec.env: Forbidden: the template does not let claims set variables: remove them, ` +
				`or ask for a template whose envVarsInjectionPolicy is Allowed`},
		},
		"a variable that the template has is refused under Allowed": {
			allowed, `"env": [{"name": "HOME", "value": "secret"}]`, "env", `[{"name": "HOME", "valueFrom": {}}]`,
			[]string{`spec.env[0].name: Duplicate value: "HOME"`},
		},
		"a variable that the template has is replaced under Overrides": {
			overrides, `"env": [{"name": "HOME", "value": "x", "containerName": "main"}]`, "env", `[{"name": "HOME", "value": "x"}]`, nil,
		},
		"a container with envFrom takes nothing under Allowed": {
			allowed, `"env": [{"name": "A", "value": "secret", "containerName": "full"}]`, "env", `[{"name": "HOME", "valueFrom": {}}]`,
			[]string{`spec.env[0]: Forbidden: container "full" takes variables from envFrom, so that an override cannot be excluded: remove the variable`},
		},
		"a container that does not exist is named beside those that do": {
			allowed, `"env": [{"name": "A", "value": "secret", "containerName": "no"}, {"name": "B", "value": "", "containerName": "init"}]`,
			"env", `[{"name": "HOME", "valueFrom": {}}]`,
			[]string{`spec.env[0].containerName: Unsupported value: "no": supported values: "main", "full", "init"`},
		},
		"labels are added, those of the template stand": {
			``, `"additionalPodMetadata": {"labels": {"app": "b", "sandbox.users.io/x": "y", "agents.x-k8s.io/claim-uid": "z"}}`,
			"labels", `{"app": "a", "sandbox.users.io/x": "y"}`,
			[]string{
				`spec.additionalPodMetadata.labels[agents.x-k8s.io/claim-uid]: Forbidden: the key is written by the controllers only: remove it`,
				`spec.additionalPodMetadata.labels[app]: Invalid value: "b": the template sets the key to another value: remove it from the claim`,
			},
		},
		"a volume is added": {
			allowed + volume, `"volumeClaimTemplates": [{"metadata": {"name": "more"}}]`, "volumes",
			`[{"metadata": {"name": "data"}, "spec": {"a": 1}}, {"metadata": {"name": "more"}}]`, nil,
		},
		"a volume of the template is replaced in its place under Overrides": {
			overrides + volume, `"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"a": 2}}]`, "volumes",
			`[{"metadata": {"name": "data"}, "spec": {"a": 2}}]`, nil,
		},
		"a volume of the template is refused under Allowed, and one without a name always": {
			allowed + volume, `"volumeClaimTemplates": [{"metadata": {"name": "data"}}, {}]`, "volumes",
			`[{"metadata": {"name": "data"}, "spec": {"a": 1}}]`,
			[]string{
				`spec.volumeClaimTemplates[0].metadata.name: Duplicate value: "data"`,
				`spec.volumeClaimTemplates[1].metadata.name: Required value: name the volume`,
			},
		},
		"volumes are refused unless the template permits them": {
			volume, `"volumeClaimTemplates": [{"metadata": {"name": "more"}}]`, "volumes", `[{"metadata": {"name": "data"}, "spec": {"a": 1}}]`,
			[]string{`spec.volumeClaimTemplates: Forbidden: the template does not let claims bring volumes: remove them, ` +
				`or ask for a template whose volumeClaimTemplatesPolicy is Allowed`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from, claim := template(tc.template), decode(`{"spec": {`+tc.claim+`}}`)
			got := effective.OfClaim(claim, from)
			if diff := cmp.Diff(template(tc.template), from); diff != "" {
				t.Errorf("the template was changed (-want +got):\n%s", diff)
			}
			var errs []string
			for _, err := range got.Errors {
				errs = append(errs, err.Error())
			}
			if diff := cmp.Diff(tc.errs, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			var want any
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, pick(got, tc.member)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.member, diff)
			}
		})
	}
}

func pick(r effective.Result, member string) any {
	switch member {
	case "volumes":
		return any(r.VolumeClaimTemplates)
	case "labels":
		return r.Pod["metadata"].(map[string]any)["labels"]
	default:
		return r.Pod["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["env"]
	}
}

func TestOfClaimWithoutTemplateHasNoPod(t *testing.T) {
	if got := effective.OfClaim(decode(`{"spec": {"env": [{"name": "A"}]}}`), nil); got.Pod != nil || got.Errors != nil {
		t.Errorf("OfClaim() = %v, want neither Pod nor errors", got)
	}
}
