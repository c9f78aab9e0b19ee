// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// A policy ConfigMap that is deleted by accident stays in force and says so; once its
// removal is confirmed it does not.
func TestAPolicyThatDisappearsStaysInForceUntilItsRemovalIsConfirmed(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	policy := func(confirmed bool, data map[string]string) *corev1.ConfigMap {
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: kit.ReleaseNamespace, Name: "story-removal", Labels: map[string]string{keys.PolicySource: "true"},
		}, Data: data}
		if confirmed {
			configMap.Annotations = map[string]string{keys.RemovalConfirmed: "true"}
		}
		return configMap
	}
	confirm := func(ctx context.Context) {
		if err := cluster.Create(ctx, policy(true, nil)); err != nil {
			t.Errorf("create it again: %v", err)
		}
		if err := cluster.Delete(ctx, policy(true, nil)); err != nil {
			t.Errorf("delete it: %v", err)
		}
	}
	if err := cluster.Create(ctx, policy(false, map[string]string{"story.rego": nobodyIsCalled("mallory")})); err != nil {
		t.Fatal(err)
	}
	mallory := kit.Object(t, ns, sandboxWith("mallory", "", ""))
	refused := func(ctx context.Context) error {
		if err := cluster.Create(ctx, mallory.DeepCopy(), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "story-mallory") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	}
	kit.Eventually(ctx, t, "the rule is in force", refused)
	if err := cluster.Delete(ctx, policy(false, nil)); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(ctx, t, "an Event tells of the accident", func(ctx context.Context) error {
		var events corev1.EventList
		if err := cluster.List(ctx, &events, client.InNamespace(kit.ReleaseNamespace)); err != nil {
			return err
		}
		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == "PolicyMissing" && e.InvolvedObject.Name == "story-removal" {
				return nil
			}
		}
		return errors.New("there is none")
	})
	if err := refused(ctx); err != nil {
		t.Errorf("the rule is out of force: %v", err)
	}
	confirm(ctx)
	kit.Eventually(ctx, t, "the rule is out of force", func(ctx context.Context) error {
		return cluster.Create(ctx, mallory.DeepCopy(), client.DryRunAll)
	})
}

// The webhook reads the Secret of its certificate, and no other.
func TestTheWebhookReadsOneSecret(t *testing.T) {
	ctx := t.Context()
	for name, tc := range map[string]struct {
		verb, secret string
		want         bool
	}{
		"watch its own":      {"watch", "agent-sandbox-webhook-cert", true},
		"list its own":       {"list", "agent-sandbox-webhook-cert", true},
		"update its own":     {"update", "agent-sandbox-webhook-cert", true},
		"read another":       {"get", "another", false},
		"list another":       {"list", "another", false},
		"list all of them":   {"list", "", false},
		"watch all of them":  {"watch", "", false},
		"make another":       {"create", "", false},
		"take its own away":  {"delete", "agent-sandbox-webhook-cert", false},
		"take another away":  {"delete", "another", false},
		"overwrite another":  {"update", "another", false},
		"patch another, too": {"patch", "another", false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + kit.ReleaseNamespace + ":agent-sandbox-webhook",
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: kit.ReleaseNamespace, Verb: tc.verb, Resource: "secrets", Name: tc.secret,
			},
		}}
		if err := cluster.Create(ctx, review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != tc.want {
			t.Errorf("the webhook may %s: %t, want %t", name, review.Status.Allowed, tc.want)
		}
	}
}
