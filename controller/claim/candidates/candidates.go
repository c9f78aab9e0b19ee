// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package candidates knows which waiting Sandboxes a claim can have now, and which
// claims wait for one. It is fed by events and holds nothing that the cache could not
// tell again; every answer costs O(log n).
//
// A Sandbox is offered while it belongs to a pool and is usable, its Pod is ready and
// stays, its node is healthy, and nobody withholds it or its form. Of those it offers the
// oldest on the node that has the most, so that what stays is spread over the nodes.
//
// # Decisions
//
// 2026-11-30: What a template no longer describes is withheld by its form and not one by
// one: a pool of two thousand that became stale at once then costs the next claim one look,
// and what is made of an old template later costs none. What is withheld is remembered
// with the state that it was found in (Epoch), so that a judgement that was overtaken by
// the change that would have reversed it does not stand.
package candidates

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Member is a Sandbox of a pool, as far as claims care.
type Member struct {
	// Namespace and Name are where it is found.
	Namespace, Name string
	// UID tells it from others that had its name.
	UID types.UID
	// Version is its resourceVersion.
	Version string
	// Pool is the name of the pool that controls it.
	Pool string
	// Form is the same for Sandboxes that are made alike.
	Form string
	// Created is when it was made.
	Created time.Time
	// Usable is true when nothing in the Sandbox itself speaks against handing it out.
	Usable bool
}

// Pod is the Pod of a Sandbox, as far as claims care.
type Pod struct {
	// UID tells it from others that had its name.
	UID types.UID
	// Ready is true when the Pod is ready now and is not being deleted.
	Ready bool
	// Node is the node that it runs on.
	Node string
}

// Pool names a pool.
type Pool = types.NamespacedName

// Claim names a claim.
type Claim = types.NamespacedName

// Index is the index. Its methods may be called at the same time.
type Index struct {
	wake func(Claim)

	mu      sync.Mutex
	members map[types.UID]*member
	pods    map[types.UID]Pod
	nodes   map[string]*node
	pools   map[Pool]*pool
	waits   map[Claim]Pool
	// epoch counts what was reconsidered.
	epoch int
}

// member is a Member and where it stands.
type member struct {
	Member
	// taken is true while a claim works on it or has it.
	taken bool
	// withheld is true while it must not be handed out, whatever it says itself.
	withheld bool
	// stale is the version of which it is known that it is not the newest.
	stale string
	// postponed is true while it is offered after all others.
	postponed bool
	// offeredAt is where it is offered; the zero place when it is not.
	offeredAt place
}

// node is a node and the Sandboxes whose Pods run on it.
type node struct {
	healthy bool
	// sandboxes are the UIDs of Sandboxes with a Pod there.
	sandboxes map[types.UID]struct{}
}

// New makes an Index. It calls wake for a waiting claim when there is something to
// take; wake must neither block nor call the Index.
func New(wake func(Claim)) *Index {
	return &Index{
		wake:    wake,
		members: map[types.UID]*member{},
		pods:    map[types.UID]Pod{},
		nodes:   map[string]*node{},
		pools:   map[Pool]*pool{},
		waits:   map[Claim]Pool{},
	}
}

// SetMember notes a Sandbox of a pool as the cache has it now.
func (i *Index) SetMember(seen Member) {
	i.mu.Lock()
	defer i.mu.Unlock()
	m, known := i.members[seen.UID]
	if known && m.Pool != seen.Pool {
		i.drop(m)
		known = false
	}
	if !known {
		m = &member{}
		i.members[seen.UID] = m
		i.poolOf(seen).members[seen.UID] = m
	}
	m.withheld = m.withheld && m.Form == seen.Form
	m.postponed = m.postponed && m.Version == seen.Version
	m.Member = seen
	if m.stale != seen.Version {
		m.stale = ""
	}
	i.settle(m)
}

// DropMember forgets a Sandbox that is gone or belongs to no pool any more.
func (i *Index) DropMember(uid types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if m, known := i.members[uid]; known {
		i.drop(m)
	}
}

func (i *Index) drop(m *member) {
	p := i.poolOf(m.Member)
	i.withdraw(m)
	delete(i.members, m.UID)
	delete(p.members, m.UID)
	i.tidy(p)
}

// SetPod notes the Pod of a Sandbox, whether a pool has that Sandbox or not.
func (i *Index) SetPod(sandbox types.UID, seen Pod) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.leaveNode(sandbox)
	i.pods[sandbox] = seen
	if seen.Node != "" {
		i.nodeOf(seen.Node).sandboxes[sandbox] = struct{}{}
	}
	if m, known := i.members[sandbox]; known {
		i.settle(m)
	}
}

// DropPod forgets a Pod that is gone, unless the Sandbox has another one by now.
func (i *Index) DropPod(sandbox, pod types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pods[sandbox].UID != pod {
		return
	}
	i.leaveNode(sandbox)
	delete(i.pods, sandbox)
	if m, known := i.members[sandbox]; known {
		i.settle(m)
	}
}

func (i *Index) leaveNode(sandbox types.UID) {
	name := i.pods[sandbox].Node
	if n, known := i.nodes[name]; known {
		delete(n.sandboxes, sandbox)
		i.tidyNode(name)
	}
}

