// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// situation is what the decision rests on.
type situation struct {
	now time.Time
	// desired is the number of members that the pool asks for.
	desired  int
	strategy extensionsv1beta1.UpdateStrategyType
	// members are the Sandboxes that the pool controls, as the cache has them.
	members []member
	// unseen is the number of members that this process made and the cache does not
	// show yet.
	unseen int
	// known is false while there is no usable template: nothing is judged or made then.
	known bool
	// grace is how long a member may be not Ready.
	grace time.Duration
	// budget is how many members that were Ready before may be replaced now, besides those
	// that took from it already.
	budget int
	paid   map[types.UID]time.Time
	// cramped is true when a quota leaves no room for more members, denied when a policy
	// refused the last one that was to be made.
	cramped, denied bool
	// claims are what the claims of the pool want, and yields is true while they go
	// first.
	claims demand
	yields bool
}

// plan is what is to be done.
type plan struct {
	// create is the number of members to make, and withheld of those that are missing
	// besides and wait until the claims have theirs.
	create, withheld int
	// most is how many members there may be at once; 0 without a template.
	most int
	// remove are the members to delete.
	remove []member
	// costs are those of them that take from the budget.
	costs sets.Set[types.UID]
	// held are the overdue members that are kept because new ones would fare no better.
	held []member
	// recheck is when the next member becomes overdue; zero for never.
	recheck time.Time
}

// missing is how many members the pool has too few, whether they are made now or later.
func (p *plan) missing() int { return p.create + p.withheld }

// decide is the whole decision: what goes for what it is, what goes because there is
// too much, and how many are missing then.
func decide(s situation) plan {
	d := decision{situation: s, plan: plan{costs: sets.New[types.UID]()}, gone: map[*member]bool{}}
	if s.known {
		d.removeStale()
		d.removeOverdue()
		d.removeUseless()
	}
	d.removeExcess()
	d.fill()
	return d.plan
}

// decision is a plan in the making.
type decision struct {
	situation
	plan

	// gone are the members that the plan removes.
	gone map[*member]bool
}

// each calls f for the members that are there and stay, so far.
func (d *decision) each(f func(*member)) {
	for i := range d.members {
		if m := &d.members[i]; !m.leaving && !d.gone[m] {
			f(m)
		}
	}
}

func (d *decision) count(which func(*member) bool) int {
	n := 0
	d.each(func(m *member) {
		if which(m) {
			n++
		}
	})
	return n
}

func (d *decision) drop(m *member) {
	d.gone[m] = true
	d.remove = append(d.remove, *m)
}

// part is max(1, percent) of a number.
func part(of, percent int) int {
	return max(1, of*percent/100)
}

// surge is how many members a rolling update may have on top.
func (d *decision) surge() int {
	if !d.rolling() || d.desired == 0 || d.count(d.rolls) == 0 {
		return 0
	}
	return part(d.desired, rollingPercent)
}

func (d *decision) rolling() bool {
	return d.known && d.strategy == extensionsv1beta1.UpdateStrategyRollingUpdate
}

// rolls says whether a rolling update replaces a member: it is stale, or of no use, and those
// that are made now are not refused.
func (d *decision) rolls(m *member) bool { return m.stale || m.useless() && !d.denied }

func isReady(m *member) bool { return m.ready }
func isAny(*member) bool     { return true }

func (d *decision) removeStale() {
	switch {
	case d.strategy == extensionsv1beta1.UpdateStrategyRecreate:
		d.each(func(m *member) {
			if m.stale {
				d.drop(m)
			}
		})
	case d.rolling():
		d.roll()
	}
}

// roll removes what it replaces as far as enough stay Ready: first what is of no use, as far as
// the budget has.
func (d *decision) roll() {
	if d.count(d.rolls) == 0 {
		return
	}
	enough := d.desired
	if d.cramped {
		enough = max(1, d.desired-part(d.desired, rollingPercent))
	}
	ready := d.count(isReady)
	for _, m := range d.sorted() {
		switch {
		case !d.rolls(m):
		case !m.ready && m.stale:
			d.drop(m)
		case m.ready && ready > enough && (m.stale || d.afford(m)):
			d.drop(m)
			ready--
		}
	}
}

// afford says whether the budget has one for a member. What was taken from it for one whose
// delete was not answered is enough.
func (d *decision) afford(m *member) bool {
	if _, paid := d.paid[m.sandbox.UID]; !paid {
		if d.budget == 0 {
			return false
		}
		d.budget--
	}
	d.costs.Insert(m.sandbox.UID)
	return true
}

