// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Types of conditions on a SandboxTemplate.
const (
	// TemplateConditionReady says whether Sandboxes can be made from the template.
	TemplateConditionReady = "Ready"
	// TemplateConditionNetworkPolicy says whether the NetworkPolicy of the template is
	// in force.
	TemplateConditionNetworkPolicy = "NetworkPolicyReady"
)

// Types of conditions on a SandboxWarmPool.
const (
	// PoolConditionProgressing says whether the pool is on its way to its replicas or
	// has them; False when something holds it up.
	PoolConditionProgressing = "Progressing"
	// PoolConditionPolicyDenied says whether admission refuses the pool's Sandboxes.
	PoolConditionPolicyDenied = "PolicyDenied"
	// PoolConditionQuotaExceeded says whether a quota holds the pool's Sandboxes back.
	PoolConditionQuotaExceeded = "QuotaExceeded"
)

// ReasonSandboxNotReady is that of the condition Ready of a SandboxClaim whose Sandbox has not
// said anything yet, or that waits for one after it was told something else.
const ReasonSandboxNotReady = "SandboxNotReady"
