// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

// phaseIsolation puts the NetworkPolicies in place that the Pod needs before it may
// be made. It runs in every pass, so that a policy that somebody changed comes back. A
// Pod that is there keeps what it has for as long as it is not given another isolation.
func (r *Reconciler) phaseIsolation(ctx context.Context, s *scope) error {
	err := r.isolate(ctx, s)
	return errors.Join(err, r.keepApart(ctx, s.sandbox.Namespace, s.isolatedOtherwise()))
}

// isolatedOtherwise are the Pods of the Sandbox that other policies select than those
// which this pass saw to.
func (s *scope) isolatedOtherwise() []*corev1.Pod {
	if !s.isolated {
		return s.owned
	}
	chosen := isolation.SelectedBy(s.choice.PodLabels())
	var pods []*corev1.Pod
	for _, pod := range s.owned {
		if !slices.Equal(chosen, isolation.SelectedBy(pod.Labels)) {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (r *Reconciler) isolate(ctx context.Context, s *scope) error {
	template, err := r.templateOf(ctx, s)
	if err != nil {
		return err
	}
	subject := s.subject()
	if template != nil {
		subject = isolation.SubjectOf(template, s.tierLabel)
	}
	subject.Template = s.templateName()
	platform := r.settings.Current()
	choice, invalid := isolation.Choose(platform, subject)
	switch {
	case invalid != nil && template != nil:
		return invalid // templates are not watched: what mends them is found by trying again
	case invalid != nil:
		return userError{invalid}
	}
	s.choice = choice
	policies := isolation.Policies(s.sandbox.Namespace, choice, platform)
	if template != nil {
		if err := r.policies.Template(ctx, template, choice, platform); err != nil {
			return fmt.Errorf("no Pod is made before it is isolated: %w", err)
		}
		policies = policies[1:] // the first is the floor, which the other stands on
	}
	for _, policy := range policies {
		if err := r.policies.Shared(ctx, policy); err != nil {
			return fmt.Errorf("no Pod is made before it is isolated: NetworkPolicy %q: %w", policy.Name, err)
		}
	}
	s.isolated = true
	return nil
}

// templateOf reads the template that the Sandbox was made from; nil when there is none
// or it has gone or goes. Before a Pod is made, the apiserver is asked: the cache may
// be behind.
func (r *Reconciler) templateOf(ctx context.Context, s *scope) (*extensionsv1beta1.SandboxTemplate, error) {
	name := s.templateName()
	if name == "" {
		return nil, nil
	}
	template, err := lookup.Staying(ctx, r.client, s.sandbox.Namespace, name, &extensionsv1beta1.SandboxTemplate{})
	if err == nil && template == nil && len(s.owned) == 0 && !s.suspended() {
		template, err = lookup.Staying(ctx, r.live, s.sandbox.Namespace, name, &extensionsv1beta1.SandboxTemplate{})
	}
	return template, err
}
