// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Apply applies one manifest as kubectl does, on the server's side, and returns the
// object as the apiserver stored it and the warnings that the user saw.
func (c *Cluster) Apply(ctx context.Context, namespace, manifest string) (*unstructured.Unstructured, []string, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		return nil, nil, fmt.Errorf("parse the manifest: %w", err)
	}
	object.SetNamespace(namespace)
	var warnings warningList
	config := rest.CopyConfig(c.Config)
	config.WarningHandlerWithContext = &warnings
	writer, err := client.New(config, client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
	if err != nil {
		return nil, nil, fmt.Errorf("make a client: %w", err)
	}
	err = writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership)
	return object, warnings.texts, err
}

// Object reads one manifest into an object of a namespace.
func Object(t *testing.T, namespace, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatalf("parse the manifest: %v", err)
	}
	object.SetNamespace(namespace)
	return object
}

// MustApply applies a manifest that has to be admitted.
func (c *Cluster) MustApply(ctx context.Context, t *testing.T, namespace, manifest string) *unstructured.Unstructured {
	t.Helper()
	object, _, err := c.Apply(ctx, namespace, manifest)
	if err != nil {
		t.Fatalf("apply: %v\n%s", err, manifest)
	}
	return object
}

// Refusal is what a user is told when an object is not admitted.
type Refusal struct {
	// Message is the text that kubectl prints.
	Message string
	// Causes are the machine-readable findings.
	Causes []metav1.StatusCause
}

// MustRefuse applies a manifest that has to be refused by the webhook, and checks
// that nothing was stored.
func (c *Cluster) MustRefuse(ctx context.Context, t *testing.T, namespace, manifest string) Refusal {
	t.Helper()
	object, _, err := c.Apply(ctx, namespace, manifest)
	if err == nil {
		t.Fatalf("the apiserver admitted what it should refuse:\n%s", manifest)
	}
	if !apierrors.IsForbidden(err) {
		t.Fatalf("apply failed with %v, want a refusal by admission", err)
	}
	stored := object.DeepCopy()
	if getErr := c.Get(ctx, client.ObjectKeyFromObject(object), stored); !apierrors.IsNotFound(getErr) {
		t.Errorf("a refused object can be read afterwards: %v", getErr)
	}
	refusal := Refusal{Message: err.Error()}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.ErrStatus.Details != nil {
		refusal.Causes = status.ErrStatus.Details.Causes
	}
	return refusal
}

// MustName fails the story unless the message has every part.
func (r Refusal) MustName(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(r.Message, part) {
			t.Errorf("the refusal does not name %q:\n%s", part, r.Message)
		}
	}
}

// MustHaveCause fails the story unless one cause has the field and names the rule.
func (r Refusal) MustHaveCause(t *testing.T, rule, field string) {
	t.Helper()
	for _, cause := range r.Causes {
		if cause.Field == field && strings.Contains(string(cause.Type)+" "+cause.Message, rule) {
			return
		}
	}
	t.Errorf("no cause has rule %q and field %q: %+v", rule, field, r.Causes)
}

// warningList collects warnings of the apiserver.
type warningList struct{ texts []string }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warningList) HandleWarningHeaderWithContext(_ context.Context, code int, _, text string) {
	if code == 299 && text != "" {
		w.texts = append(w.texts, text)
	}
}
