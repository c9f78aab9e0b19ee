// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package apiserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// server is the apiserver of all tests of this package; TestMain starts it.
var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Options{}, &server)) }

const (
	core       = "agents.x-k8s.io/v1beta1"
	extensions = "extensions.agents.x-k8s.io/v1beta1"
)

// The names, columns and subresources are facts of the API: scripts and autoscalers rest
// on them.
func TestKindsAreServedUnderTheNamesOfTheAPI(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		group, kind, short, columns string
		// more is what can be asked of an object besides itself.
		more string
	}{
		"sandboxes":        {core, "Sandbox", "sandbox", "Name Ready Reason Age", "status"},
		"sandboxtemplates": {extensions, "SandboxTemplate", "sandboxtemplate", "Name Age", "status"},
		"sandboxwarmpools": {extensions, "SandboxWarmPool", "swp", "Name Ready Desired Age", "status scale"},
		"sandboxclaims":    {extensions, "SandboxClaim", "sandboxclaim", "Name Ready Sandbox Reason Age", "status"},
	}
	for resource, tc := range cases {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			c, err := kubernetes.NewForConfig(server.Config)
			if err != nil {
				t.Fatal(err)
			}
			served, err := c.Discovery().ServerResourcesForGroupVersion(tc.group)
			if err != nil {
				t.Fatal(err)
			}
			var kind, short string
			var more []string
			for _, one := range served.APIResources {
				if one.Name == resource {
					kind, short = one.Kind, strings.Join(one.ShortNames, " ")
				} else if sub, isSub := strings.CutPrefix(one.Name, resource+"/"); isSub {
					more = append(more, sub)
				}
			}
			text, err := c.RESTClient().Get().AbsPath("/apis/"+tc.group+"/"+resource).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var table metav1.Table
			if err := json.Unmarshal(text, &table); err != nil {
				t.Fatal(err)
			}
			var columns []string
			for _, column := range table.ColumnDefinitions {
				columns = append(columns, column.Name)
			}
			want := []string{tc.kind, tc.short, tc.columns, tc.more}
			if diff := cmp.Diff(want, []string{kind, short, strings.Join(columns, " "), strings.Join(more, " ")}); diff != "" {
				t.Errorf("kind, short name, columns and subresources (-want +got):\n%s", diff)
			}
		})
	}
}

const pod = `podTemplate: {spec: {containers: [{name: main, image: "python:3.12-slim"}]}}`

// What a user leaves open is stored as the API says, and what he writes stays: a pool of
// none is not one of the default.
func TestDefaultsAreThoseOfTheAPI(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ group, kind, spec, want string }{
		"a Sandbox": {core, "Sandbox", pod, pod + "\noperatingMode: Running\nshutdownPolicy: Retain"},
		"a template": {
			extensions, "SandboxTemplate", pod,
			pod + "\nnetworkPolicyManagement: Managed\nenvVarsInjectionPolicy: Disallowed\nvolumeClaimTemplatesPolicy: Disallowed",
		},
		"a pool":                           {extensions, "SandboxWarmPool", "sandboxTemplateRef: {name: a}", "replicas: 1\nsandboxTemplateRef: {name: a}"},
		"a pool of none":                   {extensions, "SandboxWarmPool", "replicas: 0\nsandboxTemplateRef: {name: a}", "replicas: 0\nsandboxTemplateRef: {name: a}"},
		"a pool with an empty strategy":    {extensions, "SandboxWarmPool", "sandboxTemplateRef: {name: a}\nupdateStrategy: {}", "replicas: 1\nsandboxTemplateRef: {name: a}\nupdateStrategy: {type: OnReplenish}"},
		"a claim":                          {extensions, "SandboxClaim", "warmPoolRef: {name: a}", "warmPoolRef: {name: a}"},
		"a claim with an empty lifecycle":  {extensions, "SandboxClaim", "warmPoolRef: {name: a}\nlifecycle: {}", "warmPoolRef: {name: a}\nlifecycle: {shutdownPolicy: Retain}"},
		"a claim that ends with its Pod":   {extensions, "SandboxClaim", "warmPoolRef: {name: a}\nlifecycle: {ttlSecondsAfterFinished: 0}", "warmPoolRef: {name: a}\nlifecycle: {shutdownPolicy: Retain, ttlSecondsAfterFinished: 0}"},
		"a claim with an empty variable":   {extensions, "SandboxClaim", `{warmPoolRef: {name: a}, env: [{name: A, value: ""}]}`, `{warmPoolRef: {name: a}, env: [{name: A, value: ""}]}`},
		"a claim whose policy is set":      {extensions, "SandboxClaim", "warmPoolRef: {name: a}\nlifecycle: {shutdownPolicy: DeleteForeground}", "warmPoolRef: {name: a}\nlifecycle: {shutdownPolicy: DeleteForeground}"},
		"a template that takes overrides":  {extensions, "SandboxTemplate", pod + "\nenvVarsInjectionPolicy: Overrides\nnetworkPolicyManagement: Unmanaged\nvolumeClaimTemplatesPolicy: Allowed", pod + "\nnetworkPolicyManagement: Unmanaged\nenvVarsInjectionPolicy: Overrides\nvolumeClaimTemplatesPolicy: Allowed"},
		"a pool that is updated by a roll": {extensions, "SandboxWarmPool", "sandboxTemplateRef: {name: a}\nupdateStrategy: {type: RollingUpdate}", "replicas: 1\nsandboxTemplateRef: {name: a}\nupdateStrategy: {type: RollingUpdate}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored, err := store(t, tc.group, tc.kind, tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			var want any
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(inJSON(t, want), inJSON(t, stored.Object["spec"])); diff != "" {
				t.Errorf("spec as stored (-want +got):\n%s", diff)
			}
		})
	}
}

