// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/getter"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const (
	chartDir         = "agent-sandbox"
	defaultRelease   = "agent-sandbox"
	defaultNamespace = "agent-sandbox-system"
	kubeVersion      = "v1.37.2"
)

// install is one helm install. Its zero value installs the defaults, without the
// definitions of our kinds, which are large and the same everywhere.
type install struct {
	release, namespace string
	// files are values files of the chart, by the name of their environment.
	files []string
	// set and setString are what --set and --set-string take.
	set, setString []string
	withCRDs       bool
	kubeVersion    string
}

// rendered is what an install would send to the apiserver.
type rendered struct {
	release.Release
	objects []object
}

// object is one object of a release, in both of its forms. typed is nil for kinds that
// Kubernetes does not know itself.
type object struct {
	*unstructured.Unstructured
	typed runtime.Object
	text  string
	hook  bool
}

func (o object) String() string {
	return o.GetKind() + " " + o.GetName()
}

// render installs without a cluster and fails the test if that fails.
func render(t *testing.T, in install) rendered {
	t.Helper()
	r, err := in.try()
	if err != nil {
		t.Fatalf("render %+v: %v", in, err)
	}
	return r
}

// try installs without a cluster.
func (in install) try() (rendered, error) {
	options := values.Options{Values: in.set, StringValues: in.setString}
	for _, env := range in.files {
		options.ValueFiles = append(options.ValueFiles, fmt.Sprintf("%s/values-%s.yaml", chartDir, env))
	}
	if !in.withCRDs {
		options.Values = append([]string{"crds.install=false"}, options.Values...)
	}
	given, err := options.MergeValues(getter.Providers{})
	if err != nil {
		return rendered{}, err
	}
	return in.tryValues(given)
}

func (in install) tryValues(given map[string]any) (rendered, error) {
	loaded, err := loader.LoadDir(chartDir)
	if err != nil {
		return rendered{}, err
	}
	version, err := chartutil.ParseKubeVersion(or(in.kubeVersion, kubeVersion))
	if err != nil {
		return rendered{}, err
	}
	client := action.NewInstall(&action.Configuration{})
	client.DryRun, client.ClientOnly, client.KubeVersion = true, true, version
	client.ReleaseName, client.Namespace = or(in.release, defaultRelease), or(in.namespace, defaultNamespace)
	rel, err := client.Run(loaded, given)
	if err != nil {
		return rendered{}, err
	}
	return parse(rel)
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func parse(rel *release.Release) (rendered, error) {
	r := rendered{Release: *rel}
	for _, text := range sortedManifests(rel.Manifest) {
		o, err := decode(text)
		if err != nil {
			return r, err
		}
		r.objects = append(r.objects, o)
	}
	for _, hook := range rel.Hooks {
		o, err := decode(hook.Manifest)
		if err != nil {
			return r, err
		}
		o.hook = true
		r.objects = append(r.objects, o)
	}
	return r, nil
}

func sortedManifests(manifest string) []string {
	split := releaseutil.SplitManifests(manifest)
	names := make([]string, 0, len(split))
	for name := range split {
		names = append(names, name)
	}
	slices.Sort(names)
	texts := make([]string, 0, len(names))
	for _, name := range names {
		texts = append(texts, split[name])
	}
	return texts
}

var strict = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// decode refuses duplicate keys, unknown fields and values of the wrong type.
func decode(text string) (object, error) {
	o := object{Unstructured: &unstructured.Unstructured{}, text: text}
	if err := yaml.UnmarshalStrict([]byte(text), &o.Object); err != nil {
		return o, fmt.Errorf("%w in:\n%s", err, text)
	}
	typed, _, err := strict.Decode([]byte(text), nil, nil)
	switch {
	case err == nil:
		o.typed = typed
	case !runtime.IsNotRegisteredError(err):
		return o, fmt.Errorf("%s: %w", o, err)
	}
	return o, nil
}

// all returns the objects of a type.
func all[T runtime.Object](r rendered) []T {
	var found []T
	for _, o := range r.objects {
		if typed, ok := o.typed.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// named returns the one object of a type and name.
func named[T interface {
	runtime.Object
	GetName() string
}](t *testing.T, r rendered, name string) T {
	t.Helper()
	var names []string
	for _, o := range all[T](r) {
		if o.GetName() == name {
			return o
		}
		names = append(names, o.GetName())
	}
	var none T
	t.Fatalf("no %T %q; there are %v", none, name, names)
	return none
}

// kinds counts the objects by kind.
func kinds(r rendered) map[string]int {
	count := map[string]int{}
	for _, o := range r.objects {
		count[o.GetKind()]++
	}
	return count
}

// wantFailure renders and wants a failure that says each of the parts.
func wantFailure(t *testing.T, in install, parts ...string) {
	t.Helper()
	_, err := in.try()
	if err == nil {
		t.Fatalf("rendered, want a failure that says %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("failed with %q, want it to say %q", err, part)
		}
	}
}
