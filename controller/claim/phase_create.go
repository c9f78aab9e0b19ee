// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lifetime"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/tracing"
)

// create starts a new Sandbox for the claim, of the claim's own name, once the
// apiserver has said that there is none.
func (r *Reconciler) create(ctx context.Context, s *scope) error {
	if err := r.prove(ctx, s); err != nil || s.silent || s.sandbox != nil {
		return err
	}
	if s.namesake != nil {
		if leaving(s) {
			return pending(s)
		}
		return nameTaken(s)
	}
	options, err := r.options(ctx, s)
	if err != nil {
		return err
	}
	sandbox, err := blueprint.ForClaim(s.claim, s.template, options)
	if err != nil {
		return inWordsOfContract(s.claim, s.template, err)
	}
	lifetime.Note(sandbox, s.tier)
	tracing.Hand(ctx, sandbox)
	s.record.touched, s.record.creating = true, true
	err = r.client.Create(ctx, sandbox, fieldOwner)
	switch {
	case err == nil:
		r.bind(s, sandbox, blueprint.LaunchCold)
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.alreadyThere(ctx, s)
	case !patch.Settled(err):
		s.record.lostAt = r.clock.Now()
	default:
		s.mayStillBeMade()
	}
	return fmt.Errorf("create Sandbox %q: %w", sandbox.Name, err)
}

// alreadyThere looks at a Sandbox that was there a moment before the claim's own.
func (r *Reconciler) alreadyThere(ctx context.Context, s *scope) error {
	sandbox, err := lookup.Object(ctx, r.live, s.claim.Namespace, s.claim.Name, &agentsv1beta1.Sandbox{})
	if err != nil {
		return err
	}
	if sandbox != nil && serves(sandbox, s.claim) {
		r.bind(s, sandbox, blueprint.LaunchCold)
		return nil
	}
	s.mayStillBeMade()
	return pending(s)
}
