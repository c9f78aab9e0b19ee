// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight finds out what a cluster does for isolation, by trying: whether it
// enforces NetworkPolicies, which RuntimeClasses run a Pod, and who reaches the metadata
// service of the cloud. Where cert-manager keeps the webhook's certificate, it waits for
// it too. It says so in words.
//
// Run makes the Pods and reads what they saw; Probe and Serve are what runs in them;
// Findings.Report is pure. The chart's test and a command share them.
//
// # Decisions
//
// 2026-11-29: A Pod that a policy denies everything is compared with one without a
// policy, in the same namespace, towards the same server: only so a refusal proves
// enforcement. It tries again for a while, and whether any attempt and whether the last
// one got through both count: a network that learns of Pods too late is told from one
// that enforces nothing, and a lost packet from a refusal.
package preflight
