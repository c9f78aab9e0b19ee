// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	release          = "agent-sandbox"
	releaseNamespace = "agent-sandbox-system"
)

// rendered are the objects of the chart with its default values, but for those given.
func rendered(tb testing.TB, values map[string]any) []*unstructured.Unstructured {
	tb.Helper()
	root, err := apiserver.Root()
	check(tb, err)
	chart, err := loader.LoadDir(filepath.Join(root, "charts", release))
	check(tb, err)
	version, err := chartutil.ParseKubeVersion("v1.37.2")
	check(tb, err)
	install := action.NewInstall(&action.Configuration{})
	install.DryRun, install.ClientOnly, install.KubeVersion = true, true, version
	install.ReleaseName, install.Namespace = release, releaseNamespace
	values["crds"] = map[string]any{"install": false}
	made, err := install.Run(chart, values)
	check(tb, err)
	var objects []*unstructured.Unstructured
	for text := range strings.SplitSeq(made.Manifest, "\n---\n") {
		object := &unstructured.Unstructured{}
		check(tb, yaml.Unmarshal([]byte(text), &object.Object))
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

// ours is the controller as the chart runs it with its default values: with its arguments,
// environment, configuration, policies and roles, and with other flags after those.
func ours(tb testing.TB, flags ...string) subject {
	tb.Helper()
	product, err := apiserver.Own()
	check(tb, err)
	s := subject{product: product}
	for _, object := range rendered(tb, map[string]any{}) {
		switch object.GetKind() {
		case "Deployment":
			if object.GetName() == "agent-sandbox-controller" {
				s.run(tb, object)
			}
		case "ConfigMap":
			if text, found, err := unstructured.NestedString(object.Object, "data", "platform.yaml"); err == nil && found {
				product.Config = text
			}
			s.objects = append(s.objects, object)
		case "Role", "RoleBinding":
			s.objects = append(s.objects, object)
		}
	}
	if len(s.flags) == 0 {
		tb.Fatal("the chart runs no controller")
	}
	s.flags = append(s.flags, flags...)
	return s
}

// run takes the arguments and the environment of a Deployment's container, as a kubelet
// gives them to it.
func (s *subject) run(tb testing.TB, object *unstructured.Unstructured) {
	tb.Helper()
	var deployment appsv1.Deployment
	check(tb, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
	container := &deployment.Spec.Template.Spec.Containers[0]
	var references []string
	for i := range container.Env {
		name, value := container.Env[i].Name, valueOf(tb, container, &container.Env[i])
		s.product.Environment = append(s.product.Environment, name+"="+value)
		references = append(references, "$("+name+")", value)
	}
	expand := strings.NewReplacer(references...)
	for _, arg := range container.Args {
		s.flags = append(s.flags, expand.Replace(arg))
	}
}

// valueOf is what a variable of a container is in the namespace of the release.
func valueOf(tb testing.TB, container *corev1.Container, variable *corev1.EnvVar) string {
	tb.Helper()
	source := variable.ValueFrom
	switch {
	case source == nil:
		return variable.Value
	case source.FieldRef != nil && source.FieldRef.FieldPath == "metadata.namespace":
		return releaseNamespace
	case source.ResourceFieldRef != nil && source.ResourceFieldRef.Resource == "limits.memory":
		return container.Resources.Limits.Memory().AsDec().String()
	}
	tb.Fatalf("nobody knows here what %s is: %v", variable.Name, source)
	return ""
}

// unjudged is ours without the policies and the audit.
func unjudged(tb testing.TB) subject {
	tb.Helper()
	return ours(tb, "--policy-namespace=", "--audit-interval=0s")
}

// The controller of the claims is the chart's in what it is told, so that judging and the
// audit are part of what is measured.
func TestOursIsToldWhatTheChartTells(t *testing.T) {
	s := ours(t, "--last")
	for _, flag := range []string{
		"--extensions=true", "--policy-namespace=" + releaseNamespace, "--audit-interval=30m", "--disable-claim-events=true",
		"--sandbox-write-behind-window=100ms", "--sandbox-warm-pool-concurrent-workers=4", "--claim-bind-timeout=1h",
	} {
		if !slices.Contains(s.flags, flag) {
			t.Errorf("its flags are %q, want %s among them", s.flags, flag)
		}
	}
	if last := s.flags[len(s.flags)-1]; last != "--last" {
		t.Errorf("its last flag is %s, want the one that was given", last)
	}
	for _, variable := range []string{"POD_NAMESPACE=" + releaseNamespace, "GOMEMLIMIT=536870912"} {
		if !slices.Contains(s.product.Environment, variable) {
			t.Errorf("its environment is %q, want %s in it", s.product.Environment, variable)
		}
	}
}
