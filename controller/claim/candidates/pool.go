// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package candidates

import (
	"cmp"
	"container/list"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/third_party/forked/golang/btree"
)

// degree is the fan-out of the trees.
const degree = 16

// pool is what one pool offers and who waits for it.
type pool struct {
	name Pool
	// members are all that it has, offered or not.
	members map[types.UID]*member
	// withheld are the forms of which nothing is offered; reconsidered is the epoch since
	// which that was judged.
	withheld     map[string]struct{}
	reconsidered int
	// offered is the number of members that are offered.
	offered int
	// shelves are those that hold something, in the order in which claims are served from
	// them.
	shelves *btree.BTree[*shelf]
	byPlace map[place]*shelf

	// waiting are the claims that wait, the first to come first; called are those that
	// were woken and have not come back yet.
	waiting *list.List
	queued  map[Claim]*list.Element
	called  map[Claim]struct{}
}

// place is where a member is offered.
type place struct {
	// node is the node of its Pod.
	node string
	// last is true when it comes after all others.
	last bool
}

// shelf holds what a pool offers at one place, the oldest first.
type shelf struct {
	place

	members *btree.BTree[*member]
}

func newPool(name Pool, epoch int) *pool {
	return &pool{
		name:         name,
		members:      map[types.UID]*member{},
		withheld:     map[string]struct{}{},
		reconsidered: epoch,
		shelves:      btree.New(degree, sooner),
		byPlace:      map[place]*shelf{},
		waiting:      list.New(),
		queued:       map[Claim]*list.Element{},
		called:       map[Claim]struct{}{},
	}
}

// sooner orders shelves: the fullest comes first, and what is to come last does.
func sooner(a, b *shelf) bool {
	if a.last != b.last {
		return b.last
	}
	return cmp.Or(cmp.Compare(b.members.Len(), a.members.Len()), cmp.Compare(a.node, b.node)) < 0
}

func older(a, b *member) bool {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID)) < 0
}

func (p *pool) offer(m *member) {
	s, known := p.byPlace[m.offeredAt]
	if !known {
		s = &shelf{place: m.offeredAt, members: btree.New(degree, older)}
		p.byPlace[s.place] = s
	}
	p.shelves.Delete(s)
	s.members.ReplaceOrInsert(m)
	p.shelves.ReplaceOrInsert(s)
	p.offered++
}

func (p *pool) withdraw(m *member) {
	s := p.byPlace[m.offeredAt]
	p.shelves.Delete(s)
	s.members.Delete(m)
	if s.members.Len() == 0 {
		delete(p.byPlace, s.place)
	} else {
		p.shelves.ReplaceOrInsert(s)
	}
	p.offered--
}

// best is the first member in order that is not refused; nil when there is none.
func (p *pool) best(refuse func(Member) bool) *member {
	var found *member
	p.shelves.Ascend(func(s *shelf) bool {
		s.members.Ascend(func(m *member) bool {
			if refuse == nil || !refuse(m.Member) {
				found = m
			}
			return found == nil
		})
		return found == nil
	})
	return found
}

// empty says that there is nothing to remember of the pool.
func (p *pool) empty() bool {
	return len(p.members) == 0 && p.waiting.Len() == 0 && len(p.called) == 0
}

func (i *Index) poolOf(m Member) *pool {
	return i.pool(Pool{Namespace: m.Namespace, Name: m.Pool})
}

func (i *Index) pool(name Pool) *pool {
	if _, known := i.pools[name]; !known {
		i.pools[name] = newPool(name, i.epoch)
	}
	return i.pools[name]
}

func (i *Index) tidy(p *pool) {
	if p.empty() {
		delete(i.pools, p.name)
	}
}
