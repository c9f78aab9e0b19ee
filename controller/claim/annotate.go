// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/rush"
)

// annotateAfter is how long the annotations of a claim wait once it is Ready, unless something
// else asks for a pass; while other claims are under way, they go first.
const annotateAfter = 100 * time.Millisecond

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
	if left := s.record.readyAt.Add(rush.Longest).Sub(s.now); left > 0 && isReady(s.claim.Status) && r.settings.Rush.Busy() {
		r.annotateLater(s, left)
		return nil
	}
	if err := patch.Same(ctx, r.client, claim, s.claim, fieldOwner); err != nil {
		return r.forgiveGone(s, fmt.Errorf("write annotations: %w", err))
	}
	return nil
}

// annotateLater asks for a pass that writes the annotations, within that time.
func (r *Reconciler) annotateLater(s *scope, most time.Duration) {
	key := s.key()
	r.settings.Rush.After(annotateAfter, most, func() { r.waker.Now(key) })
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
