// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// lookAfter is how long the pass waits that follows the one which gave a claim its Sandbox: it
// writes the annotations, which are not to compete with the news of Ready. Claims that are under
// way then go first.
const lookAfter = 100 * time.Millisecond

// timeUnknown is a time that no process remembers.
const timeUnknown = "unknown"

// annotate writes, in one write after Ready was published, which Sandbox the claim has
// and when it was ready. Should it cease to be Ready before, the next process knows by them
// alone that it was.
func (r *Reconciler) annotate(ctx context.Context, s *scope) error {
	if s.sandbox == nil || !wasReady(s.claim, s.record) {
		return nil
	}
	claim := s.claim.DeepCopy()
	claim.Annotations = r.annotations(s)
	delete(claim.Labels, keys.SandboxName)
	if maps.Equal(claim.Annotations, s.claim.Annotations) && maps.Equal(claim.Labels, s.claim.Labels) {
		return nil
	}
	if _, due := r.later.Load(s.key()); due && isReady(s.claim.Status) {
		return nil // whatever asked for this pass, that one writes them
	}
	if err := patch.Same(ctx, r.client, claim, s.claim, fieldOwner); err != nil {
		return r.forgiveGone(s, fmt.Errorf("write annotations: %w", err))
	}
	return nil
}

// lookLater asks for a pass after lookAfter, and after the claims that are under way, unless one
// is due already: what gives a claim its Sandbox and what says that it is Ready ask for the same.
func (r *Reconciler) lookLater(claim types.NamespacedName) {
	if _, due := r.later.LoadOrStore(claim, struct{}{}); due {
		return
	}
	r.settings.Rush.After(lookAfter, func() {
		r.later.Delete(claim)
		r.waker.Now(claim)
	})
}

// annotations are those that the claim is to have.
func (r *Reconciler) annotations(s *scope) map[string]string {
	want := maps.Clone(s.claim.Annotations)
	if want == nil {
		want = map[string]string{}
	}
	want[keys.SandboxName] = s.sandbox.Name
	if r.settings.NoTimes || want[keys.ClaimFirstReadyAt] != "" {
		return want
	}
	want[keys.ClaimFirstReadyAt] = timeUnknown
	if !s.record.readyAt.IsZero() {
		want[keys.ClaimFirstReadyAt] = s.record.readyAt.UTC().Format(time.RFC3339Nano)
	}
	if want[keys.ControllerFirstObservedAt] == "" && !s.record.readyAt.IsZero() {
		want[keys.ControllerFirstObservedAt] = s.record.firstSeen.UTC().Format(time.RFC3339Nano)
	}
	return want
}

// wantsAnnotations says whether a write is due after Ready was published.
func (r *Reconciler) wantsAnnotations(s *scope) bool {
	return s.sandbox != nil && !maps.Equal(r.annotations(s), s.claim.Annotations)
}
