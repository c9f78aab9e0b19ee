// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// askAfter is how long a create may stay unseen before the apiserver is asked for it.
const askAfter = 10 * time.Second

// gather reads everything that a pass needs. An error means that nothing may be done.
func (r *Reconciler) gather(ctx context.Context, pool *extensionsv1beta1.SandboxWarmPool) (*scope, error) {
	now := r.clock.Now()
	s := &scope{
		pool: pool, now: now, grace: r.settings.ReadinessGrace, removed: map[string]bool{},
		memory: r.memories.of(client.ObjectKeyFromObject(pool), pool.UID, now),
	}
	if err := r.prime(ctx, s); err != nil {
		return nil, err
	}
	// What is unseen is read before what the cache shows: a member that appears between
	// the two is then counted once too often, which makes the pool wait, and never missed.
	s.unseen = s.memory.unseen.snapshot()
	if err := r.gatherMembers(ctx, s); err != nil {
		return nil, err
	}
	r.gatherVerdicts(ctx, s)
	if err := r.settleUnseen(ctx, s); err != nil {
		return nil, err
	}
	if err := r.gatherOrphans(ctx, s); err != nil {
		return nil, err
	}
	if err := r.gatherClaims(ctx, s); err != nil {
		return nil, err
	}
	return s, r.gatherTemplate(ctx, s)
}

// gatherClaims counts the claims that go before a refill.
func (r *Reconciler) gatherClaims(ctx context.Context, s *scope) error {
	var list extensionsv1beta1.SandboxClaimList
	err := r.client.List(ctx, &list, client.InNamespace(s.pool.Namespace),
		client.MatchingFields{indexWantingClaimByPool: s.pool.Name}, lookup.Shared)
	if err != nil {
		return fmt.Errorf("list the claims that wait: %w", err)
	}
	s.claims = demandOf(list.Items, s.now, r.settings.Yield.ColdStartAfter, func(claim types.UID) bool {
		var owned agentsv1beta1.SandboxList
		err = errors.Join(err, r.client.List(ctx, &owned, client.InNamespace(s.pool.Namespace), client.Limit(1),
			client.MatchingFields{relations.SandboxByClaim: string(claim)}, lookup.Shared))
		return len(owned.Items) > 0
	})
	if err != nil {
		return fmt.Errorf("find the Sandboxes of claims: %w", err)
	}
	return nil
}

// prime asks the apiserver, once in a process, for members that the cache may not show
// yet.
func (r *Reconciler) prime(ctx context.Context, s *scope) error {
	if s.memory.primed {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(agentsv1beta1.GroupVersion.WithKind(agentsv1beta1.SandboxKind + "List"))
	err := r.live.List(ctx, list, client.InNamespace(s.pool.Namespace),
		client.MatchingLabels{keys.WarmPoolSandbox: keys.NameHash(s.pool.Name)})
	if err != nil {
		return fmt.Errorf("ask the apiserver for the members: %w", err)
	}
	for i := range list.Items {
		found := &list.Items[i]
		if !belongs(found, s.pool) {
			continue
		}
		s.memory.unseen.put(found.Name, sent{at: s.now, uid: found.UID})
		controlled, err := r.controlledInCache(ctx, found)
		if err != nil {
			return err
		}
		if controlled {
			s.memory.unseen.remove(found.Name)
		}
	}
	s.memory.primed = true
	return nil
}

// controlledInCache says whether the cache shows that somebody controls a Sandbox. One
// that it shows as an orphan was adopted since.
func (r *Reconciler) controlledInCache(ctx context.Context, stored *metav1.PartialObjectMetadata) (bool, error) {
	var found agentsv1beta1.Sandbox
	err := r.client.Get(ctx, client.ObjectKeyFromObject(stored), &found, lookup.Glance)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Sandbox %q: %w", stored.Name, err)
	}
	return err == nil && found.UID == stored.UID && metav1.GetControllerOf(&found) != nil, nil
}

func (r *Reconciler) gatherMembers(ctx context.Context, s *scope) error {
	var list agentsv1beta1.SandboxList
	err := r.client.List(ctx, &list, client.InNamespace(s.pool.Namespace),
		client.MatchingFields{indexSandboxByPool: string(s.pool.UID)}, lookup.Shared)
	if err != nil {
		return fmt.Errorf("list the members: %w", err)
	}
	s.members = make([]member, 0, len(list.Items))
	removing := sets.New[types.UID]()
	for i := range list.Items {
		sandbox := &list.Items[i]
		asked := s.memory.removing.Has(sandbox.UID)
		if asked && sandbox.DeletionTimestamp == nil {
			removing.Insert(sandbox.UID)
		}
		s.members = append(s.members, memberOf(sandbox, asked))
		if entry := s.unseen[sandbox.Name]; entry.uid == "" || entry.uid == sandbox.UID {
			delete(s.unseen, sandbox.Name)
		}
	}
	s.memory.removing = removing
	s.rememberReady()
	return nil
}