// removeOverdue replaces members that have not been Ready for too long. Of those that
// were once only a few go at a time: if many fail together, it is not their fault.
func (d *decision) removeOverdue() {
	var late []*member
	d.each(func(m *member) {
		switch {
		case m.ready:
		case !m.overdue(d.now, d.grace):
			d.recheckAt(m.since.Add(d.grace))
		case m.held != notHeld && !m.stale:
			d.held = append(d.held, *m)
		default:
			late = append(late, m)
		}
	})
	slices.SortFunc(late, func(a, b *member) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.sandbox.Name, b.sandbox.Name))
	})
	for _, m := range late {
		if !m.wasReady || d.afford(m) {
			d.drop(m)
		}
	}
}

// removeUseless replaces members that no claim gets: today's rules refuse them, or somebody
// changed them. Only a few go at a time, Ready or not, so that the fault of a rule, or of who
// changes them, neither empties the pool nor makes and deletes members in a circle, and none
// while new ones would be refused too. Under RollingUpdate those that are Ready go with the
// stale ones, once others are Ready.
func (d *decision) removeUseless() {
	if d.denied {
		return
	}
	var bad []*member
	d.each(func(m *member) {
		if m.useless() && (!m.ready || !d.rolling()) {
			bad = append(bad, m)
		}
	})
	slices.SortFunc(bad, func(a, b *member) int { return cmp.Compare(a.sandbox.Name, b.sandbox.Name) })
	for _, m := range bad {
		if d.afford(m) {
			d.drop(m)
		}
	}
}

func (d *decision) recheckAt(at time.Time) {
	if d.recheck.IsZero() || at.Before(d.recheck) {
		d.recheck = at
	}
}

// removeExcess removes what is too much: what no claim could have first, then the newest.
// One that is Ready does not go for one that is unseen: that may not be there at all, or
// not become Ready, and can go itself once it is seen.
func (d *decision) removeExcess() {
	seen, wanted := d.count(isAny), d.desired+d.surge()
	excess := seen + d.unseen - wanted
	if excess <= 0 {
		return // most passes end here, without having put anything in order
	}
	for _, m := range d.sorted() {
		if excess > 0 && (!m.ready || seen > wanted) {
			d.drop(m)
			excess--
			seen--
		}
	}
}

// sorted are the members that stay, in the order in which they would be removed. It is the
// same in each pass, whatever the order of the list: a delete whose answer was lost is
// repeated, and takes no other member.
func (d *decision) sorted() []*member {
	var order []*member
	d.each(func(m *member) { order = append(order, m) })
	slices.SortFunc(order, func(a, b *member) int {
		return cmp.Or(
			cmp.Compare(d.worth(a), d.worth(b)),
			b.sandbox.CreationTimestamp.Compare(a.sandbox.CreationTimestamp.Time),
			cmp.Compare(a.sandbox.Name, b.sandbox.Name),
		)
	})
	return order
}

// worth is more for what claims could have, and under RollingUpdate, which promises how many
// are Ready, for what is Ready.
func (d *decision) worth(m *member) int {
	switch {
	case m.ready && !m.useless():
		return 2
	case m.ready && d.rolling():
		return 1
	default:
		return 0
	}
}

// fill counts what is missing. Members on their way out still take their place.
func (d *decision) fill() {
	if !d.known {
		return
	}
	d.most = d.desired + d.surge()
	room := d.most - len(d.members) - d.unseen
	if d.rolling() {
		fresh := d.count(isAny) - d.count(d.rolls) + d.unseen
		room = min(room, d.desired-fresh)
	}
	missing := max(0, room)
	d.create = missing
	if d.yields && !d.claims.none() {
		d.create = min(missing, d.ordered())
	}
	d.withheld = missing - d.create
}

// ordered is how many members must be made for claims that wait for one: those that
// are not served by what is there or on its way.
func (d *decision) ordered() int {
	served := d.unseen + d.count(func(m *member) bool {
		if m.ready {
			return handsOut(m, d.strategy)
		}
		return m.held == notHeld
	})
	return max(0, d.claims.members-served)
}

// handsOut says whether a pool gives a Ready member to a claim.
func handsOut(m *member, strategy extensionsv1beta1.UpdateStrategyType) bool {
	return !m.useless() && (!m.stale || strategy == extensionsv1beta1.UpdateStrategyOnReplenish)
}
