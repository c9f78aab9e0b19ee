// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// sources are the templates of the chart and of its subcharts, and its notes.
func sources(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"templates/*", "charts/*/templates/*"} {
		files, err := filepath.Glob(filepath.Join(chartDir, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files match %s: %v", pattern, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found[file] = string(data)
		}
	}
	return found
}

// A render that depends on the time, on chance or on the cluster differs each time, and
// GitOps tools never come to rest.
func TestTemplatesAreDeterministic(t *testing.T) {
	drift := regexp.MustCompile(`\{\{[^}]*\b(lookup|genCA\w*|genSelfSignedCert\w*|genSignedCert\w*|genPrivateKey|rand\w+|uuidv4|now|htpasswd|derivePassword|encryptAES|shuffle|getHostByName)\b[^}]*\}\}`)
	for file, text := range sources(t) {
		if strings.Contains(file, "charts/crds/templates/sandbox") {
			text = strings.Join(regexp.MustCompile(`\{\{[^}]*\}\}`).FindAllString(text, -1), "\n")
		}
		if found := drift.FindString(text); found != "" {
			t.Errorf("%s: %s", file, found)
		}
	}
	for _, env := range environments {
		in := install{withCRDs: true, set: everything}.with(env)
		first, second := render(t, in), render(t, in)
		if first.Manifest != second.Manifest || first.Info.Notes != second.Info.Notes {
			t.Errorf("values of %s render differently each time", or(env, "defaults"))
		}
	}
}

// A line of blanks is what is left of a helper that said nothing.
func TestObjectsHaveNoBlankLines(t *testing.T) {
	for name, set := range map[string][]string{"defaults": nil, "everything on": everything} {
		for _, o := range render(t, install{set: set}).objects {
			for line := range strings.Lines(o.text) {
				if strings.TrimSpace(line) == "" || strings.HasSuffix(line, " \n") {
					t.Errorf("%s: %s has the line %q:\n%s", name, o, line, o.text)
					break
				}
			}
		}
	}
}

func TestHelmKeepsTheRelease(t *testing.T) {
	const limit = 1 << 20
	for _, env := range environments {
		if size := releaseSize(t, render(t, install{withCRDs: true, set: everything}.with(env))); size > limit/2 {
			t.Errorf("values of %s make a release of %d bytes, more than half of the %d that a Secret holds", or(env, "defaults"), size, limit)
		}
	}
}

func TestDefinitionsAreKeptAndUpgraded(t *testing.T) {
	names := map[string]bool{
		"sandboxes.agents.x-k8s.io": true, "sandboxtemplates.extensions.agents.x-k8s.io": true,
		"sandboxwarmpools.extensions.agents.x-k8s.io": true, "sandboxclaims.extensions.agents.x-k8s.io": true,
	}
	set := []string{"crds.labels.team=agents", `crds.annotations.argocd\.argoproj\.io/sync-options=ServerSideApply=true`}
	definitions := all[*apiextensionsv1.CustomResourceDefinition](render(t, install{withCRDs: true, set: set}))
	if len(definitions) != len(names) {
		t.Errorf("%d definitions, want %d", len(definitions), len(names))
	}
	for _, d := range definitions {
		if !names[d.Name] {
			t.Errorf("unexpected definition %s", d.Name)
		}
		if d.Annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s is deleted with the release, and all Sandboxes with it", d.Name)
		}
		if d.Annotations["controller-gen.kubebuilder.io/version"] == "" || d.Annotations["argocd.argoproj.io/sync-options"] != "ServerSideApply=true" {
			t.Errorf("%s has the annotations %v", d.Name, d.Annotations)
		}
		if d.Labels["team"] != "agents" || d.Labels["app.kubernetes.io/instance"] != defaultRelease {
			t.Errorf("%s has the labels %v", d.Name, d.Labels)
		}
	}
	for _, d := range all[*apiextensionsv1.CustomResourceDefinition](render(t, install{withCRDs: true, set: []string{"crds.keep=false"}})) {
		if _, kept := d.Annotations["helm.sh/resource-policy"]; kept {
			t.Errorf("%s is kept though crds.keep is false", d.Name)
		}
	}
	if n := kinds(render(t, install{set: []string{"crds.install=false"}}))["CustomResourceDefinition"]; n != 0 {
		t.Errorf("%d definitions though crds.install is false", n)
	}
}

func TestExtraObjects(t *testing.T) {
	metadata := map[string]any{"name": "{{ .Release.Name }}-one"}
	r, err := install{}.tryValues(map[string]any{
		"crds": map[string]any{"install": false},
		"extraObjects": []any{
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata},
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: two-{{ .Release.Namespace }}\n",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"agent-sandbox-one", "two-agent-sandbox-system"} {
		named[*corev1.ConfigMap](t, r, name)
	}
}
