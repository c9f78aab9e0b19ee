// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

// memories are what this process remembers of each pool.
type memories struct {
	mu sync.Mutex
	// pools are the memories by namespace and name, so that an event of a Sandbox concerns
	// those of its namespace only.
	pools map[string]map[string]*memory
}

// of returns the memory of a pool; a pool of that name with another UID begins anew.
func (m *memories) of(key types.NamespacedName, uid types.UID, now time.Time) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pools == nil {
		m.pools = map[string]map[string]*memory{}
	}
	if m.pools[key.Namespace] == nil {
		m.pools[key.Namespace] = map[string]*memory{}
	}
	found, known := m.pools[key.Namespace][key.Name]
	if !known || found.uid != uid {
		found = newMemory(uid, now)
		m.pools[key.Namespace][key.Name] = found
	}
	return found
}

func (m *memories) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pools[key.Namespace], key.Name)
	if len(m.pools[key.Namespace]) == 0 {
		delete(m.pools, key.Namespace)
	}
}

// stocked says whether a pool had something to hand out when it was last looked at.
func (m *memories) stocked(key types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, found := m.pools[key.Namespace][key.Name]
	return found && known.claimable.Load() > 0
}

// seen notes that the cache has shown a Sandbox, whoever controls it now.
func (m *memories) seen(sandbox metav1.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, memory := range m.pools[sandbox.GetNamespace()] {
		memory.unseen.seen(sandbox.GetName(), sandbox.GetUID())
	}
}

// memory is what this process remembers of one pool. Only its pass uses it, but for
// unseen, which watches change, and claimable, which they read.
type memory struct {
	uid types.UID
	// claimable is how many members a claim could have had after the last pass.
	claimable atomic.Int64
	// primed is true once the apiserver was asked what an earlier process made.
	primed bool
	// unseen are members that were made and that the cache does not show yet.
	unseen unseen
	// removing are the UIDs of members that this process has deleted and that the cache
	// shows as if nothing had happened.
	removing sets.Set[types.UID]
	// ready are the UIDs of members that were Ready once.
	ready sets.Set[types.UID]
	// compared are members that were compared with the template.
	compared compared
	// spent is by UID when members that were Ready before were replaced, or last may have
	// been. began is when this process met the pool: what was before is not known.
	spent map[types.UID]time.Time
	began time.Time

	refill   refill
	yielding yielding
	refusal  refusal
	// orphans are the UIDs of those that were told of and are still there.
	orphans sets.Set[types.UID]
	// written is when the status was last written; differs is since when it is not what
	// is stored, zero while it is.
	written, differs time.Time
	// stuck is true while the pool does not progress and an Event has said so.
	stuck bool
}

func newMemory(uid types.UID, now time.Time) *memory {
	return &memory{
		uid: uid, began: now, unseen: unseen{entries: map[string]sent{}},
		spent: map[types.UID]time.Time{}, removing: sets.New[types.UID](), ready: sets.New[types.UID](), orphans: sets.New[types.UID](),
	}
}

// budget is how many members that were Ready before may be replaced now, and when
// there will be more; zero when there are enough.
func (m *memory) budget(now time.Time, grace time.Duration, wereReady int) (left int, more time.Time) {
	if blind := m.began.Add(grace); now.Before(blind) {
		return 0, blind
	}
	maps.DeleteFunc(m.spent, func(_ types.UID, at time.Time) bool { return !now.Before(at.Add(grace)) })
	left = max(0, part(wereReady, overduePercent)-len(m.spent))
	if left == 0 {
		for _, at := range m.spent {
			if again := at.Add(grace); more.IsZero() || again.Before(more) {
				more = again
			}
		}
	}
	return left, more
}

