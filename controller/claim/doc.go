// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claim gives each SandboxClaim one Sandbox: a waiting one of its pool, or
// else a new one, and says in the claim's status which one it is and how it does.
//
// A pass reads everything it needs into a scope (gather.go), runs the phases in order
// (phase_*.go) and concludes with one status write at most. What is decided is a pure
// function (adoptable.go, metadata.go, refusal.go, lifecycle.go, status.go); a phase
// only carries it out.
//
// The hot path costs two writes until the claim is Ready: one on the Sandbox, locked
// by its resourceVersion, which makes the claim its controller and is the durable
// record of the assignment, and one of the claim's status with name, addresses and
// Ready together. The annotations follow in one more, after Ready is visible, and after the
// claims of which nothing was said yet (package rush).
//
// # One Sandbox for one claim
//
// Two claims never get one Sandbox, because the write that takes it is locked by the
// version that was seen to belong to the pool. One claim is told of one,
// and gets no second by a process that leads, because:
//
//   - what this process tried for a claim is remembered (memory.go). A write whose
//     outcome is unknown is repeated on the same object until it is known, by what the
//     apiserver shows and not the cache; nothing else is tried before;
//   - before it creates a Sandbox, before it takes a second one, and before it takes
//     the first one for a claim that an earlier leader may have served, it reads from
//     the apiserver whether the claim has one (barrier.go). A cache that lags can
//     therefore delay a decision and never change it. For a claim to which nobody can
//     have given anything, two reads of single objects say so; for any other, a list
//     besides.
//
// No fence stands between that read and a write of an earlier leader that the apiserver has yet
// to carry out, although its sender is gone: such a write may give a claim a second Sandbox. The
// claim keeps the one that its status names, or else the best of the two, and the other, of which
// nobody was told, is deleted once the cache shows it.
//
// # What a claim gets
//
// What the Sandbox itself says is true at the moment at which it becomes the claim's, since
// the write is locked by the version that was judged: it is the pool's, Ready, has an
// address, and neither ends nor is suspended.
//
// Under Recreate and RollingUpdate it is what the template described at a moment after the
// claim was made: the template is read from the apiserver before the write. Who changes a
// template and then makes a claim never gets what was made before, however far the caches
// are behind. A change while the claim is being served may come too late for it.
//
// The strategy of the pool, the tier, the rules, the readiness of the Pod and the health
// of its node are as this process has seen them: what was shown to it before the claim was
// made is heeded. When a Pod ceases to be ready, the Sandbox soon says so itself, and the
// lock refuses the write.
//
// # Decisions
//
// 2026-12-01: A claim that was deleted and that a finalizer of others holds loses its Sandboxes as if it
// had gone: garbage collection waits for the finalizer, and what serves a claim has no end of its own.
// Who deletes a claim with its Sandbox orphaned keeps that, and the tier ends it like any other.
//
// 2026-12-01: A pool or a template that is being deleted is as one that does not exist. Admission
// judges it no more, the apiserver lets its spec be edited as long as somebody's finalizer holds it,
// and what such an edit says would otherwise reach the Sandboxes of claims unjudged.
//
// 2026-11-30: The live read of the template is the only way to know what the cache has not
// seen, and costs a read for each adoption from a pool of those strategies. Pools of
// OnReplenish, the default, hand out stale members by design and do without. Considered:
// marking stale members, which lags as much as the cache of him who marks.
//
// 2026-11-30: In a burst the annotations of claims fell into the burst itself. They wait for
// claims under way, for a second at most. The count of those claims is in memory only: what is
// lost with it is an order, and no write. The annotations of a claim that is Ready no more wait
// for nothing, and the metadata of a Pod waits for its write-behind window, whoever is under
// way: that is what the API says of it.
//
// 2026-11-30: What tells that a claim has got its Sandbox asks for the pass that writes the
// annotations, and for no other: a claim that is served warm takes two. An event that woke it at
// once would add one which holds a worker until the status is seen, while others wait for theirs.
// A claim whose adoption was not answered is thereby woken a little later; it is tried again anyway.
//
// 2026-11-30: Members that are not for claims are withheld from the index by their form
// and judged anew when template, pool or tier change, so that a pool full of stale ones
// costs no claim more than one look.
//
// 2026-11-30: A Sandbox that the apiserver would not let a claim have, for whatever reason,
// is offered after all others until it changes. What refuses one claim may refuse none of
// the others; and one Sandbox that nobody may have must not stand in the way of all.
//
// 2026-11-29: Claims that did not exist when this process took the lead skip the live read
// before their first adoption: nobody else can have served them, and it would add a round
// trip to every claim.
//
// 2026-11-29: A Sandbox that was lost is SandboxMissing for a claim that was Ready
// once, also when it expired, was retained and had its shutdownTime moved later: what
// ran in it is gone, and the client must know.
//
// 2026-11-29: NetworkPolicies that early releases made for claims are looked for once
// in a process, by one list of metadata: a read for each claim would be a tax on all of
// them for what nobody makes any more.
//
// 2026-11-29: The time of a claim counts from when this process first saw it and not
// from its creationTimestamp, which knows no fractions and another clock: a NotFound
// reason is never published too early.
//
// 2026-11-29: A bound claim follows the template that its Sandbox names and not the one
// that its pool names now, and goes on without either.
//
// 2026-11-29: The domains of labels that claims may set are the platform
// configuration's, which the webhook reads too. A file of the controller's own, as the
// API once had, would let admission take what the controller then refuses.
//
// 2026-11-30: The longest life that a tier gives ends a claim here too, since it may be
// stored or extended while admission is away. Package lifetime says how, and why a tier
// that became stricter ends no claim that was served.
//
// 2026-11-29: bind-timeout ends in ClaimExpired and the claim's own shutdownPolicy, so
// that clients see a reason that they know.
//
// 2026-11-30: A claim that has its Sandbox does not turn unready when the template gains what
// contradicts its metadata, or the allowed domains narrow: what its Pod has stands, and an
// Event warns. Metadata that its owner adds or changes later is judged as ever.
//
// 2026-11-30: A refusal of a repeated write says nothing of the one before it, which may
// have met another apiserver. The claim waits for as long as an apiserver may work on one, or
// until the version that locks both is no more.
//
// 2026-11-30: bind-timeout also ends a claim whose writes were all refused, by a quota, a
// policy or somebody faster. While the fate of one is unknown, it does not; and the
// apiserver has the last word on whether there is a Sandbox. A write of an earlier leader
// that arrives after the end was announced revives nothing: its Sandbox goes.
package claim
