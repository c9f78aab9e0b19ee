// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// Reasons of a claim's Ready condition that are not its Sandbox's.
const (
	ReasonTemplateNotFound          = "TemplateNotFound"
	ReasonWarmPoolNotFound          = "WarmPoolNotFound"
	ReasonAdoptionConflict          = "AdoptionConflict"
	ReasonSandboxCreatePending      = "SandboxCreatePending"
	ReasonInvalidMetadata           = "InvalidMetadata"
	ReasonEnvVarsInjectionRejected  = "EnvVarsInjectionRejected"
	ReasonVolumeClaimTemplatesError = "VolumeClaimTemplatesError"
	ReasonClaimExpired              = "ClaimExpired"
	ReasonSandboxMissing            = "SandboxMissing"
	ReasonSandboxNotReady           = extensionsv1beta1.ReasonSandboxNotReady
	ReasonSandboxExpired            = agentsv1beta1.ReasonSandboxExpired
	ReasonReconcilerError           = agentsv1beta1.ReasonReconcilerError
)

// Messages of a claim's Ready condition.
const (
	messageExpired        = "Claim expired. Sandbox cleanup initiated."
	messageCurtailed      = " The tier of the namespace lets no claim live longer."
	messageExpiredSkipped = "Claim expired. Sandbox is not controlled by this claim; deletion skipped."
	messageSandboxExpired = "Underlying Sandbox resource has expired independently of the Claim."
	messageMissing        = "Sandbox does not exist"
	messageNotReady       = "Sandbox is not ready"
	messageCreatePending  = "Sandbox already created; waiting for cache to converge"
)