// sent is a create that the cache does not show yet.
type sent struct {
	// at is when it was sent, or last looked for.
	at time.Time
	// doubtful is true when nobody knows whether the apiserver carried it out, so that it is
	// to be repeated.
	doubtful bool
	// lostAt is when the answer to a try was lost last; zero when none was. What refuses a
	// later try says nothing of that one.
	lostAt time.Time
	// uid is what was made, or is to be adopted; empty while it is doubtful. One of the same
	// name may have been made by an earlier try and deleted since, of which the cache tells
	// later still.
	uid types.UID
	// version is that of the orphan which is to be adopted, which locks the write; empty for a
	// create.
	version string
	// flying is true while the request is being answered, and shown is what the cache has
	// shown of the name meanwhile.
	flying bool
	shown  types.UID
}

// mayCome says whether a try whose answer was lost may still be carried out; found is what has
// the name now. What stands in the way of a create may go before that is over.
func (e sent) mayCome(found *agentsv1beta1.Sandbox, now time.Time) bool {
	if e.lostAt.IsZero() || !now.Before(e.lostAt.Add(patch.DoubtFor)) {
		return false
	}
	return e.version == "" || found != nil && found.UID == e.uid && found.ResourceVersion == e.version
}

// unseen are the creates that the cache does not show yet, by name.
type unseen struct {
	mu      sync.Mutex
	entries map[string]sent
}

func (u *unseen) put(name string, s sent) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.entries[name] = s
}

func (u *unseen) remove(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.entries, name)
}

// seen notes that the cache has shown what was made under a name.
func (u *unseen) seen(name string, uid types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	entry, there := u.entries[name]
	switch {
	case !there:
	case entry.flying:
		entry.shown = uid
		u.entries[name] = entry
	case entry.uid == "", entry.uid == uid:
		delete(u.entries, name)
	}
}

// made notes what the apiserver has under a name, unless the cache has shown that meanwhile.
func (u *unseen) made(name string, uid types.UID, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if entry, there := u.entries[name]; !there || entry.shown == uid {
		delete(u.entries, name)
		return
	}
	u.entries[name] = sent{at: now, uid: uid}
}

// send notes that a create is sent.
func (u *unseen) send(name string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.entries[name] = sent{at: now, doubtful: true, flying: true, lostAt: u.entries[name].lostAt}
}

// lost notes that an answer was lost. What the cache has shown of a new name meanwhile can only
// be what the first try made.
func (u *unseen) lost(name string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	entry, there := u.entries[name]
	switch {
	case !there:
	case entry.shown != "" && entry.version == "" && entry.lostAt.IsZero():
		delete(u.entries, name)
	default:
		entry.at, entry.lostAt, entry.flying, entry.shown = now, now, false, ""
		u.entries[name] = entry
	}
}

// failed notes that a create was not carried out, and whether it is to be repeated while a try
// before may still be: that may have met another apiserver.
func (u *unseen) failed(name string, again bool, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	entry := u.entries[name]
	if !entry.mayCome(nil, now) {
		delete(u.entries, name)
		return
	}
	entry.at, entry.doubtful, entry.flying, entry.shown = now, again, false, ""
	u.entries[name] = entry
}

// snapshot copies the entries.
func (u *unseen) snapshot() map[string]sent {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.entries)
}

// compared are the outcomes of comparing members with one template.
type compared struct {
	template string
	outcomes outcomes
}

// outcomes say by the UIDs of members whether they are stale, each for a version.
type outcomes map[types.UID]outcome

type outcome struct {
	version string
	stale   bool
}

// with are the outcomes for a template, of which nothing is known if it is another one.
// Those of members that are gone are forgotten with it.
func (c *compared) with(template string) outcomes {
	if c.template != template || c.outcomes == nil {
		c.template, c.outcomes = template, outcomes{}
	}
	return c.outcomes
}

// of is the outcome for a member.
func (o outcomes) of(sandbox *agentsv1beta1.Sandbox, stale func(*agentsv1beta1.Sandbox) (bool, error)) (bool, error) {
	if known, compared := o[sandbox.UID]; compared && known.version == sandbox.ResourceVersion {
		return known.stale, nil
	}
	found, err := stale(sandbox)
	if err == nil {
		o[sandbox.UID] = outcome{version: sandbox.ResourceVersion, stale: found}
	}
	return found, err
}
