// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// digestOf is the digest that a program with the configuration publishes.
func digestOf(t *testing.T, text string) string {
	t.Helper()
	p, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if err := config.Publish(registry, config.ComponentWebhook, p); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 1 {
		t.Fatalf("published %v, %v, want one series", families, err)
	}
	labels := map[string]string{}
	for _, label := range families[0].GetMetric()[0].GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	if families[0].GetName() != "agent_sandbox_config_info" || labels["component"] != "webhook" || families[0].GetMetric()[0].GetGauge().GetValue() != 1 {
		t.Errorf("published %v", families[0])
	}
	return labels["digest"]
}

// Replicas publish the same digest when, and only when, they judge by the same tiers.
func TestConfigurationsAreToldApart(t *testing.T) {
	const text = `
defaultTier: standard
tiers:
  standard: {podSecurity: {deny: baseline, version: v1.37}, runtimeClass: {classes: [{name: gvisor, hostUsers: false}]}, egress: {profile: none}, creates: [Sandbox]}
egressProfiles: {none: {}}
cluster: {dns: {namespace: kube-system, podLabels: {k8s-app: kube-dns}}}
router: {namespace: system, podLabels: {app: router}}
`
	alike := map[string]string{
		"a remark":        "# of the platform team\n" + text,
		"another order":   "router: {podLabels: {app: router}, namespace: system}\n" + strings.Replace(text, "router: {namespace: system, podLabels: {app: router}}", "", 1),
		"the same as was": text,
	}
	differ := map[string][2]string{
		"another level":                 {"deny: baseline", "deny: restricted"},
		"another version of it":         {"v1.37", "v1.36"},
		"another RuntimeClass":          {"gvisor", "kata"},
		"one with other Pods":           {"hostUsers: false", "hostUsers: true"},
		"tenants create something else": {"creates: [Sandbox]", "creates: [SandboxClaim]"},
		"an egress profile opens more":  {"none: {}}", "none: {dns: true}}"},
	}
	before := digestOf(t, text)
	if !strings.HasPrefix(before, "sha256:") {
		t.Errorf("digest %q", before)
	}
	for name, other := range alike {
		if got := digestOf(t, other); got != before {
			t.Errorf("%s: digest %s, want %s", name, got, before)
		}
	}
	seen := map[string]string{before: "what was"}
	for name, change := range differ {
		changed := strings.Replace(text, change[0], change[1], 1)
		got := digestOf(t, changed)
		if other := seen[got]; other != "" || changed == text {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[got] = name
	}
}
