// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// Told is a recorder that remembers the Events as they were handed over, before any that
// are alike become one.
type Told struct {
	mu   sync.Mutex
	told []string
}

var _ events.EventRecorder = (*Told)(nil)

// Eventf implements events.EventRecorder.
//
//nolint:revive // The interface has that many arguments.
func (t *Told) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = append(t.told, fmt.Sprintf("%s %s: "+note, append([]any{kind, reason}, args...)...))
}

// All are those until now, each as "type reason: note".
func (t *Told) All() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.told)
}