// What the API does not take is refused with the field that is wrong.
func TestWhatTheAPIDoesNotTakeIsRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ kind, spec, field string }{
		"a pool of fewer than none":      {"SandboxWarmPool", "replicas: -1\nsandboxTemplateRef: {name: a}", "spec.replicas"},
		"a pool without a template":      {"SandboxWarmPool", "replicas: 1", "spec.sandboxTemplateRef"},
		"a strategy that does not exist": {"SandboxWarmPool", "sandboxTemplateRef: {name: a}\nupdateStrategy: {type: Later}", "spec.updateStrategy.type"},
		"a claim without a pool":         {"SandboxClaim", "lifecycle: {}", "spec.warmPoolRef"},
		"a TTL below none":               {"SandboxClaim", "warmPoolRef: {name: a}\nlifecycle: {ttlSecondsAfterFinished: -1}", "spec.lifecycle.ttlSecondsAfterFinished"},
		"an end that does not exist":     {"SandboxClaim", "warmPoolRef: {name: a}\nlifecycle: {shutdownPolicy: Later}", "spec.lifecycle.shutdownPolicy"},
		"a variable without a value":     {"SandboxClaim", "warmPoolRef: {name: a}\nenv: [{name: A}]", "spec.env[0].value"},
		"a template without a Pod":       {"SandboxTemplate", "service: true", "spec.podTemplate"},
		"a policy of a template":         {"SandboxTemplate", pod + "\nenvVarsInjectionPolicy: Sometimes", "spec.envVarsInjectionPolicy"},
		"a management of isolation":      {"SandboxTemplate", pod + "\nnetworkPolicyManagement: Mine", "spec.networkPolicyManagement"},
		"a policy of volumes":            {"SandboxTemplate", pod + "\nvolumeClaimTemplatesPolicy: Sometimes", "spec.volumeClaimTemplatesPolicy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := store(t, extensions, tc.kind, tc.spec); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.field+":") {
				t.Errorf("store() = %v, want a refusal that names %s", err, tc.field)
			}
		})
	}
}

// store creates an object in a namespace of its own and reads it back as it is stored.
func store(t *testing.T, group, kind, spec string) (*unstructured.Unstructured, error) {
	t.Helper()
	e := server.NewEnvironment(t)
	object := &unstructured.Unstructured{}
	text := fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: a}}", group, kind)
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	var content any
	if err := yaml.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	object.Object["spec"] = content
	object.SetNamespace(e.Namespace)
	if err := e.Client.Create(t.Context(), object); err != nil {
		return nil, err
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(object.GroupVersionKind())
	e.Get("a", stored)
	return stored, nil
}

func inJSON(t *testing.T, content any) string {
	t.Helper()
	text, err := json.MarshalIndent(content, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
