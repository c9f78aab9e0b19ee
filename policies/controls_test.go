// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/rego"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/policy"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// none says that no catalogue of others has a control for the rule.
const none = "none"

// TestEveryRuleIsMappedToControlsOfOthers keeps the ids that people search for in the METADATA of each rule.
func TestEveryRuleIsMappedToControlsOfOthers(t *testing.T) {
	control := regexp.MustCompile(`^(none|PSS:[a-zA-Z_]+|CIS 5(\.[0-9]{1,2}){1,2}|NSA:C-0[0-9]{3}|C-03[0-9]{2}|C-0297|OWASP LLM(0[1-9]|10))$`)
	checks := map[string]bool{}
	for _, check := range policy.DefaultChecks() {
		checks[string(check.ID)] = true
	}
	codes := map[string]string{}
	for _, info := range catalogue(t) {
		if len(info.Controls) == 0 || (slices.Contains(info.Controls, none) && len(info.Controls) > 1) {
			t.Errorf("%s: controls are %q: name those that apply, or %q alone", info.ID, info.Controls, none)
		}
		for _, id := range info.Controls {
			if !control.MatchString(id) {
				t.Errorf("%s: %q is no control", info.ID, id)
			}
			if check, ok := strings.CutPrefix(id, "PSS:"); ok && !checks[check] && !checks[check+"_baseline"] {
				t.Errorf("%s: Pod Security has no check %q", info.ID, check)
			}
		}
		if other := codes[info.Code]; other != "" {
			t.Errorf("%s and %s both have the number %s", other, info.ID, info.Code)
		}
		codes[info.Code] = info.ID
	}
}

// literals are the texts in a source file of the checks of Kubernetes, which keep their lists to themselves.
func literals(t *testing.T, file string) []string {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "k8s.io/pod-security-admission/policy").Output()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(folder)), file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value)
			texts = append(texts, text)
		}
		return true
	})
	return texts
}

// TestDefaultListsAreThoseOfPodSecurity holds that two rules refuse by default no more and no less than the newest
// checks of Kubernetes for the same field.
func TestDefaultListsAreThoseOfPodSecurity(t *testing.T) {
	for rule, tc := range map[string]struct {
		check, file string
		pod         func(name string) *corev1.PodSpec
	}{
		"sysctls": {"sysctls", "check_sysctls.go", func(name string) *corev1.PodSpec {
			return &corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: name}}}}
		}},
		"capabilities-add": {"capabilities_baseline", "check_capabilities_baseline.go", func(name string) *corev1.PodSpec {
			added := &corev1.Capabilities{Add: []corev1.Capability{corev1.Capability(name)}}
			return &corev1.PodSpec{Containers: []corev1.Container{{SecurityContext: &corev1.SecurityContext{Capabilities: added}}}}
		}},
	} {
		checks := policy.DefaultChecks()
		versions := checks[slices.IndexFunc(checks, func(c policy.Check) bool { return string(c.ID) == tc.check })].Versions
		newest := versions[len(versions)-1].CheckPod
		var theirs []string
		for _, name := range literals(t, tc.file) {
			if newest(&metav1.ObjectMeta{}, tc.pod(name)).Allowed {
				theirs = append(theirs, name)
			}
		}
		var ours []string
		all := catalogue(t)
		listed, _ := all[slices.IndexFunc(all, func(info engine.RuleInfo) bool { return info.ID == rule })].Parameters["allowed"].([]any)
		for _, name := range listed {
			ours = append(ours, fmt.Sprint(name))
		}
		slices.Sort(theirs)
		if diff := cmp.Diff(slices.Compact(theirs), ours); diff != "" || len(ours) == 0 {
			t.Errorf("%s (-Kubernetes +rule):\n%s", rule, diff)
		}
	}
}

// TestReviewedFieldsAreThoseOfKubernetes fails when a new version of Kubernetes brings a field: look at what it does
// to the node, write a rule where one is needed, then add it to the list of the rule unknown-fields.
func TestReviewedFieldsAreThoseOfKubernetes(t *testing.T) {
	for list, kind := range map[string]reflect.Type{
		"of_pods":         reflect.TypeFor[corev1.PodSpec](),
		"of_pod_contexts": reflect.TypeFor[corev1.PodSecurityContext](),
		"of_contexts":     reflect.TypeFor[corev1.SecurityContext](),
		// Those of a container, and targetContainerName.
		"of_containers": reflect.TypeFor[corev1.EphemeralContainer](),
	} {
		var reviewed []string
		for _, name := range evaluated(t, "data.policies.library.unknown_fields."+list).([]any) {
			reviewed = append(reviewed, name.(string))
		}
		if diff := cmp.Diff(fieldsOf(kind), reviewed); diff != "" {
			t.Errorf("%s (-Kubernetes +reviewed):\n%s", list, diff)
		}
	}
}

func fieldsOf(kind reflect.Type) []string {
	var names []string
	for field := range kind.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		} else {
			names = append(names, fieldsOf(field.Type)...)
		}
	}
	slices.Sort(names)
	return names
}

// TestSecretsOfEveryDriverAreKnown fails when a new version of Kubernetes brings a volume that reads Secrets.
func TestSecretsOfEveryDriverAreKnown(t *testing.T) {
	known := evaluated(t, "data.policies.library.secret_volumes.drivers").(map[string]any)
	reading := map[string]any{}
	for source := range reflect.TypeFor[corev1.VolumeSource]().Fields() {
		driver, _, _ := strings.Cut(source.Tag.Get("json"), ",")
		for _, name := range fieldsOf(source.Type.Elem()) {
			if lower := strings.ToLower(name); driver != "secret" && (strings.HasSuffix(lower, "secretref") || lower == "secretname") {
				reading[driver] = name
			}
		}
	}
	if diff := cmp.Diff(reading, known); diff != "" {
		t.Errorf("volumes that read Secrets (-Kubernetes +known):\n%s", diff)
	}
}

// evaluated is the value of a reference into the library.
func evaluated(t *testing.T, reference string) any {
	t.Helper()
	options := []func(*rego.Rego){rego.Query(reference)}
	for _, module := range regoModules(t) {
		options = append(options, rego.ParsedModule(module))
	}
	results, err := rego.New(options...).Eval(context.Background())
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	return results[0].Expressions[0].Value
}
