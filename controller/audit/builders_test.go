// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// found is a finding of a rule.
func found(rule string, enforcement engine.Enforcement) engine.Finding {
	return engine.Finding{
		Rule: rule, Severity: engine.High, Enforcement: enforcement, Field: "spec.x", Message: "broken", Remediation: "Mend it.",
	}
}

// sandboxWith is what is known of a Sandbox.
func sandboxWith(name string, findings ...engine.Finding) *entry {
	e := &entry{kind: agentsv1beta1.GroupVersion.WithKind(engine.KindSandbox), name: name, uid: types.UID("uid-" + name)}
	for _, f := range findings {
		e.findings = append(e.findings, shown(f))
	}
	return e
}
