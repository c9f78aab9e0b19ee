// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package template keeps the label and the NetworkPolicy of each SandboxTemplate and
// says in its status whether Sandboxes can be made from it and who uses it.
//
// A pass reads what it needs into a scope (scope.go), keeps label and policy
// (phases.go) and writes the status once at most. What the status says is a pure
// function of the scope (status.go).
//
// # Decisions
//
// 2026-11-29: The NetworkPolicy outlives its template. When the template goes, the
// policy loses its owners and stays until the apiserver, asked directly, knows no
// Sandbox made from the template any more. Until then it follows the network as the
// policies of templates that are there do. The Sandboxes' Pods are closed and not open
// should the policy be lost all the same, since the floor of the namespace stays.
//
// 2026-11-29: Who uses a template is counted a second after it changed, and many
// changes within it at once: the numbers are for people, and a burst of claims must
// not cost a write each. They are counted every five seconds at most, for as long as Sandboxes and
// claims come and go; what else the status says is written at once.
//
// 2026-11-30: What others' policies open for an unmanaged template is told by the events of
// those policies and of its Pods. Asking every half a minute left the status untrue for as
// long, which is when somebody looks at it.
package template
