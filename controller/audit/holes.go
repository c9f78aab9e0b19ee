// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"sync"
	"unique"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/exposure"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// ruleReopened is the rule of NetworkPolicies of others that reopen what ours close.
const ruleReopened = "reopened-network"

var kindNetworkPolicy = networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")

// holes are what NetworkPolicies of others open for the Pods of Sandboxes, by namespace.
type holes struct {
	mu    sync.Mutex
	found map[string][]*entry
}

func newHoles() *holes { return &holes{found: map[string][]*entry{}} }

// set replaces what is known of a namespace.
func (h *holes) set(namespace string, found []exposure.Finding) {
	byPolicy := map[string]*entry{}
	var entries []*entry
	for _, hole := range found {
		e := byPolicy[hole.Policy]
		if e == nil {
			e = &entry{kind: kindNetworkPolicy, name: hole.Policy}
			byPolicy[hole.Policy] = e
			entries = append(entries, e)
		}
		e.findings = append(e.findings, unique.Make(engine.Finding{
			Rule: ruleReopened, Severity: engine.High, Enforcement: engine.Audit, Field: "spec",
			Message:     "it lets Pods of Sandboxes " + hole.Opens(),
			Remediation: "Change its podSelector so that it selects no Sandboxes, or delete it.",
		}))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(entries) == 0 {
		delete(h.found, namespace)
		return
	}
	h.found[namespace] = entries
}

// entries are those of a namespace.
func (h *holes) entries(namespace string) []*entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.found[namespace]
}
