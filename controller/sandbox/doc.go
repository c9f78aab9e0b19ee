// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sandbox keeps the Pod, the volumes, the Service and the isolation of each
// Sandbox as its spec wants them, and says in its status how far that has come.
//
// One pass reads everything it needs into a scope (gather.go), runs the phases in
// order (phase_*.go) and concludes: conditions, one status write at most, Events.
// What a phase decides is a pure function of the scope (pod.go, metadata.go,
// volumes.go, service.go, floor.go, conditions.go, status.go); a phase only carries
// it out. Nothing that somebody else made is changed or deleted, and no finalizer is
// ever set: what a Sandbox owns dies with it by garbage collection.
//
// # Decisions
//
// 2026-11-29: A Sandbox finds its Pods by the UID in their controller reference, not
// by the hash of its name: hashes can be made to collide, and a tenant may take the
// label off a Pod. The label is still set, and repaired, for those who select by it.
//
// 2026-11-29: The annotation pod-name goes in one PATCH to where it belongs: the name
// of the Pod that is there or about to be made, and away once a suspended Sandbox has
// none. The way through an empty annotation, which costs a second write, is left out.
//
// 2026-11-29: A Sandbox made from a template is known by the annotation that names the
// template, whoever controls it now, so that it never falls back to a wider profile.
// The policy of its template is made by this controller too if it is not there yet: a
// Pod waits for no other controller. Once the template is gone its policy stays, and
// where there is none, because the template was unmanaged, the deny-all floor is what
// holds.
//
// 2026-11-29: The client is asked to let reads see its own writes. A pass therefore
// never repeats a write because the cache lags behind, and the budget of writes
// holds. Lists are exempt: they would wait for the writes of every other Sandbox.
//
// 2026-11-29: A patch means one UID, the status as a JSON patch with a test, since a merge
// patch of a status cannot say so. Without it a pass that was slow told the next Sandbox
// of a name that it was Ready, with the address of the Pod of the one before.
//
// 2026-11-29: Nothing is written by server-side apply. What is made must be made by us or
// not at all, and an apply takes what somebody else made; what is mended is mended only
// when the cache shows that it differs, so that an apply would be one more way to write
// the same few fields. Of the user's keys on a Pod, for which it would fit, the contract
// has a record of its own. All writes have one field owner.
//
// 2026-11-29: A Sandbox whose Pod is being deleted is not Ready, though the Pod may say
// so until it has ended: a client that suspends and resumes would be sent to it.
//
// 2026-11-29: A volume that is to outlive its Sandbox has no owner from the start, since
// a Sandbox may be gone before anything runs and no finalizer is wanted. What it is known
// by afterwards is the tracking label, by which the contract lets a Sandbox of the same
// name adopt it.
//
// 2026-11-29: How often a Pod failed of late is kept in memory only, as the kubelet
// does: to store it would cost a write each time, and a controller that starts anew
// errs by a short delay.
//
// 2026-11-29: A user's mistake is not retried; what mends it is watched instead: the
// Sandbox, its namespace's tier, and whatever sits in the place of its Pod, Service
// or volume.
//
// 2026-11-29: When a Sandbox expires is kept in a timer beside the work queue and not
// in the result of a pass, because a pass that ends in an error has no result.
//
// 2026-11-29: A change of a namespace's tier reaches every Sandbox there, running or
// not: labels of running Pods follow, so that a stricter tier closes at once. One
// whose profile the new tier does not allow says so in Ready and keeps what it had.
//
// 2026-11-29: The contract leaves a Sandbox alone that is being deleted. We write nothing
// to it either, but its Pods run until they are gone: the policies that their labels
// name are mended until then, also when the Sandbox itself is gone, expired, suspended
// or refused. Where somebody's finalizer holds the Sandbox its Pods are deleted, or a
// tenant had code that neither shutdownTime nor a suspension ends.
//
// 2026-12-01: Nothing that a tenant may write keeps a Pod running without an end. The controllers delete in
// the background, which wins over a finalizer that orphans. A Pod of ours that nobody controls, because its
// Sandbox was deleted without it, is ended five minutes after it was noticed, be there a Sandbox of its name
// or not: whatever may adopt it has done so by then. It is known by the labels that nobody but this
// controller may set; since when it is astray is kept in memory only, so that a controller that starts
// anew counts again. A Sandbox that adopted a Pod ends when a tier would have ended that, also when it
// belongs to a claim: who orphans a Pod and lets it be adopted again gains no time.
//
// 2026-12-01: What ends a life gives a Pod 300 seconds at most, the default of the rule grace-period, which
// only warns: an expiry, the tier, a Sandbox that somebody holds, a Pod that nobody controls, and, in a tier
// with a longest life, also a suspension and the deletion of a Sandbox. One that is ending already has its time
// shortened. Elsewhere a suspension and a deletion leave the Pod the time that it asks for: nothing there
// has an end that it could put off.
//
// 2026-11-29: The floor of the Pod is what admission refuses whatever is exempt: the
// fields that reach the node, identities of the cluster, and the Pod Security level that
// the tier denies below, at the tier's version. The engine of the policies is not asked:
// its rules may change at any time, and are no reason to end what runs.
//
// 2026-11-30: The first status of a Sandbox is written within a second of its Pod, or five for
// a member of a pool: of a hundred that start at once most take longer than a second, and
// each paid a write more, so that a burst cost more than the nine writes a claim that are
// allowed. Ready, and what refuses a Pod, are told at once.
//
// 2026-11-30: The longest life that a tier gives is held here too, since a Sandbox may be
// stored or extended while admission is away. It gets its Pod, and ends as if its
// shutdownTime were the tier's: to refuse the Pod would help nobody, for what admission
// wants is an end, and it has one. Package lifetime says why a tier that became stricter
// ends nothing that runs.
//
// 2026-11-30: A tier says by adoption whether the label adoptable of a tenant hands
// anything over, a retained volume included; the tracking label, which nobody but the
// controllers may set, always does. What was adopted stays adopted when the tier changes.
// It is allowed unless a tier refuses it, because clients of the contract rely on it.
//
// 2026-11-29: Of two Sandboxes whose names have one hash the younger gets neither Pod nor
// Service, since the contract fixes what the Service selects. Names made in one second
// count as both younger: one that runs is not ended, and no other starts beside it.
package sandbox
