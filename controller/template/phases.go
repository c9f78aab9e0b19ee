// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// label puts the hash of its name on the template.
func (r *Reconciler) label(ctx context.Context, s *scope) error {
	hash := keys.NameHash(s.template.Name)
	if s.template.Labels[keys.SandboxTemplateRefHash] == hash {
		return nil
	}
	labelled := s.template.DeepCopy()
	if labelled.Labels == nil {
		labelled.Labels = map[string]string{}
	}
	labelled.Labels[keys.SandboxTemplateRefHash] = hash
	if err := patch.Same(ctx, r.client, labelled, s.template, fieldOwner); err != nil {
		return fmt.Errorf("label the template: %w", err)
	}
	s.template = labelled
	return nil
}

// isolate makes the policy of a managed template what it has to be and removes that of
// an unmanaged one.
func (r *Reconciler) isolate(ctx context.Context, s *scope) {
	platform := r.settings.Current()
	choice, invalid := isolation.Choose(platform, isolation.SubjectOf(s.template, s.tierLabel))
	if invalid != nil {
		s.invalid = invalid
		s.failure = r.closeEgress(ctx, s, platform)
		return
	}
	if s.failure = r.policies.Template(ctx, s.template, choice, platform); s.failure != nil {
		return
	}
	if !isolation.Managed(s.template) {
		s.failure = r.policies.Drop(ctx, s.key.Namespace, s.key.Name)
	}
}

// closeEgress takes the egress out of the policy of a template whose own rules open more
// than its tier allows now. With other mistakes it stays what it was for, in the network
// of today.
func (r *Reconciler) closeEgress(ctx context.Context, s *scope, platform *config.Platform) error {
	if !isolation.IsBeyond(s.invalid) {
		return r.policies.Follow(ctx, s.key, s.tierLabel, platform)
	}
	closed := s.template.DeepCopy()
	closed.Spec.NetworkPolicy.Egress = nil
	return r.policies.Template(ctx, closed, isolation.Choice{}, platform)
}

// leave keeps the policy of a template that has gone while Sandboxes need it, and
// removes it then. Before that it asks the apiserver: a Sandbox may be too young for
// the cache.
func (r *Reconciler) leave(ctx context.Context, s *scope) error {
	if s.sandboxes > 0 || s.template != nil {
		return r.policies.Orphan(ctx, s.key, s.tierLabel, r.settings.Current())
	}
	var left agentsv1beta1.SandboxList
	err := r.live.List(ctx, &left, client.InNamespace(s.key.Namespace), client.Limit(1),
		client.MatchingLabels{keys.SandboxTemplateRefHash: keys.NameHash(s.key.Name)})
	if err != nil {
		return fmt.Errorf("list the Sandboxes of a template that has gone: %w", err)
	}
	if len(left.Items) > 0 {
		return r.policies.Orphan(ctx, s.key, s.tierLabel, r.settings.Current())
	}
	return r.policies.Drop(ctx, s.key.Namespace, s.key.Name)
}
