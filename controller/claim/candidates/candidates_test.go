// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package candidates_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim/candidates"
)

func noon() time.Time { return time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC) }

var poolA = candidates.Pool{Namespace: "team-a", Name: "pool"}

func claimNamed(name string) candidates.Claim {
	return candidates.Claim{Namespace: "team-a", Name: name}
}

// bench is an index and the claims that it woke.
type bench struct {
	*candidates.Index
	woken []string
}

func newBench() *bench {
	b := &bench{}
	b.Index = candidates.New(func(c candidates.Claim) { b.woken = append(b.woken, c.Name) })
	for _, node := range []string{"n1", "n2"} {
		b.SetNode(node, true)
	}
	return b
}

func member(name string, age time.Duration) candidates.Member {
	return candidates.Member{
		Namespace: "team-a", Name: name, UID: types.UID(name), Version: "1", Pool: "pool", Created: noon().Add(-age), Usable: true,
	}
}

// ready makes a member whose Pod is ready on a node.
func (b *bench) ready(name, node string, age time.Duration) {
	b.SetPod(types.UID(name), candidates.Pod{UID: types.UID("pod-" + name), Ready: true, Node: node})
	b.SetMember(member(name, age))
}

// postpone lets a claim take a member in vain.
func (b *bench) postpone(name string) {
	taken, _ := b.TakeByUID(types.UID(name))
	b.Postpone(taken)
}

// takeAll takes for one claim after another until there is nothing left.
func (b *bench) takeAll() string {
	var names []string
	for i := 0; ; i++ {
		taken, found := b.Take(poolA, claimNamed(fmt.Sprintf("taker-%d", i)), nil)
		if !found {
			return strings.Join(names, " ")
		}
		names = append(names, taken.Name)
	}
}

