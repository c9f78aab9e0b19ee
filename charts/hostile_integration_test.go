// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package charts_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

const (
	sandboxesOfTrusted = "/apis/agents.x-k8s.io/v1beta1/namespaces/trusted/sandboxes"
	asJSON             = "application/json"
	asMerge            = "application/merge-patch+json"
)

// rawSandbox is a Sandbox as JSON, with these members of its metadata and of its Pod.
func rawSandbox(metadata, pod string) string {
	return `{"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {` + metadata + `}, "spec": {"podTemplate": {"spec": {
		"containers": [{"name": "a", "image": "registry.example.com/a:1"}]` + pod + `}}}}`
}

// sharesProcesses is a patch that lets a Pod see the processes of its node.
const sharesProcesses = `{"spec": {"podTemplate": {"spec": {"hostPID": true}}}}`

// attempt is one request of a tenant who wants something stored that he may not have.
type attempt struct {
	method, path, form, body string
	// harmless says that the apiserver takes the request, without what was wanted.
	harmless bool
}

// hostileAttempts are the ways to write that an apiserver knows, and tricks of each. The Sandbox
// "mine" is there, "leaving" is there and waits for a finalizer.
func hostileAttempts() map[string]attempt {
	const (
		post, patch, put = http.MethodPost, http.MethodPatch, http.MethodPut
		mine             = sandboxesOfTrusted + "/mine"
		name             = `"name": "x"`
		owner            = `"ownerReferences": [{"apiVersion": "extensions.agents.x-k8s.io/%s", "kind": "SandboxClaim", "name": "c", "uid": "u", "controller": true}]`
	)
	return map[string]attempt{
		"a field twice, the first harmless":        {post, sandboxesOfTrusted, asJSON, rawSandbox(name, `, "hostPID": false, "hostPID": true`), false},
		"a field twice, the second harmless":       {post, sandboxesOfTrusted, asJSON, rawSandbox(name, `, "hostPID": true, "hostPID": false`), true},
		"a whole object twice":                     {post, sandboxesOfTrusted, asJSON, strings.Replace(rawSandbox(name, `, "hostPID": true`), `{"apiVersion"`, `{"spec": {}, "apiVersion"`, 1), false},
		"a field in capital letters":               {post, sandboxesOfTrusted, asJSON, rawSandbox(name, `, "HostPID": true, "HOSTPID": true`), true},
		"a field with an escaped letter":           {post, sandboxesOfTrusted, asJSON, rawSandbox(name, `, "host\u0050ID": true`), false},
		"a number for a truth":                     {post, sandboxesOfTrusted, asJSON, rawSandbox(name, `, "hostPID": 1`), false},
		"null beside a privileged container":       {post, sandboxesOfTrusted, asJSON, rawSandbox(name, `, "initContainers": [null, {"name": "p", "image": "a:1", "securityContext": {"privileged": true}}]`), false},
		"a port as a fraction of nothing":          {post, sandboxesOfTrusted, asJSON, rawSandbox(name, `, "initContainers": [{"name": "p", "image": "a:1", "ports": [{"containerPort": 8e1, "hostPort": 8e1}]}]`), false},
		"an amount that keeps its readers busy":    {post, sandboxesOfTrusted, asJSON, rawSandbox(name, `, "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1.5e-2000000000"}}]`), false},
		"YAML with an alias":                       {post, sandboxesOfTrusted, "application/yaml", "apiVersion: agents.x-k8s.io/v1beta1\nkind: Sandbox\nmetadata: {name: x}\nspec: {podTemplate: {spec: {automountServiceAccountToken: &yes true, hostPID: *yes, containers: [{name: a, image: 'a:1'}]}}}\n", false},
		"a name that the apiserver makes":          {post, sandboxesOfTrusted, asJSON, rawSandbox(`"generateName": "x-"`, `, "hostPID": true`), false},
		"an object that says it is on its way out": {post, sandboxesOfTrusted, asJSON, rawSandbox(name+`, "finalizers": ["example.com/a"], "deletionTimestamp": "2026-11-29T12:00:00Z"`, `, "hostPID": true`), false},
		"a dry run":                                  {post, sandboxesOfTrusted + "?dryRun=All", asJSON, rawSandbox(name, `, "hostPID": true`), false},
		"an owner that is a claim":                   {post, sandboxesOfTrusted, asJSON, rawSandbox(name+", "+fmt.Sprintf(owner, "v1beta1"), ""), false},
		"an owner of a version that nobody serves":   {post, sandboxesOfTrusted, asJSON, rawSandbox(name+", "+fmt.Sprintf(owner, "v9"), ""), false},
		"a label of the controllers":                 {post, sandboxesOfTrusted, asJSON, rawSandbox(name+`, "labels": {"agents.x-k8s.io/claim-uid": "u"}`, ""), false},
		"a merge patch":                              {patch, mine, asMerge, sharesProcesses, false},
		"a merge patch of metadata too":              {patch, mine, asMerge, `{"metadata": {"labels": {"a": "b"}}, ` + sharesProcesses[1:], false},
		"a merge patch that suspends":                {patch, mine, asMerge, `{"spec": {"operatingMode": "Suspended", "podTemplate": {"spec": {"hostPID": true}}}}`, false},
		"a merge patch that says it is leaving":      {patch, mine, asMerge, `{"metadata": {"deletionTimestamp": "2026-11-29T12:00:00Z", "finalizers": ["example.com/a"]}, ` + sharesProcesses[1:], false},
		"a JSON patch":                               {patch, mine, "application/json-patch+json", `[{"op": "add", "path": "/spec/podTemplate/spec/hostPID", "value": true}]`, false},
		"a JSON patch that moves and copies":         {patch, mine, "application/json-patch+json", `[{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}, {"op": "add", "path": "/spec/podTemplate/spec/shareProcessNamespace", "value": true}, {"op": "copy", "from": "/spec/podTemplate/spec/shareProcessNamespace", "path": "/spec/podTemplate/spec/hostPID"}]`, false},
		"a strategic patch":                          {patch, mine, "application/strategic-merge-patch+json", sharesProcesses, false},
		"an apply of a part":                         {patch, mine + "?fieldManager=x&force=true", "application/apply-patch+yaml", `{"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", ` + sharesProcesses[1:], false},
		"an apply that creates":                      {patch, sandboxesOfTrusted + "/x?fieldManager=x", "application/apply-patch+yaml", rawSandbox(name, `, "hostPID": true`), false},
		"another whole object":                       {put, mine, asJSON, rawSandbox(`"name": "mine"`, `, "hostPID": true`), false},
		"a patch of the status":                      {patch, mine + "/status", asMerge, `{"metadata": {"labels": {"agents.x-k8s.io/claim-uid": "u"}}, "status": {"serviceFQDN": "a"}, ` + sharesProcesses[1:], true},
		"a whole status":                             {put, mine + "/status", asJSON, rawSandbox(`"name": "mine"`, `, "hostPID": true`), true},
		"a label of the controllers by a JSON patch": {patch, mine, "application/json-patch+json", `[{"op": "add", "path": "/metadata/labels", "value": {"agents.x-k8s.io/warm-pool-sandbox": "p"}}]`, false},
		"an owner that is a claim, by a patch":       {patch, mine, asMerge, `{"metadata": {` + fmt.Sprintf(owner, "v1beta1") + `}}`, false},
		"something else while it leaves":             {patch, sandboxesOfTrusted + "/leaving", asMerge, sharesProcesses, true},
		"to stay although it leaves":                 {patch, sandboxesOfTrusted + "/leaving", asMerge, `{"metadata": {"deletionTimestamp": null}, ` + sharesProcesses[1:], true},
	}
}

