// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// settledAfter tells a Sandbox that was never Ready, whose first status comes within five
// seconds of its Pod, from one that ceased to be.
const settledAfter = 15 * time.Second

// hold is why a member that is not Ready is kept: a new one would fare no better.
type hold int

const (
	notHeld hold = iota
	// heldUnschedulable waits for a node, or for a scheduling gate.
	heldUnschedulable
	// heldQuota waits for a quota.
	heldQuota
	// heldDenied waits for a policy that refuses its Pod.
	heldDenied
)

// member is what the pool needs to know of one of its Sandboxes.
type member struct {
	sandbox *agentsv1beta1.Sandbox
	// ready is true when it is Ready. Whether a claim gets it is another question: handsOut.
	ready bool
	// since is when the member became, or stayed, not Ready. Zero when it is Ready.
	since time.Time
	// wasReady is true when the member is Ready or was before.
	wasReady bool
	// held is why it is kept although it is not Ready.
	held hold
	// refusal is what its Ready condition says when it is held by quota or policy.
	refusal string
	// leaving is true when it is being deleted, or this process has asked for that.
	leaving bool
	// stale is true when it is no longer what the template describes.
	stale bool
	// refused is true when today's rules would not let it be made.
	refused bool
	// unfit is true when no claim can have it whatever the rules say, as somebody changed it.
	unfit bool
}

// useless says whether no claim gets a member, however Ready it is, so that another is to take
// its place.
func (m member) useless() bool { return m.refused || m.unfit }

// memberOf reads a Sandbox of the pool. Staleness is the caller's to add.
func memberOf(sandbox *agentsv1beta1.Sandbox, leaving bool) member {
	m := member{sandbox: sandbox, leaving: leaving || sandbox.DeletionTimestamp != nil, unfit: !relations.Handable(sandbox)}
	ready := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.ConditionReady)
	if ready != nil && ready.Status == metav1.ConditionTrue {
		m.ready, m.wasReady = true, true
		return m
	}
	m.since = sandbox.CreationTimestamp.Time
	if ready != nil {
		m.since = ready.LastTransitionTime.Time
		m.wasReady = m.since.Sub(sandbox.CreationTimestamp.Time) > settledAfter
	}
	m.held, m.refusal = holdOf(sandbox, ready)
	return m
}

func holdOf(sandbox *agentsv1beta1.Sandbox, ready *metav1.Condition) (hold, string) {
	scheduled := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.ConditionPodScheduled)
	if scheduled != nil && scheduled.Status == metav1.ConditionFalse {
		switch scheduled.Reason {
		case corev1.PodReasonUnschedulable, corev1.PodReasonSchedulingGated:
			return heldUnschedulable, scheduled.Message
		}
	}
	if ready == nil || ready.Reason != agentsv1beta1.ReasonReconcilerError {
		return notHeld, ""
	}
	switch {
	case strings.Contains(ready.Message, "exceeded quota"):
		return heldQuota, ready.Message
	case strings.Contains(ready.Message, "forbidden") || strings.Contains(ready.Message, "denied the request"):
		return heldDenied, ready.Message
	default:
		return notHeld, ""
	}
}

// overdue says whether a member has not been Ready for longer than the grace period.
func (m member) overdue(now time.Time, grace time.Duration) bool {
	return !m.ready && !now.Before(m.since.Add(grace))
}
