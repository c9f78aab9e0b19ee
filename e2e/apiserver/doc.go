// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver runs a private kube-apiserver with its etcd for the tests of one
// package, with the definitions of the platform installed. Nothing else runs beside
// it: no kubelet, no scheduler, no controller of Kubernetes. A test that needs one of
// those plays it (Kubelet), or adds nodes that do not exist with scheduler, garbage
// collector and kwok for their kubelets (Server.AddNodes). It counts what a controller
// writes (Audit) and disturbs its requests (Faults).
//
// # Decisions
//
// 2026-11-29: The programs are those of e2e/cluster, built once and cached. A fake
// client would accept what the apiserver refuses, and it is the apiserver's answers
// that the controllers rest on.
//
// 2026-11-29: Writes are counted in the apiserver's audit log, not in the client: what
// counts is what the cluster has to carry, dry runs and reads left out.
//
// 2026-11-29: A controller under test acts as a user of its own that has the role that
// the chart installs, so that a permission that is missing fails a test.
//
// 2026-11-30: Eight tests of a package run at once unless -parallel says otherwise, on
// however few processors: they wait for the apiserver far more than they work.
//
// 2026-11-30: Whether something was never so is asked of a watch that has come to the
// newest version that there is (Environment.Watch). One that is merely stopped may not have
// told the last change yet, and lets a test pass that should fail.
package apiserver
