// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package surroundings follows the network around the Sandboxes: the addresses of nodes
// and of the apiserver and the ranges of Pods and Services, which the internet of a profile
// never covers, and the Services that profiles name. It knows at any time the platform configuration with what they are
// now, and tells who writes NetworkPolicies when that changes.
//
// # Decisions
//
// 2026-11-29: What is in force before any informer has synced is read from the apiserver:
// a policy that is written without the addresses of the nodes would be open until the
// next one.
//
// 2026-11-29: Services are watched in the namespaces that profiles name, and not at all
// when none does; of nodes the cache keeps names and addresses. Followers are told only
// of changes that change a policy, which addresses within the ranges that are closed
// anyway do not.
//
// 2026-11-30: The ranges of Services are read from the apiserver, which has them as
// objects from Kubernetes 1.33 on. Older ones are asked for once, at the start; until the
// next one, the configured ranges alone are closed.
//
// 2026-11-30: The webhook follows Services alone, and none when no profile names one: what a
// ceiling opens hangs on them, and the addresses of the cluster count for nothing there.
//
// 2026-11-29: A Service that cannot be resolved opens nothing and is told of, in the log
// and by a metric, instead of keeping the controller from starting: Services come and go
// while it runs.
package surroundings
