// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package defaults hardens what a tenant left open: it names the fields of a
// Sandbox or SandboxTemplate that are set at admission, as JSON Patch operations on
// the object as it was submitted.
//
// It only ever adds. A field that the user set, to whatever value, is his; an object
// is never marshalled again, which would rewrite quantities and times and so trip
// over immutable fields. Nothing here depends on the time but the stamp on claims,
// and a second pass over a patched object finds nothing to do.
//
// Admission may lose the mutation (the webhook fails open, another one interferes),
// so validation asks Unmet, which is the same decision seen from the other side.
//
// A tier that bounds resources or ServiceAccounts fills these in as well. Amounts are
// set per resource: what a container says of memory does not keep its CPU open.
//
// Never set: runAsNonRoot and numeric ids (they break images), images, times, volume
// claim templates (they are immutable), and for Windows Pods the fields that only
// Linux knows and the RuntimeClass: those of a tier are ways to run Linux, with which
// no such Pod would ever start.
package defaults
