// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the core API of the Agent Sandbox Platform: the Sandbox,
// one workspace that is one Pod with its own identity, files, lifetime and
// boundaries.
//
// The group is wire-compatible with agents.x-k8s.io/v1beta1 as existing clients
// know it: names, defaults, conditions, reasons and messages are part of the
// contract. Nothing in this package imports the rest of the platform.
//
// +kubebuilder:object:generate=true
// +groupName=agents.x-k8s.io
package v1beta1
