// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package relations

import (
	"k8s.io/apimachinery/pkg/api/meta"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Handable says whether a pool's Sandbox may become a claim's at all: it stays, neither ends by
// itself, nor was ended by its tier, nor is suspended, and bears the labels of a member.
func Handable(sandbox *agentsv1beta1.Sandbox) bool {
	ready := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.ConditionReady)
	return sandbox.DeletionTimestamp == nil &&
		(ready == nil || ready.Reason != agentsv1beta1.ReasonSandboxExpired) &&
		sandbox.Labels[keys.WarmPoolSandbox] != "" &&
		sandbox.Labels[keys.SandboxTemplateRefHash] != "" &&
		sandbox.Spec.OperatingMode != agentsv1beta1.OperatingModeSuspended &&
		sandbox.Spec.ShutdownTime == nil
}
