// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// The platform team moves a namespace to another tier and back: from then on what is new
// is judged by the tier of the day, while what was there may still be relabelled.
func TestATierThatChangesReachesWhatIsNew(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t, keys.Tier, "standard")
	asking := creating(t, ns, sandboxWith("workspace", "terminationGracePeriodSeconds: 1", ""))
	if _, err := asking(ctx); err != nil {
		t.Fatalf("in tier standard: %v", err)
	}
	old := cluster.MustApply(ctx, t, ns, sandboxWith("old", "terminationGracePeriodSeconds: 1", ""))
	move(ctx, t, ns, "restricted")
	kit.Eventually(ctx, t, "a Sandbox of its own is refused in tier restricted", func(ctx context.Context) error {
		if _, err := asking(ctx); err == nil || !strings.Contains(err.Error(), "restricted") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	if _, err := changing(old, `{"metadata": {"labels": {"a": "b"}}}`)(ctx); err != nil {
		t.Errorf("a label on what was there before: %v", err)
	}
	move(ctx, t, ns, "standard")
	kit.Eventually(ctx, t, "it is admitted in tier standard again", func(ctx context.Context) error {
		_, err := asking(ctx)
		return err
	})
}

// move gives a namespace another tier.
func move(ctx context.Context, t *testing.T, ns, tier string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata": {"labels": {%q: %q}}}`, keys.Tier, tier)
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	if err := cluster.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}
