// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the extensions of the Agent Sandbox API: SandboxTemplate
// (what Sandboxes are made from), SandboxWarmPool (Sandboxes that run before
// anybody asks) and SandboxClaim (the request for one of them).
//
// The group is wire-compatible with extensions.agents.x-k8s.io/v1beta1 as existing
// clients know it. Fields that are ours are additions to a status that the
// contract leaves empty.
//
// +kubebuilder:object:generate=true
// +groupName=extensions.agents.x-k8s.io
package v1beta1