func TestWhatIsOfferedAndInWhichOrder(t *testing.T) {
	cases := map[string]struct {
		events func(*bench)
		want   string
	}{
		"the oldest goes first": {
			func(b *bench) {
				b.ready("a", "n1", 1*time.Hour)
				b.ready("b", "n1", 2*time.Hour)
				b.ready("c", "n1", 3*time.Hour)
			}, "c b a",
		},
		"of equal age the first by name": {
			func(b *bench) { b.ready("b", "n1", time.Hour); b.ready("a", "n1", time.Hour) }, "a b",
		},
		"the node that has the most gives first, so that the rest is spread": {
			func(b *bench) {
				b.ready("old", "n1", 9*time.Hour)
				b.ready("x", "n2", 2*time.Hour)
				b.ready("y", "n2", 3*time.Hour)
				b.ready("z", "n2", time.Hour)
			}, "y x old z",
		},
		"one whose Pod is not ready is not offered": {
			func(b *bench) {
				b.ready("a", "n1", time.Hour)
				b.SetPod("a", candidates.Pod{UID: "pod-a", Node: "n1"})
			}, "",
		},
		"one whose Pod is not known is not offered": {func(b *bench) { b.SetMember(member("a", time.Hour)) }, ""},
		"one whose Pod is gone is not offered": {
			func(b *bench) { b.ready("a", "n1", time.Hour); b.DropPod("a", "pod-a") }, "",
		},
		"the end of an earlier Pod says nothing of the one there is": {
			func(b *bench) { b.ready("a", "n1", time.Hour); b.DropPod("a", "pod-before") }, "a",
		},
		"one that moved to another node counts there": {
			func(b *bench) {
				b.ready("a", "n1", time.Hour)
				b.SetPod("a", candidates.Pod{UID: "pod-2", Ready: true, Node: "n2"})
				b.SetNode("n1", false)
			}, "a",
		},
		"one on a node that is unhealthy is not offered": {
			func(b *bench) { b.ready("a", "n1", time.Hour); b.ready("b", "n2", time.Hour); b.SetNode("n1", false) }, "b",
		},
		"one on a node of which nothing is known is not offered": {func(b *bench) { b.ready("a", "n3", time.Hour) }, ""},
		"a node that recovers offers again": {
			func(b *bench) { b.ready("a", "n1", time.Hour); b.SetNode("n1", false); b.SetNode("n1", true) }, "a",
		},
		"one that became unusable is not offered": {
			func(b *bench) {
				b.ready("a", "n1", time.Hour)
				m := member("a", time.Hour)
				m.Usable = false
				b.SetMember(m)
			}, "",
		},
		"one that left its pool is not offered": {func(b *bench) { b.ready("a", "n1", time.Hour); b.DropMember("a") }, ""},
		"one that went to another pool is offered there only": {
			func(b *bench) {
				b.ready("a", "n1", time.Hour)
				m := member("a", time.Hour)
				m.Pool = "other"
				b.SetMember(m)
			}, "",
		},
		"the same event again changes nothing": {
			func(b *bench) { b.ready("a", "n1", time.Hour); b.ready("a", "n1", time.Hour) }, "a",
		},
		"what comes before its Pod and its node is offered once they are known": {
			func(b *bench) {
				b.SetMember(member("a", time.Hour))
				b.SetPod("a", candidates.Pod{UID: "pod-a", Ready: true, Node: "n3"})
				b.SetNode("n3", true)
			}, "a",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			tc.events(b)
			if got := b.takeAll(); got != tc.want {
				t.Errorf("taken in the order %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatAClaimWasNotLetHaveIsOfferedLast(t *testing.T) {
	cases := map[string]struct {
		events func(*bench)
		want   string
	}{
		"after all others": {
			func(b *bench) {
				b.ready("a", "n1", 3*time.Hour)
				b.ready("b", "n1", 2*time.Hour)
				b.ready("c", "n2", time.Hour)
				b.postpone("a")
			}, "b c a",
		},
		"until it changes": {
			func(b *bench) {
				b.ready("a", "n1", 3*time.Hour)
				b.ready("b", "n1", 2*time.Hour)
				b.postpone("a")
				m := member("a", 3*time.Hour)
				m.Version = "2"
				b.SetMember(m)
			}, "a b",
		},
		"or is reconsidered": {
			func(b *bench) {
				b.ready("a", "n1", 3*time.Hour)
				b.ready("b", "n1", 2*time.Hour)
				b.postpone("a")
				b.ReconsiderPool(poolA)
			}, "a b",
		},
		"one that changed meanwhile is not put off": {
			func(b *bench) {
				b.ready("a", "n1", 3*time.Hour)
				b.ready("b", "n1", 2*time.Hour)
				taken, _ := b.TakeByUID("a")
				m := member("a", 3*time.Hour)
				m.Version = "2"
				b.SetMember(m)
				b.Postpone(taken)
			}, "a b",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			tc.events(b)
			if got := b.takeAll(); got != tc.want {
				t.Errorf("taken in the order %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatIsTakenIsNobodyElses(t *testing.T) {
	cases := map[string]struct {
		after func(*bench, candidates.Member)
		want  string
	}{
		"an event that came late does not offer it again":        {func(b *bench, m candidates.Member) { b.SetMember(m) }, ""},
		"nor does a newer one, as long as it is taken":           {func(b *bench, m candidates.Member) { m.Version = "2"; b.SetMember(m) }, ""},
		"what is given back is offered again":                    {func(b *bench, m candidates.Member) { b.Return(m, false) }, "a"},
		"what proved out of date is not":                         {func(b *bench, m candidates.Member) { b.Return(m, true) }, ""},
		"what proved out of date stays so when it is seen again": {func(b *bench, m candidates.Member) { b.Return(m, true); b.SetMember(m) }, ""},
		"until a newer version is seen": {
			func(b *bench, m candidates.Member) { b.Return(m, true); m.Version = "2"; b.SetMember(m) }, "a",
		},
		"which may have been seen meanwhile": {
			func(b *bench, m candidates.Member) {
				newer := m
				newer.Version = "2"
				b.SetMember(newer)
				b.Return(m, true)
			}, "a",
		},
		"what is gone cannot be given back": {func(b *bench, m candidates.Member) { b.DropMember(m.UID); b.Return(m, false) }, ""},
		"it cannot be had by its name either": {
			func(b *bench, m candidates.Member) {
				if _, found := b.TakeByUID(m.UID); found {
					b.Return(m, false)
				}
			}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.ready("a", "n1", time.Hour)
			taken, _ := b.Take(poolA, claimNamed("first"), nil)
			tc.after(b, taken)
			if got := b.takeAll(); got != tc.want {
				t.Errorf("then taken: %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatIsWithheldIsOfferedOnceItIsReconsidered(t *testing.T) {
	cases := map[string]struct {
		after func(*bench)
		want  string
	}{
		"it is offered to nobody":             {func(*bench) {}, "b"},
		"nor when it is seen again":           {func(b *bench) { b.ready("a", "n1", 2*time.Hour) }, "b"},
		"nor when its Pod is ready anew":      {func(b *bench) { b.SetPod("a", candidates.Pod{UID: "pod-2", Ready: true, Node: "n2"}) }, "b"},
		"until all are reconsidered":          {func(b *bench) { b.Reconsider("") }, "a b"},
		"or those of its namespace":           {func(b *bench) { b.Reconsider("team-a") }, "a b"},
		"those of another change nothing":     {func(b *bench) { b.Reconsider("team-b") }, "b"},
		"it may be withheld again":            {func(b *bench) { b.Reconsider(""); b.Withhold("a", b.Epoch()) }, "b"},
		"but not for what was found before":   {func(b *bench) { e := b.Epoch(); b.Reconsider(""); b.Withhold("a", e) }, "a b"},
		"what is unfit itself is not offered": {func(b *bench) { b.SetNode("n1", false); b.Reconsider("") }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.ready("a", "n1", 2*time.Hour)
			b.ready("b", "n1", time.Hour)
			b.Withhold("a", b.Epoch())
			tc.after(b)
			if got := b.takeAll(); got != tc.want {
				t.Errorf("then taken: %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAFormThatIsWithheldIsOfferedOnceItsPoolIsReconsidered(t *testing.T) {
	of := func(form, name string, age time.Duration) candidates.Member {
		m := member(name, age)
		m.Form = form
		return m
	}
	other := candidates.Pool{Namespace: "team-a", Name: "other"}
	cases := map[string]struct {
		after func(*bench)
		want  string
	}{
		"none of the form is offered":             {func(*bench) {}, "c"},
		"nor one that comes later":                {func(b *bench) { b.ready("d", "n1", time.Hour); b.SetMember(of("old", "d", time.Hour)) }, "c"},
		"one that becomes another form is":        {func(b *bench) { b.SetMember(of("new", "a", 3*time.Hour)) }, "a c"},
		"all are when their pool is reconsidered": {func(b *bench) { b.ReconsiderPool(poolA) }, "a b c"},
		"or their namespace":                      {func(b *bench) { b.Reconsider("team-a") }, "a b c"},
		"another pool changes nothing":            {func(b *bench) { b.ReconsiderPool(other) }, "c"},
		"what was found before does not count":    {func(b *bench) { e := b.Epoch(); b.ReconsiderPool(poolA); b.WithholdForm(poolA, "old", e) }, "a b c"},
		"what was found before another pool was reconsidered does": {
			func(b *bench) { e := b.Epoch(); b.ReconsiderPool(other); b.WithholdForm(poolA, "new", e) }, "",
		},
		"a pool of which nothing is known has nothing to withhold": {func(b *bench) { b.WithholdForm(other, "new", b.Epoch()) }, "c"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			for _, m := range []candidates.Member{of("old", "a", 3*time.Hour), of("old", "b", 2*time.Hour), of("new", "c", time.Hour)} {
				b.SetPod(m.UID, candidates.Pod{UID: "pod-" + m.UID, Ready: true, Node: "n1"})
				b.SetMember(m)
			}
			b.WithholdForm(poolA, "old", b.Epoch())
			tc.after(b)
			if got := b.takeAll(); got != tc.want {
				t.Errorf("then taken: %q, want %q", got, tc.want)
			}
		})
	}
}

// A claim may wait although something is offered: nobody could say whether it may have it.
func TestClaimsThatWaitAreWokenWhenAllIsReconsidered(t *testing.T) {
	b := newBench()
	b.ready("a", "n1", time.Hour)
	for _, name := range []string{"1", "2"} {
		b.Take(poolA, claimNamed(name), func(candidates.Member) bool { return true })
	}
	for _, step := range []struct {
		namespace string
		want      []string
	}{{"team-b", nil}, {"team-a", []string{"1"}}} {
		b.Reconsider(step.namespace)
		if diff := gocmp.Diff(step.want, b.woken); diff != "" {
			t.Errorf("woken after namespace %q (-want +got):\n%s", step.namespace, diff)
		}
	}
}

func TestARefusedSandboxStaysForOthers(t *testing.T) {
	b := newBench()
	b.ready("a", "n1", 2*time.Hour)
	b.ready("b", "n1", time.Hour)
	taken, found := b.Take(poolA, claimNamed("picky"), func(m candidates.Member) bool { return m.Name == "a" })
	if !found || taken.Name != "b" {
		t.Errorf("Take() = %q, %t, want b", taken.Name, found)
	}
	if got := b.takeAll(); got != "a" {
		t.Errorf("then taken: %q, want a", got)
	}
}

func TestWaitingClaimsAreWokenByEvents(t *testing.T) {
	wait := func(b *bench, names ...string) {
		for _, name := range names {
			b.Take(poolA, claimNamed(name), nil)
		}
	}
	cases := map[string]struct {
		events func(*bench)
		want   string
	}{
		"one Sandbox wakes the claim that has waited longest": {
			func(b *bench) { wait(b, "1", "2"); b.ready("a", "n1", time.Hour) }, "1",
		},
		"each Sandbox wakes one": {
			func(b *bench) { wait(b, "1", "2", "3"); b.ready("a", "n1", time.Hour); b.ready("b", "n1", time.Hour) }, "1 2",
		},
		"a claim that waits is not put at the end when it asks again": {
			func(b *bench) { wait(b, "1", "2", "1"); b.ready("a", "n1", time.Hour) }, "1",
		},
		"one that came too late is woken first for the next": {
			func(b *bench) {
				wait(b, "1", "2")
				b.ready("a", "n1", time.Hour)
				b.Take(poolA, claimNamed("quick"), nil)
				wait(b, "1")
				b.ready("b", "n1", time.Hour)
			}, "1 1",
		},
		"one that gives up after it was woken leaves its turn to the next": {
			func(b *bench) { wait(b, "1", "2"); b.ready("a", "n1", time.Hour); b.Leave(claimNamed("1")) }, "1 2",
		},
		"one that gave up before is not woken": {
			func(b *bench) { wait(b, "1", "2"); b.Leave(claimNamed("1")); b.ready("a", "n1", time.Hour) }, "2",
		},
		"a Sandbox that is given back wakes": {
			func(b *bench) {
				b.ready("a", "n1", time.Hour)
				m, _ := b.Take(poolA, claimNamed("0"), nil)
				wait(b, "1")
				b.Return(m, false)
			}, "1",
		},
		"a node that recovers wakes": {
			func(b *bench) {
				b.ready("a", "n1", time.Hour)
				b.SetNode("n1", false)
				wait(b, "1")
				b.SetNode("n1", true)
			}, "1",
		},
		"a Sandbox of another pool wakes nobody here": {
			func(b *bench) {
				wait(b, "1")
				m := member("a", time.Hour)
				m.Pool = "other"
				b.SetPod("a", candidates.Pod{Ready: true, Node: "n1"})
				b.SetMember(m)
			}, "",
		},
		"a claim that turned to another pool waits there only": {
			func(b *bench) {
				wait(b, "1")
				b.Take(candidates.Pool{Namespace: "team-a", Name: "other"}, claimNamed("1"), nil)
				b.ready("a", "n1", time.Hour)
			}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			tc.events(b)
			if diff := gocmp.Diff(strings.Fields(tc.want), b.woken, emptyIsNil()); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

func emptyIsNil() gocmp.Option {
	return gocmp.Transformer("emptyIsNil", func(list []string) string { return strings.Join(list, " ") })
}

// world is the plain truth to which an index is compared.
type world struct {
	members map[types.UID]candidates.Member
	pods    map[types.UID]candidates.Pod
	healthy map[string]bool
	taken   map[types.UID]bool
	// withheld are forms.
	withheld map[string]bool
}

func (w *world) offered() []candidates.Member {
	var list []candidates.Member
	for uid, m := range w.members {
		if pod := w.pods[uid]; m.Usable && pod.Ready && w.healthy[pod.Node] && !w.taken[uid] && !w.withheld[m.Form] {
			list = append(list, m)
		}
	}
	count := map[string]int{}
	for _, m := range list {
		count[w.pods[m.UID].Node]++
	}
	slices.SortFunc(list, func(a, b candidates.Member) int {
		x, y := w.pods[a.UID].Node, w.pods[b.UID].Node
		return cmp.Or(cmp.Compare(count[y], count[x]), cmp.Compare(x, y), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func TestTheIndexGivesWhatAFullSearchWouldFind(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := &world{
			members: map[types.UID]candidates.Member{}, pods: map[types.UID]candidates.Pod{},
			healthy: map[string]bool{}, taken: map[types.UID]bool{}, withheld: map[string]bool{},
		}
		index := candidates.New(func(candidates.Claim) {})
		for step := range 400 {
			w.step(random, index)
			want := w.offered()
			if _, got := index.Size(poolA); got != len(want) {
				t.Fatalf("seed %d, step %d: %d are offered, want %d", seed, step, got, len(want))
			}
			if random.IntN(3) > 0 {
				continue
			}
			got, found := index.Take(poolA, claimNamed("claim"), nil)
			if found != (len(want) > 0) || (found && got.UID != want[0].UID) {
				t.Fatalf("seed %d, step %d: Take() = %q, %t, want the first of %v", seed, step, got.Name, found, want)
			}
			w.taken[got.UID] = found
		}
	}
}

// step lets something happen to both.
func (w *world) step(random *rand.Rand, index *candidates.Index) {
	uid := types.UID(fmt.Sprintf("m%d", random.IntN(12)))
	node := fmt.Sprintf("n%d", random.IntN(3))
	form := fmt.Sprintf("form-%d", random.IntN(3))
	switch random.IntN(8) {
	case 0, 1:
		m := member(string(uid), time.Duration(len(uid))*time.Hour)
		m.Form = form
		m.Usable = random.IntN(4) > 0
		w.members[uid] = m
		index.SetMember(m)
	case 2:
		delete(w.members, uid)
		delete(w.taken, uid)
		index.DropMember(uid)
	case 3:
		pod := candidates.Pod{UID: uid, Ready: random.IntN(4) > 0, Node: node}
		w.pods[uid] = pod
		index.SetPod(uid, pod)
	case 4:
		delete(w.pods, uid)
		index.DropPod(uid, uid)
	case 5:
		if members, _ := index.Size(poolA); members > 0 {
			w.withheld[form] = true
		}
		index.WithholdForm(poolA, form, index.Epoch())
	case 6:
		clear(w.withheld)
		index.ReconsiderPool(poolA)
	default:
		w.healthy[node] = random.IntN(3) > 0
		index.SetNode(node, w.healthy[node])
	}
}
