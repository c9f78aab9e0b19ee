// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package series bounds the series of metrics that have names as labels which tenants choose:
// whoever makes and deletes templates under ever new names would make as many series.
package series

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// Other stands for the names of a namespace beyond Most.
	Other = "__other__"
	// Most is how many names a namespace has series of at the same time.
	Most = 100
	// idle is after how long a name gives way to another, once there are Most. One that is
	// counted after its object went, as what was under way is, goes by this alone.
	idle = time.Hour
)

// Names are the names that are labels of series, by the namespaces that use them. A name may be
// one of several parts.
type Names[N comparable] struct {
	clock clock.PassiveClock
	other N
	drop  func(namespace string, name N, last bool)

	mu sync.Mutex
	// used is when a namespace used a name last, and users how many namespaces use a name.
	used  map[string]map[N]time.Time
	users map[N]int
}

// New makes names that are empty. Other is what stands for names beyond Most; drop drops the
// series of a name of a namespace, whereby last says that no other namespace uses the name.
func New[N comparable](clk clock.PassiveClock, other N, drop func(namespace string, name N, last bool)) *Names[N] {
	return &Names[N]{clock: clk, other: other, drop: drop, used: map[string]map[N]time.Time{}, users: map[N]int{}}
}

// Use has observe count under a name, or under what stands for it.
func (n *Names[N]) Use(namespace string, name N, observe func(N)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.admits(namespace, name) {
		name = n.other
	}
	if n.used[namespace] == nil {
		n.used[namespace] = map[N]time.Time{}
	}
	if _, known := n.used[namespace][name]; !known {
		n.users[name]++
	}
	n.used[namespace][name] = n.clock.Now()
	observe(name)
}

func (n *Names[N]) admits(namespace string, name N) bool {
	names := n.used[namespace]
	if _, known := names[name]; known || len(names) < Most {
		return true
	}
	long := n.clock.Now().Add(-idle)
	n.forget(namespace, func(old N) bool { return !names[old].After(long) })
	return len(n.used[namespace]) < Most
}

// Forget drops the series of those names of a namespace that are gone.
func (n *Names[N]) Forget(namespace string, gone func(N) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(namespace, gone)
}

func (n *Names[N]) forget(namespace string, gone func(N) bool) {
	for name := range n.used[namespace] {
		if !gone(name) {
			continue
		}
		delete(n.used[namespace], name)
		n.users[name]--
		last := n.users[name] == 0
		if last {
			delete(n.users, name)
		}
		n.drop(namespace, name, last)
	}
	if len(n.used[namespace]) == 0 {
		delete(n.used, namespace)
	}
}

// Leave drops the series of a namespace that is gone.
func (n *Names[N]) Leave(namespace string) {
	n.Forget(namespace, func(N) bool { return true })
}
