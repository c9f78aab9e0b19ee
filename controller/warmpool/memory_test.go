// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

// A create counts until the cache has shown what it made. Of one that is repeated because
// its answer was lost, that is not what the first try made and somebody deleted since.
func TestACreateCountsUntilWhatItMadeIsShown(t *testing.T) {
	sends := func(u *unseen) { u.send("m", noon()) }
	shows := func(uid string) func(*unseen) { return func(u *unseen) { u.seen("m", types.UID(uid)) } }
	makes := func(uid string) func(*unseen) { return func(u *unseen) { u.made("m", types.UID(uid), noon()) } }
	loses := func(u *unseen) { u.lost("m", noon()) }
	cases := map[string]struct {
		steps  []func(*unseen)
		counts bool
	}{
		"while it is on its way":                         {[]func(*unseen){sends}, true},
		"once it was answered":                           {[]func(*unseen){sends, makes("a")}, true},
		"not when it is shown then":                      {[]func(*unseen){sends, makes("a"), shows("a")}, false},
		"nor when it was shown before the answer":        {[]func(*unseen){sends, shows("a"), makes("a")}, false},
		"while its answer is lost":                       {[]func(*unseen){sends, loses}, true},
		"not when it is shown after that":                {[]func(*unseen){sends, loses, shows("a")}, false},
		"nor when it was shown before that":              {[]func(*unseen){sends, shows("a"), loses}, false},
		"when only what the first try made is shown":     {[]func(*unseen){sends, loses, sends, makes("b"), shows("a")}, true},
		"also when that was shown on the way":            {[]func(*unseen){sends, loses, sends, shows("a"), makes("b")}, true},
		"not when what the second made is shown as well": {[]func(*unseen){sends, loses, sends, shows("a"), makes("b"), shows("b")}, false},
		"while the second answer is lost too":            {[]func(*unseen){sends, loses, sends, shows("a"), loses}, true},
		"of another name nothing is known":               {[]func(*unseen){shows("a"), makes("a")}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := &newMemory("uid", noon()).unseen
			for _, step := range tc.steps {
				step(u)
			}
			if _, counts := u.snapshot()["m"]; counts != tc.counts {
				t.Errorf("it counts: %t, want %t", counts, tc.counts)
			}
		})
	}
}

// What the cache shows concerns the pools of its namespace, and what is gone is forgotten.
func TestWhatIsRememberedOfPoolsIsOfTheirNamespaces(t *testing.T) {
	var m memories
	here, there := types.NamespacedName{Namespace: "team-a", Name: "pool"}, types.NamespacedName{Namespace: "team-b", Name: "pool"}
	for _, key := range []types.NamespacedName{here, there} {
		m.of(key, "uid", noon()).unseen.put("m", sent{at: noon(), uid: "m"})
	}
	m.seen(makeMember("m").sandbox)
	if left := len(m.of(here, "uid", noon()).unseen.snapshot()); left != 0 {
		t.Errorf("%d creates are unseen where one was shown, want none", left)
	}
	if left := len(m.of(there, "uid", noon()).unseen.snapshot()); left != 1 {
		t.Errorf("%d creates are unseen elsewhere, want 1", left)
	}
	m.forget(here)
	m.forget(there)
	if len(m.pools) != 0 {
		t.Errorf("of pools that are gone is left: %v", m.pools)
	}
}

func TestOrphansThatAreGoneAreForgotten(t *testing.T) {
	m := newMemory("uid", noon())
	m.orphans.Insert("told", "gone")
	m.keepOrphans([]*agentsv1beta1.Sandbox{makeMember("told").sandbox, makeMember("new").sandbox})
	if diff := cmp.Diff(sets.New[types.UID]("told"), m.orphans); diff != "" {
		t.Errorf("told of (-want +got):\n%s", diff)
	}
}
