// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
)

// scope is everything that one pass over a pool knows. gather fills the first part;
// act fills the rest.
type scope struct {
	// pool is the pool as the cache has it. Nothing changes it.
	pool *extensionsv1beta1.SandboxWarmPool
	// now is the time of the pass; grace is how long a member may be not Ready.
	now   time.Time
	grace time.Duration
	// memory is what this process remembers of the pool.
	memory *memory
	// template is the pool's template; nil when there is none.
	template *extensionsv1beta1.SandboxTemplate
	// invalid says why the template cannot be used in this namespace.
	invalid *field.Error
	// tierLabel is the tier label of the namespace; empty without one.
	tierLabel string
	// model is the Sandbox that the pool would make, without a name; nil when there is no
	// usable template.
	model *agentsv1beta1.Sandbox
	// members are the Sandboxes that the pool controls. They belong to the cache.
	members []member
	// orphans are Sandboxes of nobody that bear the label of the pool.
	orphans []*agentsv1beta1.Sandbox
	// claims are what the claims of the pool want.
	claims demand
	// unseen are the names of members that the cache does not show yet.
	unseen map[string]sent

	// plan is what was decided. Set by act.
	plan plan
	// removed are the names of members that were deleted. Set by act.
	removed map[string]bool
	// problems are the errors of the pass that may pass by themselves.
	problems []error
	// wake is when the next pass is due at the latest; zero for never.
	wake time.Time
}

// usable says whether the template may be used in this namespace.
func (s *scope) usable() bool { return s.invalid == nil }

// desired is the number of members that the pool asks for.
func (s *scope) desired() int {
	if s.pool.Spec.Replicas == nil {
		return 1
	}
	return int(*s.pool.Spec.Replicas)
}

func (s *scope) strategy() extensionsv1beta1.UpdateStrategyType {
	if s.pool.Spec.UpdateStrategy == nil || s.pool.Spec.UpdateStrategy.Type == "" {
		return extensionsv1beta1.UpdateStrategyOnReplenish
	}
	return s.pool.Spec.UpdateStrategy.Type
}

// subject is what a refusal speaks of.
func (s *scope) subject() string {
	if s.template == nil {
		return ""
	}
	return fmt.Sprintf("%d/%s/%d/%s", s.pool.Generation, s.template.UID, s.template.Generation, s.tierLabel)
}

// wakeAt asks for a pass at that time, or at an earlier one that was asked for.
func (s *scope) wakeAt(at time.Time) {
	if !at.IsZero() && (s.wake.IsZero() || at.Before(s.wake)) {
		s.wake = at
	}
}

func (s *scope) failed(err error) {
	if err != nil {
		s.problems = append(s.problems, err)
	}
}

// problem joins what went wrong; nil when nothing did.
func (s *scope) problem() error {
	return errors.Join(s.problems...)
}

// compare says which members are stale. Of those whose metadata does not tell, only the ones
// that changed are looked at again.
func (s *scope) compare(opts blueprint.Options) error {
	comparison, err := blueprint.Compare(s.template, opts)
	if err != nil {
		return err
	}
	outcomes := s.memory.compared.with(fmt.Sprintf("%s/%+v", s.subject(), opts))
	for i := range s.members {
		m := &s.members[i]
		stale, said := comparison.StaleByMetadata(m.sandbox)
		if !said {
			if stale, err = outcomes.of(m.sandbox, comparison.Stale); err != nil {
				return err
			}
		}
		m.stale = stale
	}
	return nil
}
