// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package charts_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
)

// inProduction says that the process is to test the values of production. One process
// runs one webhook: its metrics and controllers have one name each.
const inProduction = "CORPUS_IN_PRODUCTION"

// The values of production give the verdicts that the corpus states for them.
func TestServedWithTheValuesOfProduction(t *testing.T) {
	if os.Getenv(inProduction) != "" {
		serve(t, "agent-sandbox/values-prod.yaml").verdicts(t, "prod", 15)
		return
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServedWithTheValuesOfProduction$", "-test.v") //nolint:gosec // It is this test itself.
	command.Env = append(os.Environ(), inProduction+"=true")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, output)
	}
}

// verdicts sends the manifests of the corpus that are about the values of an environment.
// The others go to an installed bundle, with the values of its environment.
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
				causes = slices.Clone(status.ErrStatus.Details.Causes)
			}
			if (err == nil) != c.Allowed {
				t.Errorf("the answer is %v, want it allowed: %t", err, c.Allowed)
			}
			for _, want := range c.Denials {
				i := slices.IndexFunc(causes, func(cause metav1.StatusCause) bool { return want.Is(string(cause.Type), cause.Field) })
				if i < 0 {
					t.Errorf("no cause %s %s in: %v", want.Rule, want.Field, err)
					continue
				}
				causes = slices.Delete(causes, i, i+1)
			}
			if len(causes) > 0 {
				t.Errorf("not stated: %+v", causes)
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
	stored := &unstructured.Unstructured{}
	for i, document := range c.Documents {
		next := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(document.Object)}
		next.SetNamespace(c.Namespace)
		var err error
		if i == 0 {
			err = s.Create(t.Context(), next)
		} else {
			next.SetResourceVersion(stored.GetResourceVersion())
			next.SetAnnotations(stored.GetAnnotations())
			err = s.Update(t.Context(), next)
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
