// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judge says what is wrong with an object of the platform: by the rules of the
// API itself, by the hardened defaults of the tier and by the policies of the engine,
// on the Pod that would really run. The webhook asks it of what comes in, the audit of
// what is there. What it reads of the cluster, it reads through Lookup.
//
// # Decisions
//
// 2026-11-30: Of the classes of a tier, the first is preferred whose nodes take Pods now;
// when those of none do, the first that has nodes at all. A Pod that waits for a cordon to
// end is better than one that shares a kernel for its whole life. Classes whose nodes come
// only when a Pod waits for one have to be named in the configuration: nobody else can tell
// them from a class that was forgotten.
package judge
