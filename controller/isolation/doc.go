// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package isolation says which NetworkPolicies keep the Pod of a Sandbox apart.
//
// The package is pure: Choose turns the tier of a namespace and the wish of a
// Sandbox into a Choice, and Policies turns a Choice into the NetworkPolicies that
// must exist before the Pod does. The admission webhook and the controller share it,
// so that both say the same of the same object.
//
// NetworkPolicies only ever add up, so the order is: one deny-all floor for a
// namespace, which selects every Pod of a Sandbox, and policies that open what a
// profile allows. Whatever is lost, closes.
//
// # Decisions
//
// 2026-11-29: The range of IPv4-mapped addresses (::ffff:0:0/96) is not among the
// exceptions of ::/0. The apiserver reads it as an IPv4 range and refuses it as lying
// outside ::/0, and no packet ever carries such an address.
//
// 2026-11-29: 168.63.129.16, the address at which one cloud serves its virtual
// machines their credentials, is public and therefore an exception of its own.
//
// 2026-11-29: The cluster's DNS servers lie in the cluster's own ranges. A profile
// adds them back by Pod, not by address, so that a Pod that takes over the address
// of another opens nothing.
//
// 2026-11-29: The Pod of a Sandbox made from a template has no label of an egress
// profile. Policies add up, so the profile's would widen what the template's own
// rules close. Where the template has none, its policy says what the profile allows.
//
// 2026-11-29: An unmanaged template gets no policy of ours, but the floor stays: its
// owner opens what he needs by policies of his own, and what he forgets is closed.
//
// 2026-11-29: A tier's egress ceiling is a profile of its own, not the widest that it
// allows: a template may open a Pod of its namespace, which no profile has to. The default
// values set one in the tier restricted only, and production's in standard too, since the
// defaults only warn of what a template opens. Own rules of a template are compared address
// by address. The backstop in the apiserver compares a tenant's NetworkPolicies peer by
// peer, without the addresses of nodes and without Services: it is stricter there, never
// laxer than the values say.
//
// 2026-11-30: What the backstop cannot know, the controller does: in a tier with a ceiling it
// starts no Pod while a policy of others opens more, be that policy older than the first
// Sandbox, an administrator's, or wide enough for the address of a new node. Considered:
// to report only, which leaves the Pod open for as long as nobody reads. Pods that run stay.
//
// 2026-11-29: A template whose own rules exceed the ceiling, because its tier became
// stricter or admission was away, keeps its policy without egress: a stricter tier closes
// at once, and what runs is not torn down.
//
// 2026-11-30: The addresses that were discovered in the cluster are no part of the ceiling
// of a template: nobody could write rules that stay below it while nodes come and go. They
// are taken out of the rules instead, so that admission, which does not know them, and the
// controller say the same.
//
// 2026-11-30: Services of a profile are resolved once, by Resolve, for the controllers, the
// audit and admission alike. One that opens nothing, and a configuration that nobody has
// resolved, open nothing in a ceiling too: no peers would mean everyone, and a template would
// be admitted whose Sandboxes the controllers then close. The refusal names the Service.
//
// 2026-11-30: The policy of a template that has gone is made again as nodes, the apiserver
// and Services change, as the others are: its labels record the profile and who may
// connect. A template's own rules do not depend on these, and stay; should its tier become
// stricter, its egress is closed for good, since nobody knows the rules any more.
//
// 2026-11-30: A policy of ours is known by our label, its name and what it selects: with one
// of our names and another selector it would open other Pods and be counted as ours. What one
// of them opens is made again, needed or not, so that it hides nothing. Where the configuration
// and the template do not say any more what that was, as of a template with rules of its own
// that has gone, a label has a hash of it, and rules that are others are closed. The rules of a
// profile that went from the configuration are the exception: they stay, and are not checked.
package isolation
