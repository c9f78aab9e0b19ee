// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package blueprint says what Sandbox a pool or a claim makes from a template, and
// whether one that exists still is what the template describes.
//
// The package is pure. The controllers of templates, pools and claims share it, so
// that a member of a pool and a Sandbox that a claim starts cold differ in nothing
// but their labels. What a claim adds is merged by controller/effective, as admission
// does when it judges the claim.
//
//	opts, invalid := blueprint.OptionsFor(platform, tierLabel, template)
//	member, err := blueprint.ForPool(pool, template, opts)   // name is the caller's to set
//	cold, err := blueprint.ForClaim(claim, template, opts)   // *RefusalError: the claim is wrong
//	stale, err := blueprint.Stale(member, template, opts)
//
// # Decisions
//
// 2026-11-29: The contract's public resolvers are set unless the egress profile opens
// the cluster's DNS servers, or resolvers of its own, and not the internet: there they
// could not be reached, and what it opens is what the profile is for.
//
// 2026-11-29: The annotations of the platform that a user may set on a template go to
// each Sandbox made from it. A change of them later makes no member stale: it reaches
// the NetworkPolicy of the template at once, and new Sandboxes with the rest.
package blueprint