// hostile tries every way to store what a tenant may not have.
func (s served) hostile(t *testing.T) {
	s.prepareVictims(t)
	for name, tried := range hostileAttempts() {
		t.Run(name, func(t *testing.T) {
			if tried.method == http.MethodPut {
				tried.body = strings.Replace(tried.body, `"name": "mine"`, `"name": "mine", "resourceVersion": "`+s.versionOfMine(t)+`"`, 1)
			}
			code, answer := s.send(t, tried)
			t.Logf("%d: %.300s", code, answer)
			if refused := code >= http.StatusBadRequest && code < http.StatusInternalServerError; refused == tried.harmless {
				t.Errorf("the answer is %d, want it refused: %t: %s", code, !tried.harmless, answer)
			}
			s.sound(t)
		})
	}
}

// prepareVictims makes the Sandboxes that attempts are about.
func (s served) prepareVictims(t *testing.T) {
	t.Helper()
	for name, metadata := range map[string]string{"mine": "", "leaving": `, "finalizers": ["example.com/wait"]`} {
		if code, answer := s.send(t, attempt{method: http.MethodPost, path: sandboxesOfTrusted, form: asJSON, body: rawSandbox(`"name": "`+name+`"`+metadata, "")}); code != http.StatusCreated {
			t.Fatalf("%s is not made: %d %s", name, code, answer)
		}
	}
	leaving := &unstructured.Unstructured{}
	leaving.SetAPIVersion("agents.x-k8s.io/v1beta1")
	leaving.SetKind("Sandbox")
	leaving.SetNamespace("trusted")
	leaving.SetName("leaving")
	if err := s.Delete(t.Context(), leaving); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		code, answer := s.send(t, attempt{method: http.MethodPatch, path: sandboxesOfTrusted + "/leaving", form: asMerge, body: `{"metadata": {"finalizers": null}}`})
		if code != http.StatusOK {
			t.Errorf("the finalizer does not go: %d %s", code, answer)
		}
	})
}

