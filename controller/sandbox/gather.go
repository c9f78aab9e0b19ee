// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

// gather reads everything that a pass needs. An error means that nothing is known,
// so that nothing may be said or done.
func (r *Reconciler) gather(ctx context.Context, sandbox *agentsv1beta1.Sandbox) (*scope, error) {
	s := &scope{sandbox: sandbox, now: r.clock.Now()}
	if err := r.gatherTier(ctx, s); err != nil {
		return nil, err
	}
	if err := r.gatherPods(ctx, s); err != nil {
		return nil, err
	}
	if err := r.gatherClaims(ctx, s); err != nil {
		return nil, err
	}
	service, err := lookup.Object(ctx, r.client, sandbox.Namespace, sandbox.Name, &corev1.Service{})
	if err != nil {
		return nil, err
	}
	s.foundService = service
	return s, nil
}

// gatherTier reads the label of the namespace and finds its tier.
func (r *Reconciler) gatherTier(ctx context.Context, s *scope) error {
	label, err := lookup.TierLabel(ctx, r.client, r.live, s.sandbox.Namespace)
	if err != nil {
		return err
	}
	s.tierLabel = label
	_, s.tier, _ = r.settings.Platform.TierOf(label)
	return nil
}

func (r *Reconciler) gatherPods(ctx context.Context, s *scope) error {
	named, err := lookup.Object(ctx, r.client, s.sandbox.Namespace, trackedPodName(s.sandbox), &corev1.Pod{})
	if err == nil && named == nil && trackedPodName(s.sandbox) != s.sandbox.Name {
		named, err = lookup.Object(ctx, r.client, s.sandbox.Namespace, s.sandbox.Name, &corev1.Pod{})
	}
	if err != nil {
		return err
	}
	var pods corev1.PodList
	err = r.client.List(ctx, &pods, client.InNamespace(s.sandbox.Namespace),
		client.MatchingFields{indexPodBySandbox: string(s.sandbox.UID)}, lookup.Eventually)
	if err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	s.setPods(pods.Items, named)
	return nil
}

// setPods sorts the Pods by who controls them. The list may lag behind the Pod that
// was read by name.
func (s *scope) setPods(listed []corev1.Pod, named *corev1.Pod) {
	s.owned, s.squatter = nil, nil
	for i := range listed {
		if named == nil || listed[i].UID != named.UID {
			s.owned = append(s.owned, &listed[i])
		}
	}
	switch {
	case named == nil:
	case ownershipOf(named, s.sandbox) == ours:
		s.owned = append(s.owned, named)
	default:
		s.squatter = named
	}
}

func (r *Reconciler) gatherClaims(ctx context.Context, s *scope) error {
	s.claims = map[string]*corev1.PersistentVolumeClaim{}
	for _, name := range claimNames(s.sandbox) {
		claim, err := lookup.Object(ctx, r.client, s.sandbox.Namespace, name, &corev1.PersistentVolumeClaim{})
		if err != nil {
			return err
		}
		if claim != nil {
			s.claims[name] = claim
		}
	}
	return nil
}