// SetNode notes whether Sandboxes on a node may be handed out. A node of which
// nothing is known counts as unhealthy.
func (i *Index) SetNode(name string, healthy bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.nodeOf(name)
	if n.healthy == healthy {
		i.tidyNode(name)
		return
	}
	n.healthy = healthy
	for sandbox := range n.sandboxes {
		if m, known := i.members[sandbox]; known {
			i.settle(m)
		}
	}
	i.tidyNode(name)
}

func (i *Index) nodeOf(name string) *node {
	if _, known := i.nodes[name]; !known {
		i.nodes[name] = &node{sandboxes: map[types.UID]struct{}{}}
	}
	return i.nodes[name]
}

// tidyNode forgets a node of which there is nothing to remember.
func (i *Index) tidyNode(name string) {
	if n := i.nodes[name]; !n.healthy && len(n.sandboxes) == 0 {
		delete(i.nodes, name)
	}
}

// settle offers or withdraws a member as what is known of it says.
func (i *Index) settle(m *member) {
	p, pod := i.poolOf(m.Member), i.pods[m.UID]
	n, known := i.nodes[pod.Node]
	_, withheld := p.withheld[m.Form]
	fit := m.Usable && !m.taken && !m.withheld && !withheld && m.stale == "" && pod.Ready && known && n.healthy
	at := place{node: pod.Node, last: m.postponed}
	if fit && m.offeredAt == at {
		return
	}
	i.withdraw(m)
	if fit {
		m.offeredAt = at
		p.offer(m)
		i.call(p)
	}
}

func (i *Index) withdraw(m *member) {
	if m.offeredAt != (place{}) {
		i.poolOf(m.Member).withdraw(m)
		m.offeredAt = place{}
	}
}

// Take gives a claim the best Sandbox of a pool that refuse does not turn down. It is
// nobody else's until Return or DropMember. Without one, the claim waits and is woken
// when there is something to take.
func (i *Index) Take(from Pool, claim Claim, refuse func(Member) bool) (Member, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.pool(from)
	if m := p.best(refuse); m != nil {
		m.taken = true
		i.withdraw(m)
		i.leave(claim)
		return m.Member, true
	}
	i.queue(p, claim)
	return Member{}, false
}

// TakeByUID gives a claim a certain Sandbox, offered or not, unless somebody has it.
func (i *Index) TakeByUID(uid types.UID) (Member, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	m, known := i.members[uid]
	if !known || m.taken {
		return Member{}, false
	}
	m.taken = true
	i.withdraw(m)
	return m.Member, true
}

// Return gives back what Take gave. If the version that was taken proved to be out of
// date, it is offered again only once a newer one is seen.
func (i *Index) Return(taken Member, outdated bool) {
	i.giveBack(taken, func(m *member) {
		if outdated && m.Version == taken.Version {
			m.stale = taken.Version
		}
	})
}

// Postpone gives back what Take gave and the apiserver would not let the claim have. Until
// it changes it is offered after all others: the next claim may be refused as well.
func (i *Index) Postpone(taken Member) {
	i.giveBack(taken, func(m *member) { m.postponed = m.Version == taken.Version })
}

func (i *Index) giveBack(taken Member, mark func(*member)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if m, known := i.members[taken.UID]; known {
		m.taken = false
		mark(m)
		i.settle(m)
	}
}

// Epoch is another one after each Reconsider and ReconsiderPool. What is withheld must have
// been judged by what was read after it was asked.
func (i *Index) Epoch() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.epoch
}

// Withhold offers a Sandbox to nobody until it is reconsidered. The reason was found in an
// epoch; if its pool was reconsidered since, it does nothing.
func (i *Index) Withhold(uid types.UID, epoch int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if m, known := i.members[uid]; known && i.poolOf(m.Member).reconsidered <= epoch {
		m.withheld = true
		i.settle(m)
	}
}

// WithholdForm is Withhold for all that a pool has, or gets, of a form.
func (i *Index) WithholdForm(of Pool, form string, epoch int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p, known := i.pools[of]
	if !known || p.reconsidered > epoch {
		return
	}
	p.withheld[form] = struct{}{}
	for _, m := range p.members {
		if m.Form == form {
			i.settle(m)
		}
	}
}

// Reconsider offers again what is withheld in a namespace, or in all when it is empty,
// and wakes claims that wait there for what is offered.
func (i *Index) Reconsider(namespace string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.epoch++
	for name, p := range i.pools {
		if namespace == "" || name.Namespace == namespace {
			i.reconsider(p)
		}
	}
}

// ReconsiderPool is Reconsider for one pool.
func (i *Index) ReconsiderPool(of Pool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.epoch++
	if p, known := i.pools[of]; known {
		i.reconsider(p)
	}
}

func (i *Index) reconsider(p *pool) {
	p.reconsidered = i.epoch
	clear(p.withheld)
	for _, m := range p.members {
		m.withheld, m.postponed = false, false
		i.settle(m)
	}
	i.call(p)
}

// FormOf is the form of a Sandbox of a pool; empty when it is in none.
func (i *Index) FormOf(uid types.UID) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if m, known := i.members[uid]; known {
		return m.Form
	}
	return ""
}

// Size is the number of Sandboxes that a pool has, and of those that it offers.
func (i *Index) Size(of Pool) (members, offered int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p, known := i.pools[of]
	if !known {
		return 0, 0
	}
	return len(p.members), p.offered
}
