// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package charts_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// argoPair is an object in Git and in the cluster, with the apiserver's answer to a dry run.
type argoPair struct {
	Name   string         `json:"name"`
	Git    map[string]any `json:"git"`
	Live   map[string]any `json:"live"`
	DryRun map[string]any `json:"dryRun"`
}

// ofArgoCD are the ways in which its library compares, in two of them with the snippet of
// the README.
var ofArgoCD = []string{"nothing ignored", "ignoring", "structured merge", "server side"}

// argocd applies manifests in both ways of Argo CD, and has its library say what is out of
// sync: nothing, with the snippet of the README or with the comparison by the server. What
// somebody changed in the cluster, all of them see.
func (s served) argocd(t *testing.T) {
	const manager = "argocd-controller"
	var pairs []argoPair
	for name, object := range s.applicable(t) {
		sayProtocol(object)
		clientSide := object.DeepCopy()
		written, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		annotate(clientSide, "kubectl.kubernetes.io/last-applied-configuration", string(written))
		if err := s.Create(t.Context(), clientSide, client.FieldOwner("argocd-application-controller")); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		dry := s.apply(t.Context(), t, object, manager, client.DryRunAll, client.ForceOwnership)
		pairs = append(pairs, argoPair{name + ", applied by the client", object.Object, clientSide.Object, dry.Object})
		if err := s.Delete(t.Context(), clientSide); err != nil {
			t.Fatal(err)
		}
		serverSide := s.apply(t.Context(), t, object, manager)
		dry = s.apply(t.Context(), t, object, manager, client.DryRunAll)
		pairs = append(pairs, argoPair{name + ", applied by the server", object.Object, serverSide.Object, dry.Object})
		if err := s.Delete(t.Context(), serverSide); err != nil {
			t.Fatal(err)
		}
	}
	changed := changedByHand(t, pairs)
	seen := map[string]int{}
	for _, difference := range s.outOfSync(t, append(pairs, changed)) {
		if difference.Name == changed.Name || difference.Way == "nothing ignored" {
			seen[difference.Name+difference.Way]++
			continue
		}
		t.Errorf("%s: Argo CD sees a difference, %s:\nlive      %s\npredicted %s", difference.Name, difference.Way, difference.Live, difference.Predicted)
	}
	for _, way := range ofArgoCD {
		if seen[changed.Name+way] == 0 {
			t.Errorf("Argo CD does not see what was changed by hand, %s", way)
		}
	}
	t.Logf("of %d objects %d are out of sync while nothing is ignored", len(pairs), len(seen)-len(ofArgoCD))
}

// sayProtocol gives ports their default protocol. It is a key of the list, and structured
// merge does not know what the definitions say of keys that are unset.
func sayProtocol(object *unstructured.Unstructured) {
	for _, list := range []string{"initContainers", "containers"} {
		containers, found, _ := unstructured.NestedSlice(object.Object, "spec", "podTemplate", "spec", list)
		if !found {
			continue // as in other kinds
		}
		for _, container := range containers {
			container, _ := container.(map[string]any)
			ports, _ := container["ports"].([]any)
			for _, port := range ports {
				if port, is := port.(map[string]any); is && port["protocol"] == nil {
					port["protocol"] = "TCP"
				}
			}
		}
		_ = unstructured.SetNestedSlice(object.Object, containers, "spec", "podTemplate", "spec", list) // it was there
	}
}

// changedByHand is a Sandbox that runs another image than Git says.
func changedByHand(t *testing.T, pairs []argoPair) argoPair {
	t.Helper()
	at := slices.IndexFunc(pairs, func(p argoPair) bool { return p.Git["kind"] == "Sandbox" })
	if at < 0 {
		t.Fatal("there is no Sandbox")
	}
	changed := pairs[at]
	changed.Name, changed.Live = "changed by hand", runtime.DeepCopyJSON(changed.Live)
	containers, found, err := unstructured.NestedSlice(changed.Live, "spec", "podTemplate", "spec", "containers")
	if err != nil || !found {
		t.Fatalf("%s has no containers, %v", changed.Name, err)
	}
	container, _ := containers[0].(map[string]any)
	container["image"] = "registry.example.com/other:1"
	if err := unstructured.SetNestedSlice(changed.Live, containers, "spec", "podTemplate", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	return changed
}

// argoDifference is what Argo CD's library finds.
type argoDifference struct {
	Name, Way       string
	Live, Predicted json.RawMessage
}

// outOfSync asks the command that holds the library of Argo CD.
func (s served) outOfSync(t *testing.T, pairs []argoPair) []argoDifference {
	t.Helper()
	clients, err := kubernetes.NewForConfig(s.server.Config)
	if err != nil {
		t.Fatal(err)
	}
	types, err := clients.RESTClient().Get().AbsPath("/openapi/v2").SetHeader("Accept", "application/json").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	ignore := map[string][]string{}
	for _, entry := range ignoreDifferences(t) {
		ignore[entry.kind] = entry.expressions
	}
	question, err := json.Marshal(map[string]any{"openAPI": json.RawMessage(types), "ignore": ignore, "pairs": pairs})
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "argocd")
	if out, err := exec.CommandContext(t.Context(), "go", "-C", "../.tools/argocd", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the library of Argo CD: %v\n%s", err, out)
	}
	command := exec.CommandContext(t.Context(), binary)
	command.Stdin = bytes.NewReader(question)
	var complaints strings.Builder
	command.Stderr = &complaints
	answer, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	var found []argoDifference
	if err := json.Unmarshal(answer, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func annotate(object *unstructured.Unstructured, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}