// rememberReady keeps which members were Ready once. The memory is made anew only when some
// of them are gone: most passes over a large pool find it as it was.
func (s *scope) rememberReady() {
	were := 0
	for i := range s.members {
		m := &s.members[i]
		if m.wasReady = m.wasReady || s.memory.ready.Has(m.sandbox.UID); m.wasReady {
			s.memory.ready.Insert(m.sandbox.UID)
			were++
		}
	}
	if s.memory.ready.Len() == were {
		return
	}
	left := sets.New[types.UID]()
	for i := range s.members {
		if s.members[i].wasReady {
			left.Insert(s.members[i].sandbox.UID)
		}
	}
	s.memory.ready = left
}

// settleUnseen asks the apiserver for creates that the cache should have shown by now,
// so that one whose object came and went unseen does not count for ever.
func (r *Reconciler) settleUnseen(ctx context.Context, s *scope) error {
	for name, entry := range s.unseen {
		if due := entry.at.Add(askAfter); s.now.Before(due) {
			s.wakeAt(due)
			continue
		}
		s.wakeAt(s.now.Add(askAfter))
		found, err := lookup.Object(ctx, r.live, s.pool.Namespace, name, &agentsv1beta1.Sandbox{})
		switch {
		case err != nil:
			return err
		case found != nil && belongs(found, s.pool):
			s.memory.unseen.made(name, found.UID, s.now)
			s.unseen[name] = sent{at: s.now, uid: found.UID}
		case entry.mayCome(found, s.now):
		default:
			s.memory.unseen.remove(name)
			delete(s.unseen, name)
		}
	}
	return nil
}

func (r *Reconciler) gatherOrphans(ctx context.Context, s *scope) error {
	var list agentsv1beta1.SandboxList
	err := r.client.List(ctx, &list, client.InNamespace(s.pool.Namespace),
		client.MatchingFields{indexOrphanByHash: keys.NameHash(s.pool.Name)}, lookup.Shared)
	if err != nil {
		return fmt.Errorf("list orphans: %w", err)
	}
	for i := range list.Items {
		s.orphans = append(s.orphans, &list.Items[i])
	}
	s.memory.keepOrphans(s.orphans)
	return nil
}

// gatherTemplate reads the template, from the apiserver when the cache does not have
// it or sees that it goes, and compares the members with it.
func (r *Reconciler) gatherTemplate(ctx context.Context, s *scope) error {
	name := s.pool.Spec.TemplateRef.Name
	template, err := lookup.Staying(ctx, r.client, s.pool.Namespace, name, &extensionsv1beta1.SandboxTemplate{})
	if err == nil && template == nil {
		template, err = lookup.Staying(ctx, r.live, s.pool.Namespace, name, &extensionsv1beta1.SandboxTemplate{})
	}
	if err != nil || template == nil {
		return err
	}
	s.tierLabel, err = lookup.TierLabel(ctx, r.client, r.live, s.pool.Namespace)
	if err != nil {
		return err
	}
	s.template = template
	return r.useTemplate(s)
}

// useTemplate renders what the pool makes, and compares the members with it. A
// template that may not be used here is no error: the status says so.
func (r *Reconciler) useTemplate(s *scope) error {
	var opts blueprint.Options
	opts, s.invalid = blueprint.OptionsFor(r.settings.Current(), s.tierLabel, s.template)
	if !s.usable() {
		return nil
	}
	opts.SafeToEvict = r.settings.SafeToEvict
	model, err := blueprint.ForPool(s.pool, s.template, opts)
	if err != nil {
		return err
	}
	s.model = model
	return s.compare(opts)
}

// belongs says whether a pool controls a Sandbox. A UID alone proves nothing: admission
// keeps tenants from writing references to our kinds, and lets them write any other.
func belongs(sandbox metav1.Object, pool *extensionsv1beta1.SandboxWarmPool) bool {
	owner := relations.Pool(sandbox)
	return owner != nil && owner.UID == pool.UID
}
