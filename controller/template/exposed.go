// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/exposure"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

// gatherExposed reads what NetworkPolicies of others open for the Pods of an unmanaged
// template. The cache of the manager knows only those that the controllers keep.
func (r *Reconciler) gatherExposed(ctx context.Context, s *scope) error {
	if s.gone() || isolation.Managed(s.template) {
		return nil
	}
	var pods corev1.PodList
	err := r.client.List(ctx, &pods, client.InNamespace(s.key.Namespace),
		client.MatchingLabels{keys.SandboxTemplateRefHash: keys.NameHash(s.key.Name)}, lookup.Shared)
	if err != nil {
		return fmt.Errorf("list the Pods of the template: %w", err)
	}
	every := r.live
	if s.asks = r.settings.EveryPolicy == nil; !s.asks {
		every = r.settings.EveryPolicy
	}
	var policies networkingv1.NetworkPolicyList
	if err := every.List(ctx, &policies, client.InNamespace(s.key.Namespace), lookup.Shared); err != nil {
		return fmt.Errorf("list the NetworkPolicies of the namespace: %w", err)
	}
	s.exposed = exposure.Find(pods.Items, policies.Items)
	return nil
}

// openings lists in words what is open for Sandboxes of an unmanaged template.
func openings(findings []exposure.Finding) string {
	if len(findings) == 0 {
		return "no NetworkPolicy of yours opens anything for their Pods"
	}
	parts := make([]string, 0, len(findings))
	for _, finding := range findings {
		parts = append(parts, fmt.Sprintf("NetworkPolicy %q lets %d of their Pods (%s) %s",
			finding.Policy, len(finding.Pods), few(finding.Pods), finding.Opens()))
	}
	return strings.Join(parts, "; ")
}

// named is how many names a message lists.
const named = 5

// few lists the first names and the number of the others.
func few(names []string) string {
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:named], ", "), len(names)-named)
}
