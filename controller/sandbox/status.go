// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// firstStatusWithin is how long after its Pod was made a Sandbox may be without a
// status. A Pod that is ready sooner saves one write.
const firstStatusWithin = time.Second

// memberStatusWithin is the same for a member of a pool, of which its pool alone wants to
// hear: Pods that start in a rush take longer, and each first status would compete with what
// makes them ready.
const memberStatusWithin = 5 * time.Second

// desiredStatus is the status that the pass has come to.
func desiredStatus(s *scope, clusterDomain string) agentsv1beta1.SandboxStatus {
	if s.expired() && s.announced {
		return agentsv1beta1.SandboxStatus{Conditions: conditions(s)}
	}
	status := *s.sandbox.Status.DeepCopy()
	status.Conditions = conditions(s)
	if s.expired() {
		return status
	}
	if len(s.owned) > 0 || s.squatter != nil || s.pod != nil {
		status.LabelSelector = keys.SandboxSelector(s.sandbox.Name)
	}
	if !s.podUnknown {
		status.PodIPs, status.NodeName = podAddresses(s)
	}
	if _, multiple := s.problems.multiplePods(); multiple {
		return status // the Service was left alone
	}
	status.Service, status.ServiceFQDN = "", ""
	if s.service != nil {
		status.Service, status.ServiceFQDN = s.service.Name, serviceFQDN(s.service, clusterDomain)
	}
	return status
}

func podAddresses(s *scope) (ips []string, node string) {
	if s.pod == nil {
		return nil, ""
	}
	for _, ip := range s.pod.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return ips, s.pod.Spec.NodeName
}

// worthWriting says whether a status differs from the stored one in more than the
// name of the node, which alone is worth a write only when the Sandbox is Ready.
func worthWriting(stored, desired agentsv1beta1.SandboxStatus) bool {
	if !meta.IsStatusConditionTrue(desired.Conditions, agentsv1beta1.ConditionReady) {
		desired.NodeName = stored.NodeName
	}
	return !equality.Semantic.DeepEqual(stored, desired)
}

// mayWait says until when a first status can be kept back, because a better one may
// come before; false when it must be written now.
func mayWait(s *scope, desired agentsv1beta1.SandboxStatus, podMade time.Time) (until time.Time, wait bool) {
	until = podMade.Add(firstStatusWithin)
	if relations.Pool(s.sandbox) != nil {
		until = podMade.Add(memberStatusWithin)
	}
	ready := meta.FindStatusCondition(desired.Conditions, agentsv1beta1.ConditionReady)
	wait = len(s.sandbox.Status.Conditions) == 0 &&
		ready != nil && ready.Reason == agentsv1beta1.ReasonDependenciesNotReady &&
		s.pod != nil && s.pod.DeletionTimestamp == nil &&
		!podMade.IsZero() && s.now.Before(until)
	return until, wait
}

// writeStatus sends the status if it changed.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope, desired agentsv1beta1.SandboxStatus) error {
	if !worthWriting(s.sandbox.Status, desired) {
		return nil
	}
	sandbox := s.sandbox.DeepCopy()
	sandbox.Status = desired
	if err := patch.Status(ctx, r.client, sandbox, sandbox.Status, fieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	r.starts.ready(sandbox, r.clock.Now())
	return nil
}

// births remembers when this process made the Pod of a Sandbox that has no status
// yet. The time in the Pod's metadata knows no fractions of a second.
type births struct{ times sync.Map }

func (b *births) note(sandbox types.NamespacedName, at time.Time) {
	b.times.Store(sandbox, at)
}

func (b *births) of(sandbox types.NamespacedName) time.Time {
	if at, known := b.times.Load(sandbox); known {
		return at.(time.Time)
	}
	return time.Time{}
}

func (b *births) forget(sandbox types.NamespacedName) {
	b.times.Delete(sandbox)
}
