// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package warmpool keeps as many Sandboxes waiting as each SandboxWarmPool asks for.
//
// A pass reads the pool's members into a scope (gather.go), decides by pure functions
// what to make and what to delete (member.go, decide.go), carries that out
// (execute.go) and says in the status how far the pool has come (status.go).
//
// # The exact number
//
// There are never more members than replicas and those being replaced, although the
// cache may be seconds behind:
//
//   - what this process made and has not seen yet counts as a member (memory.go). Names
//     are chosen here, so that a create whose outcome is unknown is repeated under the
//     same name until it is known. What was made is told from an earlier one of the name,
//     which the cache may show later, by its UID;
//   - what others do can only take members away, so that a cache that lags makes the
//     pool wait and never makes it grow;
//   - the first pass over a pool in a process asks the apiserver what an earlier process
//     made;
//   - what should have been seen and was not for a while is asked for, so that nothing
//     waits for an event that never comes;
//   - a member is deleted only in the version that was seen: a claim that took it
//     meanwhile keeps it.
//
// # Decisions
//
// 2026-12-01: A template that is being deleted is as one that does not exist, and a pool that is
// makes, adopts and replaces nothing: admission judges neither any more, whatever is written to them
// while somebody's finalizer holds them. What runs stays until its tier ends it or its owner is gone.
//
// 2026-11-29: Members are those that the pool controls by UID. The contract's label is
// a hash of the name that others can make collide; it only finds orphans.
//
// 2026-11-29: An orphan that does not match in its whole spec, or for which there is no
// room, is left alone and told of in an Event. It may be somebody's work.
//
// 2026-11-29: After a start, members that were Ready before are not replaced for one
// grace period: how many were replaced before is not known, and what takes the
// controller down often takes the readiness of Pods with it.
//
// 2026-11-30: A member counts as replaced from when it may have been deleted last. What
// nobody has answered may have been carried out; what was refused, because the member had
// changed since it was seen, was not.
//
// 2026-11-29: A refusal is tried again after a growing while and at once when pool or
// template change. Policies and quotas change without an event that a pool could see.
//
// 2026-11-29: A rolling update deletes a Ready stale member only when as many as the
// pool wants stay Ready, and takes the room it needs by surging. Only where a quota
// leaves no room to surge it goes below, by 20 % at most and never to none.
//
// 2026-11-30: What refuses the repetition of a create says nothing of the one before it, which
// may have met another apiserver: its name counts for as long as an apiserver may work on one.
// Not held against this is what was made by a repetition and handed out and deleted within that
// time, nor what an earlier process sent: the pool would miss members for want of an answer.
//
// 2026-11-30: Under RollingUpdate this holds for what today's rules refuse as well, though no
// claim gets it: replicas that are Ready are what the strategy promises and what autoscalers
// and alerts look at. Others are made first; then it goes, at its own pace. Under the other
// strategies it goes without waiting for others.
//
// 2026-11-30: A Ready member is never too much for the sake of one that is unseen. Until that
// is seen, nobody knows whether it exists, and whether it is worth more.
//
// 2026-11-29: A pool makes what its waiting claims need at once and what is missing
// besides only when none waits or starts cold, for a bounded while. A refill that runs
// beside a burst takes the apiserver, and beside cold starts the nodes, from those for
// whom it is made. What claims want is counted in the cache and not told by the claim
// controller, so that a pool never waits for somebody who has forgotten it.
//
// 2026-11-29: Members that today's rules refuse go at the pace of those that ceased to be
// Ready, whatever the update strategy: a fault in a rule must not empty every pool at
// once. While a new member would be refused as well, they stay, for the rule may go.
//
// 2026-11-30: So do members that somebody has given an end, suspended or taken the labels off,
// as their users may: no claim gets them, and a pool that counted them as its replicas would
// serve nobody for ever.
//
// 2026-11-29: The delay of refills counts from the first member that is missing. One
// that begins again with each further member never ends under a steady load. A pool misses
// a member also while it lets its claims go first.
//
// 2026-11-29: Numbers of the status that change are gathered for a second before they
// are written; what else changes is written at once. Each claim changes them twice, so
// that a pool with few claims would pay two writes for each, and pays none when it is
// full again within that second.
//
// 2026-11-30: A pool says nothing of a template that is not there for its first two seconds:
// the two are often applied in one go, in any order, and who reads that one is missing gives
// up. It counts from when this process met the pool.
//
// 2026-11-30: A pass waits a tenth of a second for further events while the pool has
// something to hand out: one that has nothing is looked at as soon as a claim comes. A claim
// on an idle pool costs three passes and not five, five claims a second less than two each.
package warmpool
