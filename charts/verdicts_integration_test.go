// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package charts_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
)

// onlyEnvironment names the environment whose values a process is to test. One process
// runs one webhook: its metrics and controllers have one name each.
const onlyEnvironment = "CORPUS_ENVIRONMENT"

// The chart's own values, and those of production, give the verdicts that the corpus
// states for them.
func TestServedWithTheValuesOfTheChart(t *testing.T) {
	environments := map[string]struct {
		name, file string
		// fewest is how many manifests are sent at least.
		fewest int
	}{
		"by default":    {"", "agent-sandbox/values.yaml", 150},
		"in production": {"prod", "agent-sandbox/values-prod.yaml", 15},
	}
	for title, environment := range environments {
		t.Run(title, func(t *testing.T) {
			if os.Getenv(onlyEnvironment) == title {
				serve(t, environment.file).verdicts(t, environment.name, environment.fewest)
				return
			}
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServedWithTheValuesOfTheChart$/^"+title+"$", "-test.v")
			command.Env = append(os.Environ(), onlyEnvironment+"="+title)
			if output, err := command.CombinedOutput(); err != nil {
				t.Errorf("%v:\n%s", err, output)
			}
		})
	}
}

// verdicts sends the manifests of the corpus that are about the values of an environment.
func (s served) verdicts(t *testing.T, environment string, fewest int) {
	t.Helper()
	cases, err := corpus.Cases(os.DirFS(corpusDir))
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, c := range cases {
		if c.Values != environment || c.Offline != "" {
			continue
		}
		sent++
		t.Run(c.Name, func(t *testing.T) {
			var causes []metav1.StatusCause
			err := s.steps(t, c)
			if status, is := errors.AsType[*apierrors.StatusError](err); is && status.ErrStatus.Details != nil {
				causes = status.ErrStatus.Details.Causes
			}
			if (err == nil) != c.Allowed {
				t.Errorf("the answer is %v, want it allowed: %t", err, c.Allowed)
			}
			if missing, unstated := c.Differences(causes); len(missing)+len(unstated) > 0 {
				t.Errorf("missing are %+v, not stated %+v, in: %v", missing, unstated, err)
			}
		})
	}
	if sent < fewest {
		t.Errorf("%d manifests were sent, want at least %d", sent, fewest)
	}
}

// steps stores all states of an object but the last and returns the answer to that.
func (s served) steps(t *testing.T, c corpus.Case) error {
	t.Helper()
	writer, stored := s.writer(t, c), &unstructured.Unstructured{}
	for i, document := range c.Documents {
		next := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(document.Object)}
		next.SetNamespace(c.Namespace)
		var err error
		if i == 0 {
			err = writer.Create(t.Context(), next)
		} else {
			next.SetResourceVersion(stored.GetResourceVersion())
			annotations := map[string]string{}
			maps.Copy(annotations, stored.GetAnnotations()) // what admission set
			maps.Copy(annotations, next.GetAnnotations())
			next.SetAnnotations(annotations)
			err = writer.Update(t.Context(), next)
		}
		switch {
		case err != nil && i < len(c.Documents)-1:
			t.Fatalf("step %d is refused: %v", i+1, err)
		case err != nil:
			return err
		case i == 0:
			t.Cleanup(func() {
				if err := client.IgnoreNotFound(s.Delete(context.WithoutCancel(t.Context()), next)); err != nil {
					t.Error(err)
				}
			})
		}
		stored = next
	}
	return nil
}

// writer writes as the user of a case.
func (s served) writer(t *testing.T, c corpus.Case) client.Client {
	t.Helper()
	if c.User != "controller" {
		return s
	}
	config := rest.CopyConfig(s.server.Config)
	config.Impersonate.UserName = "system:serviceaccount:" + defaultNamespace + ":agent-sandbox-controller"
	config.Impersonate.Groups = []string{"system:masters"} // what it may do is another story
	writer, err := apiserver.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return writer
}
