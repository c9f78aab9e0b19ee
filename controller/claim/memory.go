// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim/candidates"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// record is what this process knows of a claim that no object says yet. Only the
// worker that has the claim reads or changes it.
type record struct {
	uid types.UID
	// firstSeen is when this process first worked on the claim.
	firstSeen time.Time
	// readyAt is when this process first published that the claim is Ready.
	readyAt time.Time
	// touched is true once this process sent a write that may have given the claim a
	// Sandbox, whatever became of it.
	touched bool
	// bound is the name of the Sandbox that it has for certain.
	bound string
	// lost is true while it has none, as this process learned before its time was up.
	lost bool
	// askedAt is when this process first could ask the pool for a Sandbox.
	askedAt time.Time
	// underway is true while the claim is counted among those of which nothing was said yet.
	underway bool
	// adopting is the adoption that was sent and not answered.
	adopting *adoption
	// creating is true while a creation was sent and not answered.
	creating bool
	// lostAt is when the answer to a creation was lost last; zero when none was.
	lostAt time.Time
	// goneAt is when a write last learned that the claim is deleted, as the cache will soon
	// say too.
	goneAt time.Time
	// tolerated is what was last told of metadata that stays as it is.
	tolerated string
	// pause is how long the claim was left alone after the last write that met another
	// version than the cache had; 0 since one was carried out.
	pause time.Duration
	// pending is how long the claim was last left alone for a Sandbox in the place of its own;
	// 0 until there was one.
	pending time.Duration
}

// nextPause is how long the claim is left alone after such a write: twice as long each time.
func (r *record) nextPause() time.Duration {
	r.pause = twice(r.pause, firstPause, lastPause)
	return r.pause
}

// nextPending is how long the claim is left alone for such a Sandbox: twice as long each time.
func (r *record) nextPending() time.Duration {
	r.pending = twice(r.pending, firstPending, lastPending)
	return r.pending
}

// twice is a pause after another one: twice as long, and at least the first and at most the last.
func twice(pause, first, last time.Duration) time.Duration { return min(max(first, 2*pause), last) }

// goneFor is how long a claim is left alone after that: an apiserver that does not know
// claims yet gives the same answer.
const goneFor = 10 * time.Second

// goneUntil says until when the claim counts as deleted, whatever the cache shows.
func (r *record) goneUntil() time.Time { return r.goneAt.Add(goneFor) }

// doubts says whether an earlier creation may still be carried out.
func (r *record) doubts(now time.Time) bool {
	return !r.lostAt.IsZero() && now.Before(r.lostAt.Add(patch.DoubtFor))
}

// adoption is an attempt to take one Sandbox of a pool.
type adoption struct {
	candidates.Member
	// judged is the Sandbox whose version locks the write; nil until one was sent.
	judged *agentsv1beta1.Sandbox
	// lostAt is when its answer was lost last; zero when none was.
	lostAt time.Time
}

// sent says whether a write of an earlier pass, of which nobody knows what became, can still
// succeed on a Sandbox as it is now; nil when there is none.
func (a adoption) sent(now *agentsv1beta1.Sandbox) bool {
	return a.judged != nil && now != nil && now.UID == a.judged.UID && now.ResourceVersion == a.judged.ResourceVersion
}

// memory holds the records by the names of their claims.
type memory struct {
	mu      sync.Mutex
	records map[types.NamespacedName]*record
}

// of gives the record of a claim. A claim of the same name that is another one gets a
// record of its own, and the record of the earlier one is given out a last time.
func (m *memory) of(claim types.NamespacedName, uid types.UID, now time.Time) (current, earlier *record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.records[claim]
	if known != nil && known.uid == uid {
		return known, nil
	}
	if m.records == nil {
		m.records = map[types.NamespacedName]*record{}
	}
	m.records[claim] = &record{uid: uid, firstSeen: now}
	return m.records[claim], known
}

// forget drops the record of a claim that is gone and gives it out a last time; nil
// when there is none.
func (m *memory) forget(claim types.NamespacedName) *record {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.records[claim]
	delete(m.records, claim)
	return known
}
