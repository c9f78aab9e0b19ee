// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exposure watches for NetworkPolicies of others that reopen what the platform's
// own close for the Pods of Sandboxes. It changes nothing: whoever wrote the policy may
// mean it. It tells, by an Event on the policy and by a metric that names it. Find is the
// pure part, for those who tell of it in other ways.
//
// # Decisions
//
// 2026-11-29: NetworkPolicies have a cache of their own here, since the controllers' holds
// only those with our label. A namespace in which nobody else wrote a policy costs a look
// into that cache and nothing more.
//
// 2026-11-30: Of Pods only those count for which a policy of somebody else opens something,
// when they come, go, or get other labels, and a burst of them costs one pass: a namespace of
// thousands would be listed at each step of each start otherwise.
package exposure
