// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/exposure"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/netpol"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// takenRecheck is how soon a name that somebody else holds is tried again: the cache
// does not see policies that are not ours.
const takenRecheck = 30 * time.Second

// exposedRecheck is how soon the policies of others that concern an unmanaged template are
// asked for again when nobody watches them.
const exposedRecheck = 30 * time.Second

// scope is everything that one pass over a template knows. gather fills the first
// part; the phases fill the rest.
type scope struct {
	// key is the namespace and the name of the template.
	key types.NamespacedName
	// template is the template as the cache has it; nil when there is none.
	template *extensionsv1beta1.SandboxTemplate
	// now is the time of the pass.
	now time.Time
	// tierLabel is the tier label of the namespace; empty without one.
	tierLabel string
	// sandboxes, pools and claims are the numbers of those that use the template.
	sandboxes, pools, claims int32

	// exposed is what NetworkPolicies of others open for the Pods of an unmanaged template.
	exposed []exposure.Finding
	// asks is true when the apiserver was asked for that, so that no event will tell of
	// another answer.
	asks bool

	// invalid says why no egress profile could be chosen. Set by isolate.
	invalid *field.Error
	// failure says why the policy is not in force. Set by isolate.
	failure error
}

// gone says whether no Sandbox can be made from the template any more.
func (s *scope) gone() bool {
	return s.template == nil || s.template.DeletionTimestamp != nil
}

// outcome is what the work queue is told: what may pass by itself is retried, and so
// is, after a while, what somebody mends where this controller does not see it.
func (s *scope) outcome() (ctrl.Result, error) {
	var taken *netpol.TakenError
	switch {
	case s.failure == nil && s.asks:
		return ctrl.Result{RequeueAfter: exposedRecheck}, nil
	case s.failure == nil:
		return ctrl.Result{}, nil
	case errors.As(s.failure, &taken):
		return ctrl.Result{RequeueAfter: takenRecheck}, nil
	case patch.Invalid(s.failure):
		return ctrl.Result{}, reconcile.TerminalError(s.failure)
	default:
		return ctrl.Result{}, s.failure
	}
}

// gather reads everything that a pass needs; nil when the template went with its namespace.
func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName) (*scope, error) {
	s := &scope{key: key, now: r.clock.Now()}
	template, err := lookup.Object(ctx, r.client, key.Namespace, key.Name, &extensionsv1beta1.SandboxTemplate{})
	if err != nil {
		return nil, err
	}
	if s.template = template; template == nil {
		r.counted.Delete(key)
	}
	s.tierLabel, err = lookup.TierLabel(ctx, r.client, r.live, key.Namespace)
	if template == nil && errors.Is(err, lookup.ErrNoNamespace) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := r.gatherUsers(ctx, s); err != nil {
		return nil, err
	}
	return s, r.gatherExposed(ctx, s)
}

// gatherUsers counts who uses the template, unless its status has the numbers of a moment ago.
// A pass that comes once they are old enough counts then.
func (r *Reconciler) gatherUsers(ctx context.Context, s *scope) error {
	if s.gone() {
		return r.count(ctx, s)
	}
	known, _ := r.counted.Load(s.key)
	at, counted := known.(time.Time)
	status := s.template.Status
	if left := at.Add(countEvery).Sub(s.now); counted && left > 0 && status.ObservedGeneration != 0 {
		s.sandboxes, s.pools, s.claims = status.Sandboxes, status.WarmPools, status.Claims
		r.waker.After(s.key, left)
		return nil
	}
	r.counted.Store(s.key, s.now)
	return r.count(ctx, s)
}

// count counts who uses the template.
func (r *Reconciler) count(ctx context.Context, s *scope) error {
	var sandboxes agentsv1beta1.SandboxList
	if err := r.listUsers(ctx, s.key, &sandboxes, indexSandboxByTemplate); err != nil {
		return err
	}
	s.sandboxes = number(len(sandboxes.Items))
	var pools extensionsv1beta1.SandboxWarmPoolList
	if err := r.listUsers(ctx, s.key, &pools, relations.PoolByTemplate); err != nil {
		return err
	}
	s.pools = number(len(pools.Items))
	for i := range pools.Items {
		var claims extensionsv1beta1.SandboxClaimList
		if err := r.listUsers(ctx, client.ObjectKeyFromObject(&pools.Items[i]), &claims, relations.ClaimByPool); err != nil {
			return err
		}
		s.claims += number(len(claims.Items))
	}
	return nil
}

func (r *Reconciler) listUsers(ctx context.Context, of types.NamespacedName, list client.ObjectList, index string) error {
	err := r.client.List(ctx, list, client.InNamespace(of.Namespace), client.MatchingFields{index: of.Name}, lookup.Shared)
	if err != nil {
		return fmt.Errorf("count the users of the template: %w", err)
	}
	return nil
}

// number is a count as a status carries it. More objects than it can hold do not fit
// into one namespace.
func number(count int) int32 {
	return int32(count) //nolint:gosec // see above
}
