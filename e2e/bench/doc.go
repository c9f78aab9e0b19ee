// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench puts a load on the platform's own programs, run as they are shipped,
// and holds what that costs to its budget: writes by the apiserver's audit log, memory
// by the program's own account. What takes how long is output; a verdict is only how many
// times as long as something else in the same run.
//
// 2026-11-29: etcd (which flushes every write to the disk), the apiserver, the scheduler
// and the garbage collector are real; the nodes are not: kwok plays their kubelets. A
// node with real containers would spend the machine on starting them.
package bench
