// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// Every manifest of the corpus gets from the installed webhook the verdict that it
// states, by dry runs. Only the first states of updates are stored, for a moment.
func TestCorpusGetsItsVerdictFromTheInstalledWebhook(t *testing.T) {
	ctx := t.Context()
	cases, err := corpus.Cases(os.DirFS("corpus"))
	if err != nil {
		t.Fatal(err)
	}
	environment := installedEnvironment(ctx, t)
	namespaces := corpusNamespaces(ctx, t)
	asked := 0
	for _, c := range cases {
		if c.Offline != "" || c.Values != environment {
			continue
		}
		asked++
		t.Run(c.Name, func(t *testing.T) {
			giveVerdict(ctx, t, c, namespaces[c.Namespace])
		})
	}
	t.Logf("%d of %d manifests were sent to the apiserver; the others need other values or no apiserver", asked, len(cases))
	if asked < 150 {
		t.Errorf("%d manifests were sent, want at least 150", asked)
	}
}

// installedEnvironment is that of the values which the release was installed with.
// Those of dev have the rules of the chart's own.
func installedEnvironment(ctx context.Context, t *testing.T) string {
	t.Helper()
	var configMap corev1.ConfigMap
	if err := cluster.Get(ctx, client.ObjectKey{Namespace: kit.ReleaseNamespace, Name: "agent-sandbox-config"}, &configMap); err != nil {
		t.Fatal(err)
	}
	var platform struct {
		Environment struct{ Name string }
	}
	if err := yaml.Unmarshal([]byte(configMap.Data["platform.yaml"]), &platform); err != nil {
		t.Fatal(err)
	}
	if platform.Environment.Name == "dev" {
		return ""
	}
	return platform.Environment.Name
}

// corpusNamespaces makes the namespaces that cases name, with what is in them.
func corpusNamespaces(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	world, err := corpus.World(os.DirFS("corpus"), false)
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for name, labels := range corpus.Namespaces {
		if name == "unknown" {
			continue // no one may label a namespace so
		}
		var pairs []string
		for key, value := range labels {
			pairs = append(pairs, key, value)
		}
		made[name] = cluster.Namespace(ctx, t, pairs...)
		for _, object := range world {
			if object["kind"] == "RuntimeClass" {
				continue // the cluster has it
			}
			copied := placed(object, made[name])
			if err := cluster.Create(ctx, copied); err != nil {
				t.Fatalf("%s %s in namespace %s: %v", copied.GetKind(), copied.GetName(), name, err)
			}
		}
	}
	return made
}

func placed(object map[string]any, namespace string) *unstructured.Unstructured {
	copied := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
	copied.SetNamespace(namespace)
	return copied
}

// giveVerdict stores all but the last state and asks for the last one.
func giveVerdict(ctx context.Context, t *testing.T, c corpus.Case, namespace string) {
	t.Helper()
	writer, warned := corpusClient(t, c)
	last := placed(c.Last(), namespace)
	var err error
	if len(c.Documents) == 1 {
		err = writer.Create(ctx, last, client.DryRunAll)
	} else {
		stored := storeSteps(ctx, t, c, namespace)
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if err := cluster.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
				return err
			}
			return writer.Update(ctx, following(last, stored), client.DryRunAll)
		})
	}
	if c.Allowed {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		for _, w := range c.Warnings {
			if !slices.ContainsFunc(warned.texts, func(text string) bool { return names(text, w) }) {
				t.Errorf("no warning %s %s among %q", w.Rule, w.Field, warned.texts)
			}
		}
		return
	}
	compareRefusal(t, c, err)
}

