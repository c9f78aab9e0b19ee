// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict is what the controllers of pools and claims ask before a Sandbox that
// waits becomes somebody's: would the rules of today still let it be made? Rules,
// tiers and RuntimeClasses change while it waits, and admission has judged it once.
//
// # Decisions
//
// 2026-11-29: Nobody is served by a Sandbox of which nobody can say that it is admitted.
// While the policies are not loaded, and while a rule fails, claims are served as if the
// pool were empty: by a new Sandbox, which admission judges. Considered: handing out
// what admission has once let in, which lets a rule that changed while the controller
// was away be passed.
package verdict

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

// State is the outcome.
type State int

const (
	// Unknown means that nobody could say.
	Unknown State = iota
	// Admitted means that no rule of today refuses the Sandbox.
	Admitted
	// Refused means that a rule of today does.
	Refused
)

// Verdict is the outcome, and why.
type Verdict struct {
	// State is the outcome.
	State State
	// Reason says why a Sandbox is refused, or why nobody can say; empty when it is
	// admitted.
	Reason string
}

// Judge gives verdicts. Its methods may be called at the same time.
type Judge interface {
	// Ready says whether the policies are loaded. Before that, every verdict is Unknown.
	Ready() bool
	// Of judges a Sandbox by the rules in force now. It takes about a millisecond unless
	// the same was judged before.
	Of(ctx context.Context, sandbox *agentsv1beta1.Sandbox) Verdict
	// Refused are those of the Sandboxes of a namespace of which it is known already that
	// the rules in force now refuse them.
	Refused(ctx context.Context, namespace string, sandboxes []*agentsv1beta1.Sandbox) sets.Set[types.UID]
	// OnChange adds a function that is called with the name of a namespace, or with none
	// for all of them, when verdicts given there before may be other ones now. It must
	// neither block nor call the Judge.
	OnChange(changed func(namespace string))
	// OnRefused adds a function that is called with the name of a pool when a Sandbox of
	// it turned out to be refused. It must neither block nor call the Judge.
	OnRefused(refused func(pool types.NamespacedName))
}

// String is the state as a word, as in metrics.
func (s State) String() string {
	switch s {
	case Admitted:
		return "admitted"
	case Refused:
		return "refused"
	default:
		return "unknown"
	}
}
