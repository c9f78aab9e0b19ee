// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

// phaseMetadata refuses metadata that is not the claim's to set. For a claim that gets no
// Sandbox any more it is of no account, and no reason may hide that one: it is what the next
// process knows it by.
func (r *Reconciler) phaseMetadata(_ context.Context, s *scope) error {
	if s.missing {
		return nil
	}
	return s.tolerate(checkMetadata(s.claim.Spec.AdditionalPodMetadata, r.settings.Current().Claims.AllowedLabelDomains()))
}

// tolerate is an error about the metadata of the claim, unless its Sandbox has all of it: then
// the claim asks for nothing new, and what was given stands.
func (s *scope) tolerate(err error) error {
	if !errors.As(err, &refusal{}) || s.sandbox == nil || !contains(s.sandbox.Spec.PodTemplate.ObjectMeta, s.claim.Spec.AdditionalPodMetadata) {
		return err
	}
	s.keep("is kept as it is, and would be refused today: %w", err)
	return nil
}

// keep notes why what the Pod has stands.
func (s *scope) keep(format string, args ...any) {
	s.tolerated = errors.Join(s.tolerated, fmt.Errorf(format, args...))
}

// contains says whether metadata has all entries of another.
func contains(all, some agentsv1beta1.PodMetadata) bool {
	return hasAll(all.Labels, some.Labels) && hasAll(all.Annotations, some.Annotations)
}

func hasAll(all, some map[string]string) bool {
	for key, value := range some {
		if had, found := all[key]; !found || had != value {
			return false
		}
	}
	return true
}
