// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// decideCase is a situation and what has to be decided.
type decideCase struct {
	situation situation
	// create is the number; -1 means that there is no template.
	create  int
	remove  []string
	held    int
	recheck time.Time
}

func (tc decideCase) check(t *testing.T) {
	t.Helper()
	tc.situation.now, tc.situation.grace, tc.situation.known = noon(), grace, tc.create >= 0
	got := decide(tc.situation)
	var removed []string
	for _, m := range got.remove {
		removed = append(removed, m.sandbox.Name)
	}
	if diff := cmp.Diff(tc.remove, removed, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if got.create != max(0, tc.create) || len(got.held) != tc.held {
		t.Errorf("decide() creates %d and holds %d, want %d and %d", got.create, len(got.held), max(0, tc.create), tc.held)
	}
	if tc.create >= 0 && !got.recheck.Equal(tc.recheck) {
		t.Errorf("decide() rechecks at %s, want %s", got.recheck, tc.recheck)
	}
}

func many(count int, edits ...edit) []member {
	var members []member
	for i := range count {
		members = append(members, makeMember(fmt.Sprintf("m%02d", i), edits...))
	}
	return members
}

func TestDecide(t *testing.T) {
	const (
		recreate  = extensionsv1beta1.UpdateStrategyRecreate
		replenish = extensionsv1beta1.UpdateStrategyOnReplenish
	)
	cases := map[string]decideCase{
		"an empty pool is filled":                  {situation: situation{desired: 3}, create: 3},
		"what is unseen counts":                    {situation: situation{desired: 3, unseen: 2}, create: 1},
		"what is leaving still takes its place":    {situation: situation{desired: 2, members: []member{makeMember("a", leaving)}}, create: 1},
		"a full pool is left alone":                {situation: situation{desired: 2, members: many(2)}},
		"a pool of none removes all":               {situation: situation{desired: 0, members: many(1)}, remove: []string{"m00"}},
		"for one that is unseen no Ready one goes": {situation: situation{desired: 2, members: many(2), unseen: 1}},
		"but one that is not Ready does": {
			situation: situation{desired: 2, unseen: 1, members: []member{makeMember("a"), makeMember("b", starting(0))}},
			remove:    []string{"b"}, recheck: noon().Add(grace),
		},
		"more unseen than there are members removes no more": {situation: situation{desired: 0, members: many(1), unseen: 4}, remove: []string{"m00"}},
		"too many: what is not Ready goes first, then the newest": {
			situation: situation{desired: 1, members: []member{
				makeMember("old", aged(3*time.Hour)), makeMember("new", aged(time.Minute)), makeMember("starting", starting(time.Minute)),
			}},
			remove: []string{"starting", "new"}, recheck: noon().Add(grace - time.Minute),
		},
		"stale members stay until they are used": {situation: situation{desired: 2, strategy: replenish, members: many(2, stale)}},
		"stale members go at once under Recreate, and are made again when they are gone": {
			situation: situation{desired: 2, strategy: recreate, members: many(2, stale)}, remove: []string{"m00", "m01"},
		},
		"without a template nothing is judged or made": {
			situation: situation{desired: 3, strategy: recreate, members: many(2, stale, failedFor(time.Hour))}, create: -1,
		},
		"without a template what is too much still goes": {
			situation: situation{desired: 1, members: many(2)}, create: -1, remove: []string{"m00"},
		},
		"a member that never became Ready is replaced": {
			situation: situation{desired: 1, members: []member{makeMember("a", starting(grace))}}, remove: []string{"a"},
		},
		"a member within its grace is looked at when that ends": {
			situation: situation{desired: 1, members: []member{makeMember("a", failedFor(time.Minute))}}, recheck: noon().Add(grace - time.Minute),
		},
		"an old member that failed a moment ago has its grace": {
			situation: situation{desired: 1, members: []member{makeMember("a", aged(9*time.Hour), failedFor(time.Second))}},
			recheck:   noon().Add(grace - time.Second),
		},
		"of those that were Ready only as many go as the budget has, the longest first": {
			situation: situation{desired: 3, budget: 1, members: []member{
				makeMember("b", failedFor(time.Hour)), makeMember("a", failedFor(2*time.Hour)), makeMember("c", failedFor(time.Hour)),
			}},
			remove: []string{"a"},
		},
		"the budget does not bind those that never were Ready": {
			situation: situation{desired: 2, members: many(2, starting(time.Hour))}, remove: []string{"m00", "m01"},
		},
		"of those that today's rules refuse only as many go as the budget has": {
			situation: situation{desired: 3, budget: 2, members: many(3, refused)}, remove: []string{"m00", "m01"},
		},
		"whether they were Ready or not": {
			situation: situation{desired: 2, budget: 1, members: many(2, refused, starting(0))}, remove: []string{"m00"}, recheck: noon().Add(grace),
		},
		"and together with those that ceased to be Ready": {
			situation: situation{desired: 2, budget: 1, members: []member{makeMember("a", refused), makeMember("b", failedFor(time.Hour))}},
			remove:    []string{"b"},
		},
		"none of them goes while new ones would be refused too": {
			situation: situation{desired: 2, budget: 2, denied: true, members: many(2, refused)},
		},
		"what somebody changed so that no claim can have it goes at the same pace": {
			situation: situation{desired: 3, budget: 2, members: many(3, unfit)}, remove: []string{"m00", "m01"},
		},
		"what rules refuse and somebody changed costs once": {
			situation: situation{desired: 2, budget: 2, members: many(2, unfit, refused)}, remove: []string{"m00", "m01"},
		},
		"none of that goes while new ones would be refused": {
			situation: situation{desired: 2, budget: 2, denied: true, members: many(2, unfit)},
		},
		"nor without a budget, as after a start": {situation: situation{desired: 2, members: many(2, refused)}},
		"what today's rules refuse is the first that is too much": {
			situation: situation{desired: 1, members: []member{makeMember("new"), makeMember("old", aged(time.Hour), refused)}}, remove: []string{"old"},
		},
		"what waits for a node is held": {
			situation: situation{desired: 2, members: many(2, starting(time.Hour), waitsForNode)}, held: 2,
		},
		"what waits for a node goes when the template has changed": {
			situation: situation{desired: 1, strategy: replenish, members: many(1, starting(time.Hour), waitsForNode, stale)},
			remove:    []string{"m00"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { tc.check(t) })
	}
}

func TestDecideRollingUpdate(t *testing.T) {
	const rolling = extensionsv1beta1.UpdateStrategyRollingUpdate
	cases := map[string]decideCase{
		"a rolling update begins by surging":    {situation: situation{desired: 10, strategy: rolling, members: many(10, stale)}, create: 2},
		"a rolling update of one surges by one": {situation: situation{desired: 1, strategy: rolling, members: many(1, stale)}, create: 1},
		"a rolling update waits for the surge to be Ready": {
			situation: situation{desired: 10, strategy: rolling, members: append(many(10, stale), makeMember("x", starting(0)), makeMember("y", starting(0)))},
			recheck:   noon().Add(grace),
		},
		"a rolling update removes as many stale ones as are too many Ready": {
			situation: situation{desired: 5, strategy: rolling, members: append(many(5, stale), makeMember("x"))}, remove: []string{"m00"},
		},
		"a rolling update removes stale ones that are not Ready at once": {
			situation: situation{desired: 2, strategy: rolling, members: []member{makeMember("a", stale), makeMember("b", stale, starting(0))}},
			create:    1, remove: []string{"b"},
		},
		"a rolling update makes no more fresh ones than are asked for": {
			situation: situation{desired: 2, strategy: rolling, unseen: 1, members: []member{makeMember("a", stale), makeMember("x")}},
		},
		"a rolling update without room goes below by a fifth": {
			situation: situation{desired: 5, strategy: rolling, cramped: true, members: many(5, stale)}, create: 1, remove: []string{"m00"},
		},
		"a rolling update without room never goes to none": {
			situation: situation{desired: 1, strategy: rolling, cramped: true, members: many(1, stale)}, create: 1,
		},
		"a rolling update makes another before the only member goes that today's rules refuse": {
			situation: situation{desired: 1, strategy: rolling, budget: 1, members: many(1, refused)}, create: 1,
		},
		"and removes it once the other is Ready": {
			situation: situation{desired: 1, strategy: rolling, budget: 1, members: []member{makeMember("a", refused), makeMember("x")}},
			remove:    []string{"a"},
		},
		"or with the next budget": {
			situation: situation{desired: 1, strategy: rolling, members: []member{makeMember("a", refused), makeMember("x")}},
		},
		"a rolling update makes none for those while new ones would be refused too": {
			situation: situation{desired: 1, strategy: rolling, budget: 1, denied: true, members: many(1, refused)},
		},
		"a rolling update removes those that are not Ready at once, as far as the budget has": {
			situation: situation{desired: 2, strategy: rolling, budget: 1, members: many(2, refused, starting(0))},
			create:    1, remove: []string{"m00"}, recheck: noon().Add(grace),
		},
		"a rolling update of a pool of none removes all": {
			situation: situation{desired: 0, strategy: rolling, members: many(2, stale)}, remove: []string{"m00", "m01"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { tc.check(t) })
	}
}

// Whatever there is, a rolling update takes no more Ready members away than it may, and no
// more is made than there is room for.
func TestRollingUpdateKeepsToTheFloorInAnySituation(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		s := anySituation(random)
		before, floor := countThoseReady(s.members), s.desired
		if s.cramped && s.desired > 0 {
			floor = max(1, s.desired-part(s.desired, rollingPercent))
		}
		p := decide(s)
		after := countThoseReady(afterwards(s.members, plan{remove: p.remove}, ""))
		if after < min(before, floor) {
			t.Fatalf("of %d Ready members %d are left, want %d at least, in %+v", before, after, min(before, floor), s)
		}
		surge := part(s.desired, rollingPercent)
		if p.create > 0 && len(s.members)+s.unseen+p.create > s.desired+surge {
			t.Fatalf("%d are made beside %d and %d that are unseen, in a pool of %d", p.create, len(s.members), s.unseen, s.desired)
		}
	}
}

// anySituation is one of a rolling update.
func anySituation(random *rand.Rand) situation {
	s := situation{
		now: noon(), grace: grace, known: true, strategy: extensionsv1beta1.UpdateStrategyRollingUpdate,
		desired: random.IntN(12), unseen: max(0, random.IntN(6)-3), budget: random.IntN(3),
		cramped: random.IntN(3) == 0, denied: random.IntN(3) == 0,
	}
	spoils := []edit{stale, refused, unfit, leaving, starting(0), starting(time.Hour), failedFor(time.Hour), waitsForNode, func(*member) {}, func(*member) {}}
	for i := range random.IntN(16) {
		m := makeMember(fmt.Sprintf("m%02d", i), aged(time.Duration(random.IntN(100))*time.Minute))
		for range 2 {
			spoils[random.IntN(len(spoils))](&m)
		}
		s.members = append(s.members, m)
	}
	return s
}

// countThoseReady counts as readyReplicas does.
func countThoseReady(members []member) int {
	ready := 0
	for _, m := range members {
		if m.ready && !m.leaving {
			ready++
		}
	}
	return ready
}

func TestRollingUpdateEndsAndNeverHasTooFewReady(t *testing.T) {
	for name, spoil := range map[string]edit{"stale": stale, "refused": refused, "unfit": unfit, "both": func(m *member) { stale(m); refused(m) }} {
		t.Run(name, func(t *testing.T) {
			for desired := range 31 {
				rolledOut(t, desired, spoil)
			}
		})
	}
}

// rolledOut replaces all members of a pool.
func rolledOut(t *testing.T, desired int, spoil edit) {
	t.Helper()
	members := many(desired, spoil)
	for round := 0; ; round++ {
		if round > 4*desired+4 {
			t.Fatalf("a pool of %d is not updated after %d rounds", desired, round)
		}
		p := decide(situation{
			now: noon(), desired: desired, members: members, known: true, grace: grace, budget: part(desired, overduePercent),
			strategy: extensionsv1beta1.UpdateStrategyRollingUpdate,
		})
		if p.create == 0 && len(p.remove) == 0 {
			break
		}
		members = afterwards(members, p, fmt.Sprintf("new%d-", round))
		if len(members) > desired+part(desired, rollingPercent) || len(members) < desired {
			t.Fatalf("a pool of %d has %d members in round %d", desired, len(members), round)
		}
	}
	for _, m := range members {
		if m.stale || m.useless() || len(members) != desired {
			t.Fatalf("a pool of %d ends with %d members, stale: %t, of no use: %t", desired, len(members), m.stale, m.useless())
		}
	}
}

// afterwards are the members when a plan has been carried out and all are Ready.
func afterwards(members []member, p plan, prefix string) []member {
	gone := map[string]bool{}
	for _, m := range p.remove {
		gone[m.sandbox.Name] = true
	}
	var next []member
	for _, m := range members {
		if !gone[m.sandbox.Name] {
			next = append(next, m)
		}
	}
	for i := range p.create {
		next = append(next, makeMember(fmt.Sprint(prefix, i)))
	}
	return next
}
