// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package charts_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
)

// Whoever keeps his manifests in Git sees, on a real apiserver that asks the webhook as the
// chart installs it, no other change than what the table of the README lists. The tier of
// the namespace "standard" sets and requires all that a tier can.
func TestServed(t *testing.T) {
	s := serve(t, filepath.Join(corpusDir, "values-bounded.yaml"))
	t.Run("what is applied again does not change", s.applyAgain)
	t.Run("Flux finds no drift", s.flux)
	t.Run("Argo CD sees nothing out of sync", s.argocd)
	t.Run("kubectl sees no difference", s.kubectl)
	t.Run("the first rule of the README of the policies is rolled out", s.firstRule)
	t.Run("the corpus of the tier that requires everything gets its verdicts", func(t *testing.T) { s.verdicts(t, "bounded", 25) })
	t.Run("a ceiling of a Service is the Pods behind it", s.ceilingOfAService)
	t.Run("who wants something stored that he may not have gets nowhere", s.hostile)
}

// applicable are manifests of the corpus that the webhook admits, each in one of the
// tiers: every second, or all of them in the long form.
func (s served) applicable(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	cases, err := corpus.Cases(os.DirFS(corpusDir))
	if err != nil {
		t.Fatal(err)
	}
	step := 2
	if os.Getenv("DRIFT_OF_ALL") != "" {
		step = 1
	}
	found := map[string]*unstructured.Unstructured{}
	for turn, c := range cases {
		if turn%step > 0 || !c.Allowed || len(c.Documents) > 1 || c.Offline != "" || c.User != "" || strings.Contains(c.Name, "generate") {
			continue
		}
		for i := range tierNames {
			namespace := tierNames[(turn+i)%len(tierNames)]
			object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(c.Last())}
			object.SetNamespace(namespace)
			if err := s.Create(t.Context(), object.DeepCopy(), client.DryRunAll); err == nil {
				found[c.Name+" in tier "+namespace] = object
				break
			}
		}
	}
	t.Logf("%d manifests are applied", len(found))
	if want := 50 / step; len(found) < want {
		t.Errorf("%d manifests are admitted, want at least %d", len(found), want)
	}
	return found
}

// apply is a server-side apply, as two managers of Git do it.
func (s served) apply(ctx context.Context, t *testing.T, object *unstructured.Unstructured, manager string, more ...client.ApplyOption) *unstructured.Unstructured {
	t.Helper()
	applied := object.DeepCopy()
	options := append([]client.ApplyOption{client.FieldOwner(manager)}, more...)
	if err := s.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), options...); err != nil {
		t.Fatalf("%s applies: %v", manager, err)
	}
	return applied
}

// applyAgain applies each manifest by two managers, and asks what a third apply would
// change. Flux asks the same before it reports a drift.
func (s served) applyAgain(t *testing.T) {
	codes := compiled(t)
	for name, object := range s.applicable(t) {
		first := s.apply(t.Context(), t, object, "git")
		second := s.apply(t.Context(), t, object, "another")
		third := s.apply(t.Context(), t, object, "git")
		dry := s.apply(t.Context(), t, object, "git", client.DryRunAll)
		if diff := cmp.Diff(content(first), content(second)); diff != "" {
			t.Errorf("%s: a second manager changes it (-first +second):\n%s", name, diff)
		}
		if third.GetResourceVersion() != second.GetResourceVersion() {
			t.Errorf("%s: to apply it again writes:\n%s", name, cmp.Diff(second.Object, third.Object))
		}
		if diff := cmp.Diff(third.Object, dry.Object); diff != "" {
			t.Errorf("%s: a dry run says that it would change (-stored +dry run):\n%s", name, diff)
		}
		live, desired := kept(third), kept(s.unmutated(t, object))
		for _, code := range codes[object.GetKind()] {
			live, desired = code.delete(t, live), code.delete(t, desired)
		}
		if diff := cmp.Diff(desired, live); diff != "" {
			t.Errorf("%s: more than the table changes (-Git +live):\n%s", name, diff)
		}
		if err := s.Delete(t.Context(), third); err != nil {
			t.Fatal(err)
		}
	}
}

// content is an object without what every write changes.
func content(object *unstructured.Unstructured) map[string]any {
	copied := object.DeepCopy()
	copied.SetManagedFields(nil)
	copied.SetResourceVersion("")
	copied.SetGeneration(0)
	return copied.Object
}

// kept is what Git may have of an object.
func kept(object *unstructured.Unstructured) map[string]any {
	part := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{}, "spec": runtime.DeepCopyJSONValue(object.Object["spec"]),
	}}
	part.SetAnnotations(object.GetAnnotations())
	part.SetLabels(object.GetLabels())
	return part.Object
}

// unmutated is an object as the apiserver stores it where the webhook is not asked: with
// what the definitions say of unset fields.
func (s served) unmutated(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	stored := object.DeepCopy()
	stored.SetNamespace(defaultNamespace)
	if err := s.Create(t.Context(), stored, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	return stored
}

// kubectl applies the manifests of the first README, in both ways, twice, and asks for the
// difference.
func (s served) kubectl(t *testing.T) {
	kubectl, err := apiserver.Program(t.Context(), "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := s.server.Kubeconfig("jane", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		command := exec.CommandContext(t.Context(), kubectl, append([]string{"--kubeconfig", kubeconfig, "-n", "trusted"}, args...)...)
		output, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "pool", "claim"} {
		file := filepath.Join(t.TempDir(), "manifest.yaml")
		if err := os.WriteFile(file, []byte(manifestOf(t, string(readme), name)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, way := range [][]string{{"apply"}, {"apply", "--server-side", "--force-conflicts"}} {
			run(append(way, "-f", file)...)
			before := s.versions(t)
			run(append(way, "-f", file)...)
			if diff := cmp.Diff(before, s.versions(t)); diff != "" {
				t.Errorf("%s: kubectl %s again writes (-before +after):\n%s", name, strings.Join(way, " "), diff)
			}
			run(append([]string{"diff"}, append(way[1:], "-f", file)...)...)
		}
	}
}

// manifestOf is the manifest of that name in a document.
func manifestOf(t *testing.T, document, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(document, "<!-- manifest: "+name+" -->\n```yaml\n")
	text, _, ends := strings.Cut(rest, "```")
	if !found || !ends {
		t.Fatalf("the README has no manifest %q", name)
	}
	return text
}

// versions are the resource versions of all that kubectl applied.
func (s served) versions(t *testing.T) map[types.UID]string {
	t.Helper()
	found := map[types.UID]string{}
	for _, kind := range []string{"agents.x-k8s.io/v1beta1 SandboxList", "extensions.agents.x-k8s.io/v1beta1 SandboxTemplateList",
		"extensions.agents.x-k8s.io/v1beta1 SandboxWarmPoolList", "extensions.agents.x-k8s.io/v1beta1 SandboxClaimList"} {
		list := &unstructured.UnstructuredList{}
		if err := yaml.Unmarshal([]byte("apiVersion: "+strings.Replace(kind, " ", "\nkind: ", 1)), &list.Object); err != nil {
			t.Fatal(err)
		}
		if err := s.List(t.Context(), list, client.InNamespace("trusted")); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			found[list.Items[i].GetUID()] = list.Items[i].GetResourceVersion()
		}
	}
	return found
}