// versionOfMine is what a whole object has to name.
func (s served) versionOfMine(t *testing.T) string {
	t.Helper()
	mine := &unstructured.Unstructured{}
	mine.SetAPIVersion("agents.x-k8s.io/v1beta1")
	mine.SetKind("Sandbox")
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "trusted", Name: "mine"}, mine); err != nil {
		t.Fatal(err)
	}
	return mine.GetResourceVersion()
}

// send sends a request as it is written, and returns the code and the answer.
func (s served) send(t *testing.T, tried attempt) (code int, answer string) {
	t.Helper()
	sender, err := rest.HTTPClientFor(s.server.Config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), tried.method, s.server.Config.Host+tried.path, strings.NewReader(tried.body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", tried.form)
	response, err := sender.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// sound fails the test unless what is stored, and stays, is as if nobody had tried.
func (s served) sound(t *testing.T) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("agents.x-k8s.io/v1beta1")
	list.SetKind("SandboxList")
	if err := s.List(t.Context(), list, client.InNamespace("trusted")); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		found := &list.Items[i]
		if found.GetDeletionTimestamp() != nil {
			continue // it never gets a Pod
		}
		pod, _, err := unstructured.NestedMap(found.Object, "spec", "podTemplate", "spec")
		if err != nil || pod["hostPID"] == true || pod["initContainers"] != nil || pod["volumes"] != nil || pod["automountServiceAccountToken"] != false {
			t.Errorf("%s has the Pod %v (%v)", found.GetName(), pod, err)
		}
		if labels := found.GetLabels(); !reflect.DeepEqual(labels, map[string]string(nil)) || relations.Claim(found) != nil {
			t.Errorf("%s has the labels %v and the owners %v", found.GetName(), labels, found.GetOwnerReferences())
		}
		if found.GetName() != "mine" {
			if err := s.Delete(t.Context(), found); err != nil {
				t.Error(err)
			}
		}
	}
}