// corpusClient writes as the user of the case and hears warnings.
func corpusClient(t *testing.T, c corpus.Case) (client.Client, *heard) {
	t.Helper()
	warned := &heard{}
	config := rest.CopyConfig(cluster.Config)
	config.WarningHandlerWithContext = warned
	if c.User == "controller" {
		config.Impersonate.UserName = "system:serviceaccount:" + kit.ReleaseNamespace + ":agent-sandbox-controller"
		config.Impersonate.Groups = []string{"system:masters"} // what it may do is another story
	}
	writer, err := client.New(config, client.Options{Scheme: cluster.Scheme(), Mapper: cluster.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return writer, warned
}

// storeSteps stores all but the last state of an object.
func storeSteps(ctx context.Context, t *testing.T, c corpus.Case, namespace string) *unstructured.Unstructured {
	t.Helper()
	stored := placed(c.Documents[0].Object, namespace)
	if err := cluster.Create(ctx, stored); err != nil {
		t.Fatalf("the first state: %v", err)
	}
	t.Cleanup(func() {
		gone := client.IgnoreNotFound(cluster.Delete(context.WithoutCancel(ctx), stored))
		if gone != nil {
			t.Error(gone)
		}
		kit.Eventually(context.WithoutCancel(ctx), t, "the object is gone", func(ctx context.Context) error {
			if err := cluster.Get(ctx, client.ObjectKeyFromObject(stored), stored); !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("it is still there"), err)
			}
			return nil
		})
	})
	for _, document := range c.Documents[1 : len(c.Documents)-1] {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if err := cluster.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
				return err
			}
			return cluster.Update(ctx, following(placed(document.Object, namespace), stored))
		})
		if err != nil {
			t.Fatalf("a step before the last: %v", err)
		}
	}
	return stored
}

// following is the next state of a stored object: what controllers wrote stays.
func following(next, stored *unstructured.Unstructured) *unstructured.Unstructured {
	result := next.DeepCopy()
	result.SetResourceVersion(stored.GetResourceVersion())
	result.SetUID(stored.GetUID())
	keep := func(now, before map[string]string) map[string]string {
		merged := map[string]string{}
		maps.Copy(merged, before)
		maps.Copy(merged, now)
		return merged
	}
	result.SetLabels(keep(next.GetLabels(), stored.GetLabels()))
	result.SetAnnotations(keep(next.GetAnnotations(), stored.GetAnnotations()))
	return result
}

// compareRefusal wants the stated findings and no other. Where the apiserver's own
// policies refuse first, with the first fault, it has to be a stated one of a rule that
// they guard, about the stated field.
func compareRefusal(t *testing.T, c corpus.Case, err error) {
	t.Helper()
	status, isStatus := errors.AsType[*apierrors.StatusError](err)
	if !isStatus || !apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		t.Errorf("the answer is %v, want a refusal by admission", err)
		return
	}
	if rule := guardedRule(err); rule != "" {
		stated := func(f corpus.Finding) bool { return f.Rule == rule && names(err.Error(), f) }
		if !slices.Contains(guardRules, rule) || !slices.ContainsFunc(c.Denials, stated) {
			t.Errorf("the policies of the apiserver refuse for what is not stated: %v", err)
		}
		return
	}
	var causes []metav1.StatusCause
	if status.ErrStatus.Details != nil {
		causes = status.ErrStatus.Details.Causes
	}
	if missing, unstated := c.Differences(causes); len(missing)+len(unstated) > 0 {
		t.Errorf("missing are %+v, not stated %+v, in: %v", missing, unstated, err)
	}
}

// guardRules are those that the backstop holds on our kinds whatever the values say of the
// library.
var guardRules = []string{"reserved-metadata", "forged-owner", "platform-namespace"}

// guardedRule is the rule for which a ValidatingAdmissionPolicy refused; empty for any
// other answer.
func guardedRule(err error) string {
	if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		return ""
	}
	_, message, _ := strings.Cut(err.Error(), " denied request: ")
	rule, _, _ := strings.Cut(message, ":")
	return rule
}

// names reports whether a text has the finding's rule and field.
func names(text string, f corpus.Finding) bool {
	for rule := range strings.SplitSeq(f.Rule, "|") {
		if strings.Contains(text, rule+":") && strings.Contains(text, f.Field) {
			return true
		}
	}
	return false
}

// heard collects warnings of the apiserver.
type heard struct{ texts []string }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (h *heard) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	h.texts = append(h.texts, text)
}
