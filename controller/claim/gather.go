// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

// gather reads everything that a pass needs. An error means that nothing is known, so
// that nothing may be said or done.
func (r *Reconciler) gather(ctx context.Context, claim *extensionsv1beta1.SandboxClaim) (*scope, error) {
	now := r.clock.Now()
	record, earlier := r.memory.of(client.ObjectKeyFromObject(claim), claim.UID, now)
	r.close(earlier)
	r.count(record, len(claim.Status.Conditions) == 0)
	s := &scope{
		claim:        claim,
		now:          now,
		record:       record,
		owned:        map[string]*agentsv1beta1.Sandbox{},
		bindDeadline: bindDeadline(claim, r.settings.BindTimeout),
	}
	if err := r.gatherTier(ctx, s); err != nil {
		return nil, err
	}
	controlled, err := r.controlled(ctx, claim)
	if err != nil {
		return nil, err
	}
	for i := range controlled {
		s.owned[controlled[i].Name] = &controlled[i]
	}
	for name := range sets.New(claim.Status.SandboxStatus.Name, s.record.bound, claim.Name).Delete("") {
		if err := r.gatherNamed(ctx, s, name); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// gatherNamed looks at the Sandbox of a name, which may be newer than the list, or
// gone.
func (r *Reconciler) gatherNamed(ctx context.Context, s *scope, name string) error {
	sandbox, err := lookup.Object(ctx, r.client, s.claim.Namespace, name, &agentsv1beta1.Sandbox{})
	if err != nil {
		return err
	}
	s.note(name, sandbox)
	return nil
}

// note sorts what was read under a name; nil when there is nothing.
func (s *scope) note(name string, sandbox *agentsv1beta1.Sandbox) {
	delete(s.owned, name)
	if name == s.claim.Name {
		s.namesake = nil
	}
	switch {
	case sandbox == nil:
	case serves(sandbox, s.claim):
		s.owned[name] = sandbox
	case name == s.claim.Name:
		s.namesake = sandbox
	}
}
