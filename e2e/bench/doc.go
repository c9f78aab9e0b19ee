// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bench puts a load on the platform's own programs, run as they are shipped,
// and holds what that costs to its budget: writes by the apiserver's audit log, memory
// by the program's own account. What takes how long is output and no verdict.
//
// 2026-11-29: The apiserver is real and the nodes are not: a loop that binds Pods and
// writes their status plays scheduler and kubelet. It does less than kwok, but what is
// measured is the controller, and a second program to build would buy nothing.
package bench
