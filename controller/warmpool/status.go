// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// statusInterval is how often the status of a pool is written at most, and how long
// changes of its numbers are gathered before.
const statusInterval = time.Second

// templateMay is how long a pool says nothing of a template that is not there: the two are
// often applied in one go, in any order.
const templateMay = 2 * time.Second

// Reasons of the conditions.
const (
	reasonComplete         = "Complete"
	reasonFilling          = "Filling"
	reasonTemplateNotFound = "TemplateNotFound"
	reasonUnschedulable    = "Unschedulable"
	reasonReconcilerError  = "ReconcilerError"
	reasonPolicyDenied     = "PolicyDenied"
	reasonQuotaExceeded    = "QuotaExceeded"
	reasonNothingDenied    = "NothingDenied"
	reasonWithinQuota      = "WithinQuota"
)

// tally counts the members that are not on their way out.
type tally struct{ active, ready, stale, claimable int }

func (s *scope) tally() tally {
	var t tally
	for i := range s.members {
		m := &s.members[i]
		if m.leaving || s.removed[m.sandbox.Name] {
			continue
		}
		t.active++
		if m.stale {
			t.stale++
		}
		if !m.ready {
			continue
		}
		t.ready++
		if handsOut(m, s.strategy()) && len(m.sandbox.Status.PodIPs) > 0 {
			t.claimable++
		}
	}
	return t
}

// desiredStatus is the status that the pass has come to.
func desiredStatus(s *scope) extensionsv1beta1.SandboxWarmPoolStatus {
	t := s.tally()
	status := *s.pool.Status.DeepCopy()
	status.Replicas, status.ReadyReplicas = int32(t.active), int32(t.ready) //nolint:gosec // a namespace holds fewer objects
	status.Selector = keys.WarmPoolSandbox + "=" + keys.NameHash(s.pool.Name)
	status.ObservedGeneration = s.pool.Generation
	for _, c := range []metav1.Condition{
		progressing(s, t),
		obstacle(s, extensionsv1beta1.PoolConditionPolicyDenied, heldDenied, reasonPolicyDenied, reasonNothingDenied),
		obstacle(s, extensionsv1beta1.PoolConditionQuotaExceeded, heldQuota, reasonQuotaExceeded, reasonWithinQuota),
	} {
		c.ObservedGeneration = s.pool.Generation
		c.LastTransitionTime = metav1.NewTime(s.now)
		c.Message = clip.Message(c.Message)
		meta.SetStatusCondition(&status.Conditions, c)
	}
	slices.SortFunc(status.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return status
}

// progressing takes the first answer that holds: what is worse comes first.
func progressing(s *scope, t tally) metav1.Condition {
	c := metav1.Condition{Type: extensionsv1beta1.PoolConditionProgressing, Status: metav1.ConditionFalse}
	missing := t.ready < s.desired()
	switch {
	case s.template == nil:
		c.Reason = reasonTemplateNotFound
		c.Message = fmt.Sprintf("SandboxTemplate %q not found", s.pool.Spec.TemplateRef.Name)
	case s.obstructed(heldDenied) != "":
		c.Reason, c.Message = reasonPolicyDenied, s.obstructed(heldDenied)
	case missing && s.obstructed(heldQuota) != "":
		c.Reason, c.Message = reasonQuotaExceeded, s.obstructed(heldQuota)
	case missing && s.memory.refusal.message != "":
		c.Reason, c.Message = reasonReconcilerError, "Error seen: "+s.memory.refusal.message
	case s.problem() != nil:
		c.Reason, c.Message = reasonReconcilerError, "Error seen: "+s.problem().Error()
	case missing && s.unschedulable() > 0:
		c.Reason, c.Message = reasonUnschedulable, unschedulableNote(s, s.unschedulable())
	case missing || t.active != s.desired():
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonFilling, "Sandboxes are on their way to the number that the pool asks for"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonComplete, "The pool has the Sandboxes that it asks for, and all of them are Ready"
	}
	return c
}

// obstacle is the condition for what keeps Sandboxes, or their Pods, from being made.
func obstacle(s *scope, kind string, of hold, yes, no string) metav1.Condition {
	if message := s.obstructed(of); message != "" {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: yes, Message: message}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: no}
}

// obstructed is what was said by those who refused Sandboxes of the pool, or their
// Pods; empty when nobody did.
func (s *scope) obstructed(by hold) string {
	if by == heldDenied && s.invalid != nil {
		return fmt.Sprintf("SandboxTemplate %q: %s", s.pool.Spec.TemplateRef.Name, s.invalid.Error())
	}
	if s.memory.refusal.kind == by && s.memory.refusal.message != "" {
		return s.memory.refusal.message
	}
	for i := range s.members {
		if m := &s.members[i]; m.held == by && !m.leaving && !s.removed[m.sandbox.Name] {
			return m.refusal
		}
	}
	return ""
}

// unschedulable is the number of overdue members that wait for a node.
func (s *scope) unschedulable() int {
	count := 0
	for _, m := range s.plan.held {
		if m.held == heldUnschedulable {
			count++
		}
	}
	return count
}

// conclude writes the status, tells of it, and sets the timer for the next pass: also when
// something failed, which waits longer each time and not for anything else.
func (r *Reconciler) conclude(ctx context.Context, s *scope) error {
	if len(s.plan.held) > 0 {
		s.wakeAt(s.now.Add(r.settings.UnschedulableRecheck))
	}
	r.tell(s)
	t := s.tally()
	s.memory.claimable.Store(int64(t.claimable))
	r.gauges.set(client.ObjectKeyFromObject(s.pool), s.desired(), t)
	s.failed(r.writeStatus(ctx, s))
	if !s.wake.IsZero() {
		r.waker.After(client.ObjectKeyFromObject(s.pool), s.wake.Sub(s.now))
	}
	return s.problem()
}

// writeStatus sends what changed of the status, unless it was written a moment ago, or the
// template may be about to come.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope) error {
	if due := s.memory.began.Add(templateMay); s.template == nil && s.now.Before(due) {
		s.wakeAt(due)
		return nil
	}
	desired := desiredStatus(s)
	if apiequality.Semantic.DeepEqual(s.pool.Status, desired) {
		s.memory.differs = time.Time{}
		return nil
	}
	if s.memory.differs.IsZero() {
		s.memory.differs = s.now
	}
	due := s.memory.differs.Add(statusInterval)
	if isNews(&s.pool.Status, &desired) {
		due = s.memory.written.Add(statusInterval)
	}
	if s.now.Before(due) {
		s.wakeAt(due)
		return nil
	}
	// The whole of it: the numbers must be there even when they are 0 and were never written.
	if err := patch.Status(ctx, r.client, s.pool.DeepCopy(), desired, fieldOwner); patch.IgnoreGone(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	s.memory.written, s.memory.differs = s.now, time.Time{}
	return nil
}

// isNews says whether more has changed than the numbers, which come and go with each
// claim.
func isNews(before, after *extensionsv1beta1.SandboxWarmPoolStatus) bool {
	if before.ObservedGeneration != after.ObservedGeneration {
		return true
	}
	return slices.ContainsFunc(after.Conditions, func(now metav1.Condition) bool {
		was := meta.FindStatusCondition(before.Conditions, now.Type)
		if was == nil || was.Status != now.Status {
			return true
		}
		return was.Reason != now.Reason && now.Reason != reasonFilling && now.Reason != reasonComplete
	})
}
