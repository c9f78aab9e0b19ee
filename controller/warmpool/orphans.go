// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

const (
	eventOrphanLeft = "OrphanLeftAlone"
	actionAdopting  = "Adopting"
)

// adoptOrphans takes over Sandboxes of nobody that are in all what the pool would make,
// while there is room for them. The others are left alone, and told of once.
func (r *Reconciler) adoptOrphans(ctx context.Context, s *scope) {
	if s.model == nil {
		return
	}
	room := s.desired() - len(s.members) - len(s.unseen)
	for _, orphan := range s.orphans {
		if _, adopted := s.unseen[orphan.Name]; adopted {
			continue // the cache is behind
		}
		switch {
		case !blueprint.Matches(orphan, s.model):
			r.leaveAlone(s, orphan, "its spec is not what the pool would make")
		case room <= 0:
			r.leaveAlone(s, orphan, "the pool has its replicas")
		case r.adopt(ctx, s, orphan):
			room--
		}
	}
}

// adopt makes the pool the controller of an orphan, and says whether it is one now.
func (r *Reconciler) adopt(ctx context.Context, s *scope, orphan *agentsv1beta1.Sandbox) bool {
	adopted := orphan.DeepCopy()
	adopted.OwnerReferences = append(adopted.OwnerReferences, s.model.OwnerReferences...)
	maps.Copy(adopted.Labels, s.model.Labels)
	if adopted.Annotations == nil {
		adopted.Annotations = map[string]string{}
	}
	maps.Copy(adopted.Annotations, s.model.Annotations)
	// It counts from before the request, as one that is made does.
	entry := sent{at: s.now, uid: orphan.UID, version: orphan.ResourceVersion}
	s.memory.unseen.put(orphan.Name, entry)
	err := r.client.Update(ctx, adopted, fieldOwner)
	switch {
	case err == nil:
		s.unseen[orphan.Name] = entry
		return true
	case patch.Settled(err):
		s.memory.unseen.remove(orphan.Name)
	default:
		s.memory.unseen.lost(orphan.Name, r.clock.Now())
		s.unseen[orphan.Name] = entry // the apiserver is asked for it later
	}
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		s.failed(fmt.Errorf("adopt Sandbox %q: %w", orphan.Name, err))
	}
	return false
}

// keepOrphans forgets those that are gone.
func (m *memory) keepOrphans(orphans []*agentsv1beta1.Sandbox) {
	left := sets.New[types.UID]()
	for _, orphan := range orphans {
		if m.orphans.Has(orphan.UID) {
			left.Insert(orphan.UID)
		}
	}
	m.orphans = left
}

func (r *Reconciler) leaveAlone(s *scope, orphan *agentsv1beta1.Sandbox, why string) {
	if s.memory.orphans.Has(orphan.UID) {
		return
	}
	s.memory.orphans.Insert(orphan.UID)
	r.recorder.Eventf(s.pool, orphan, corev1.EventTypeWarning, eventOrphanLeft, actionAdopting,
		"Sandbox %q has the label of the pool and no owner, and is left alone: %s. Delete it, or take the label off", orphan.Name, why)
}
