// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package series_test

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/series"
)

// counted are the series that there are, as namespace and name, and shared those by name alone.
type counted struct {
	names          *series.Names[string]
	clock          *clocktesting.FakePassiveClock
	single, shared map[string]int
}

func counting() *counted {
	c := &counted{
		clock:  clocktesting.NewFakePassiveClock(time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC)),
		single: map[string]int{}, shared: map[string]int{},
	}
	c.names = series.New(c.clock, series.Other, func(namespace, name string, last bool) {
		delete(c.single, namespace+"/"+name)
		if last {
			delete(c.shared, name)
		}
	})
	return c
}

func (c *counted) count(namespace, prefix string, names int) {
	for n := range names {
		c.names.Use(namespace, fmt.Sprintf("%s-%d", prefix, n), func(name string) {
			c.single[namespace+"/"+name]++
			c.shared[name]++
		})
	}
}

func TestANamespaceHasSoManyNames(t *testing.T) {
	cases := map[string]struct {
		act            func(*counted)
		single, shared int
		others         int
	}{
		"few are all told apart": {func(c *counted) { c.count("a", "x", series.Most); c.count("a", "x", series.Most) }, series.Most, series.Most, 0},
		"the others are one":     {func(c *counted) { c.count("a", "x", 1000) }, series.Most + 1, series.Most + 1, 1000 - series.Most},
		"another namespace has its own": {
			func(c *counted) { c.count("a", "x", 1000); c.count("b", "x", 2) }, series.Most + 3, series.Most + 1, 1000 - series.Most,
		},
		"those of what is gone make room": {
			func(c *counted) {
				c.count("a", "x", series.Most)
				c.names.Forget("a", func(name string) bool { return name < "x-5" })
				c.count("a", "y", 10)
			}, 65, 65, 0,
		},
		"those that nobody used for long make room": {
			func(c *counted) {
				c.count("a", "x", 1000)
				c.clock.SetTime(c.clock.Now().Add(time.Hour))
				c.count("a", "y", 1)
			}, 1, 1, 0,
		},
		"one that is shared stays for the other": {
			func(c *counted) { c.count("a", "x", 3); c.count("b", "x", 1); c.names.Leave("a") }, 1, 1, 0,
		},
		"all go with their namespaces": {
			func(c *counted) {
				c.count("a", "x", 1000)
				c.count("b", "x", 1000)
				c.names.Leave("a")
				c.names.Leave("b")
			}, 0, 0, 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := counting()
			tc.act(c)
			if len(c.single) != tc.single || len(c.shared) != tc.shared || c.shared[series.Other] != tc.others {
				t.Errorf("%d series and %d shared ones, of others %d; want %d, %d and %d",
					len(c.single), len(c.shared), c.shared[series.Other], tc.single, tc.shared, tc.others)
			}
		})
	}
}
