// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package candidates

// Wait lets a claim wait for a pool whatever is offered. It is woken when that is
// reconsidered.
func (i *Index) Wait(of Pool, claim Claim) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.queue(i.pool(of), claim)
}

// Leave ends the wait of a claim, because it has what it wants or wants it no more.
func (i *Index) Leave(claim Claim) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.leave(claim)
}

// Waiting is the number of claims that wait for a pool.
func (i *Index) Waiting(of Pool) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	p, known := i.pools[of]
	if !known {
		return 0
	}
	return p.waiting.Len() + len(p.called)
}

// TotalWaiting is the number of claims that wait.
func (i *Index) TotalWaiting() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.waits)
}

// queue puts a claim among those that wait. One that was called and came too late
// goes to the front again.
func (i *Index) queue(p *pool, claim Claim) {
	if before, waits := i.waits[claim]; waits && before != p.name {
		i.leave(claim)
	}
	i.waits[claim] = p.name
	if _, queued := p.queued[claim]; queued {
		return
	}
	if _, called := p.called[claim]; called {
		delete(p.called, claim)
		p.queued[claim] = p.waiting.PushFront(claim)
		return
	}
	p.queued[claim] = p.waiting.PushBack(claim)
}

func (i *Index) leave(claim Claim) {
	name, waits := i.waits[claim]
	if !waits {
		return
	}
	delete(i.waits, claim)
	p := i.pools[name]
	if element, queued := p.queued[claim]; queued {
		p.waiting.Remove(element)
		delete(p.queued, claim)
	}
	delete(p.called, claim)
	i.call(p)
	i.tidy(p)
}

// call wakes one waiting claim for each member that is offered and that no claim was
// called for yet.
func (i *Index) call(p *pool) {
	for len(p.called) < p.offered && p.waiting.Len() > 0 {
		claim, _ := p.waiting.Remove(p.waiting.Front()).(Claim)
		delete(p.queued, claim)
		p.called[claim] = struct{}{}
		i.wake(claim)
	}
}
