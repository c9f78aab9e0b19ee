// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fairqueue

import (
	"maps"
	"slices"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
)

// leastShare is how many requests are taken for one of the lowest priority.
const leastShare = 8

// turns holds the requests of each namespace in a line of its own, for each priority.
// The work queue around it keeps out duplicates.
type turns struct {
	// mu is held besides the lock of the work queue, which is not held while somebody
	// says what priority a request is to have.
	mu sync.Mutex
	// wanted are the priorities of requests that are yet to come, or to come again.
	wanted map[ctrl.Request]int
	// places are those of the requests that stand in lines.
	places map[ctrl.Request]*place
	// ranks are the lines of each priority that has any.
	ranks map[int]*rank
	// taken are the priorities of requests that were taken a moment ago.
	taken map[ctrl.Request]int
	// since is how many were taken since one of the lowest priority was.
	since int
}

// place is that of a request in its line. It is empty once the request has moved on to a
// higher priority.
type place struct {
	request  ctrl.Request
	priority int
	empty    bool
}

// rank are the lines of the namespaces at one priority.
type rank struct {
	lines map[string][]*place
	// next are the namespaces that have lines, in the order of their turns.
	next []string
}

func newTurns() *turns {
	return &turns{
		wanted: map[ctrl.Request]int{}, places: map[ctrl.Request]*place{}, ranks: map[int]*rank{}, taken: map[ctrl.Request]int{},
	}
}

// want says what priority a request is to have when it comes. It has the highest of those
// that were said since it was taken last.
func (t *turns) want(request ctrl.Request, priority int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if said, known := t.wanted[request]; !known || said < priority {
		t.wanted[request] = priority
	}
}

// served is the priority of a request that was taken.
func (t *turns) served(request ctrl.Request) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	priority := t.taken[request]
	delete(t.taken, request)
	return priority
}

// Touch leaves a request that comes again where it is, unless it has a higher priority
// now.
func (t *turns) Touch(request ctrl.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, stands := t.places[request]
	priority, known := t.wanted[request]
	delete(t.wanted, request)
	if stands && known && priority > was.priority {
		was.empty = true
		t.queue(request, priority)
	}
}

// Push puts a request at the end of the line of its namespace.
func (t *turns) Push(request ctrl.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	priority := t.wanted[request]
	delete(t.wanted, request)
	t.queue(request, priority)
}

func (t *turns) queue(request ctrl.Request, priority int) {
	if t.ranks[priority] == nil {
		t.ranks[priority] = &rank{lines: map[string][]*place{}}
	}
	t.places[request] = &place{request: request, priority: priority}
	t.ranks[priority].join(t.places[request])
}

// Len is the number of requests.
func (t *turns) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.places)
}

// Pop takes the first request of the namespace whose turn it is.
func (t *turns) Pop() ctrl.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since++
	for {
		priority := t.nextPriority()
		first := t.ranks[priority].leave()
		if len(t.ranks[priority].next) == 0 {
			delete(t.ranks, priority)
		}
		if first != nil {
			delete(t.places, first.request)
			t.taken[first.request] = priority
			return first.request
		}
	}
}

// nextPriority is the highest that there is, and now and then the lowest.
func (t *turns) nextPriority() int {
	priorities := slices.Sorted(maps.Keys(t.ranks))
	if t.since < leastShare && len(priorities) > 1 {
		return priorities[len(priorities)-1]
	}
	t.since = 0
	return priorities[0]
}

// join puts a request at the end of the line of its namespace.
func (r *rank) join(p *place) {
	namespace := p.request.Namespace
	if _, waiting := r.lines[namespace]; !waiting {
		r.next = append(r.next, namespace)
	}
	r.lines[namespace] = append(r.lines[namespace], p)
}

// leave takes the first of the line of the namespace whose turn it is; nil when all of
// that line have moved on.
func (r *rank) leave() *place {
	namespace := r.next[0]
	r.next = r.next[1:]
	line := r.lines[namespace]
	for len(line) > 0 && line[0].empty {
		line = line[1:]
	}
	if len(line) < 2 {
		delete(r.lines, namespace)
	} else {
		r.lines[namespace] = line[1:]
		r.next = append(r.next, namespace)
	}
	if len(line) == 0 {
		return nil
	}
	return line[0]
}
