// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package netpol makes and mends the NetworkPolicies that controller/isolation
// describes. The controllers of Sandboxes and of templates share it, so that a Pod
// never waits for the other controller to isolate it, and neither undoes what the
// other wrote.
//
// # Decisions
//
// 2026-11-29: Policies are created and updated whole, not applied. An apply leaves
// empty lists out, and what an apply leaves out, another writer may fill: an egress
// list that he adds to the deny-all floor would stay. Should the same come for a
// hundred Sandboxes at once, one of them writes and the others wait for it.
//
// 2026-11-29: Policies that serve a whole namespace have no owner, so a controller of
// their own removes them: that of a profile ten minutes after the last Pod that it
// selected, the floor ten minutes after the last Sandbox, pool and template. A Pod that
// is made in the very moment is closed by the floor until its Sandbox's next pass.
//
// 2026-11-29: The policy of a template is owned by the template, as the contract has
// it, and by the floor of the namespace. Garbage collection takes an object only when
// its last owner is gone, so that the policy outlives its template without a moment
// in which it is not there and without a finalizer. Copying the policy when the
// template goes would come too late, and owning it by Sandboxes would mean a write
// each time one of them comes or goes.
//
// 2026-11-30: The policy that a deleted template leaves has no owner at all. The floor, its
// last one, may be deleted by an administrator and is made again, as another object: what it
// owned would be collected with the first, while Sandboxes run. So the first pass after the
// template takes the owners off, the floor's reference included, and the template controller
// deletes the policy itself once the apiserver has no Sandbox left that was made of the
// template. A controller that was away in between loses nothing: it begins with all policies,
// and each leads it to its template, whether that is there or not.
package netpol
