// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package relations

import (
	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Handable says whether a pool's Sandbox may become a claim's at all: it stays, neither ends by
// itself nor is suspended, and bears the labels of a member.
func Handable(sandbox *agentsv1beta1.Sandbox) bool {
	return sandbox.DeletionTimestamp == nil &&
		sandbox.Labels[keys.WarmPoolSandbox] != "" &&
		sandbox.Labels[keys.SandboxTemplateRefHash] != "" &&
		sandbox.Spec.OperatingMode != agentsv1beta1.OperatingModeSuspended &&
		sandbox.Spec.ShutdownTime == nil
}
