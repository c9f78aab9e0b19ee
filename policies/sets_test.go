// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// sets say what the rules of the numbered catalogue do in the standard set, which staging switches on, and in the
// strict one of production.
var sets = []struct {
	standard, strict engine.Enforcement
	rules            string
}{
	{engine.Deny, engine.Deny, `runtimeclass-required runtimeclass-allowed runtime-annotations linux-only pss-baseline host-namespaces privileged
		capabilities-add apparmor selinux proc-mount sysctls windows-hostprocess host-port probe-host ephemeral-in-template mount-propagation
		automount-token projected-identity claim-env template-env-injection template-vct-injection registry-allowed no-latest image-malformed
		limits-required max-resources extended-resources dra object-size max-ttl warmpool-cap priority scheduler-bypass tolerations hostpath
		one-volume-source volume-types inline-csi access-mode storage-size volume-binding managed-network bare-sandbox-network egress-any
		egress-metadata reserved-metadata forged-owner pod-labels annotation-domains namespace-allowed`},
	{engine.Warn, engine.Deny, `runtimeclass-backed pss-restricted host-users no-privilege-escalation capabilities-drop-all seccomp run-as-non-root
		id-ranges share-process-namespace service-account secret-volumes env-from-secret literal-secrets pull-secrets digest-pinned pull-policy
		ephemeral-limit emptydir ttl-required grace-period node-and-affinity overhead-readiness storage-class foreign-pvc egress-cluster
		egress-namespaces ingress-widened dns unknown-fields template-weakening pool-allowed`},
	{engine.Off, engine.Deny, "isolated-nodes verified-digest direct-sandbox platform-owned"},
	{engine.Off, engine.Warn, "read-only-rootfs request-ratio shutdown-policy warmpool-strategy node-recon egress-ports"},
	{engine.Audit, engine.Warn, "subpath command-patterns exposure namespace-psa"},
	{engine.Warn, engine.Warn, "do-not-evict"},
}

// departure is what an environment does instead, and why.
type departure struct {
	staging, prod engine.Enforcement
	why           string
}

const (
	yours   = "It needs what only you know: "
	example = "The examples of this project would be refused: "
)

// departures are the rules that staging and production do not switch on as the sets say.
var departures = map[string]departure{
	"isolated-nodes":        {engine.Off, engine.Off, yours + "the labels or taints of the nodes for Sandboxes. A RuntimeClass that selects nodes does the same"},
	"verified-digest":       {engine.Off, engine.Off, yours + "the digests that somebody verified"},
	"direct-sandbox":        {engine.Off, engine.Off, yours + "the groups that may make Sandboxes without a claim"},
	"platform-owned":        {engine.Off, engine.Off, yours + "the groups that keep templates and pools, the account of a GitOps tool among them"},
	"pool-allowed":          {engine.Off, engine.Off, yours + "the pools from which a namespace may claim"},
	"pss-restricted":        {engine.Warn, engine.Warn, example + "public images run as root. It follows the tier: `podSecurity.deny: restricted` there denies"},
	"run-as-non-root":       {engine.Warn, engine.Warn, example + "public images run as root"},
	"capabilities-drop-all": {engine.Warn, engine.Warn, example + "the tier `standard` leaves root what package managers need, all but `NET_RAW`"},
	"digest-pinned":         {engine.Warn, engine.Warn, example + "they name images by tag"},
	"pull-policy":           {engine.Warn, engine.Warn, example + "they name images by tag"},
	"ttl-required":          {engine.Warn, engine.Warn, example + "they have no end. A tier's `maxLifetime` wants one as well"},
}

// clause is what a rule finds in the strict set only, by a parameter.
type clause struct {
	parameter string
	// strict is the value that does so.
	strict any
	// why says why production leaves it out; empty where it does not.
	why string
}

var clauses = map[string]clause{
	"subpath":                {"any", true, ""},
	"pod-labels":             {"requireDomain", true, ""},
	"template-env-injection": {"allowedModes", []any{}, ""},
	"template-vct-injection": {"allowedModes", []any{}, ""},
	"host-users":             {"required", true, yours + "the runtimes and file systems of volumes that have user namespaces"},
	"id-ranges":              {"allowMergedGroups", false, example + "they do not set `supplementalGroupsPolicy`"},
	"service-account":        {"allowDefault", false, "A ValidatingAdmissionPolicy keeps rights from the default account"},
}

// setOf returns what the sets say of a rule; none of a rule that the catalogue does not number.
func setOf(id string) (standard, strict engine.Enforcement) {
	for _, set := range sets {
		if slices.Contains(strings.Fields(set.rules), id) {
			return set.standard, set.strict
		}
	}
	return "", ""
}

// lastNumbered is the last number of the catalogue that the sets are about; rules after it are this project's own.
const lastNumbered = "SBX-106"

// TestStagingAndProductionSwitchOnTheSets holds each rule of the catalogue to its two columns, or to a reason.
func TestStagingAndProductionSwitchOnTheSets(t *testing.T) {
	staging, prod := environment(t, "staging"), environment(t, "prod")
	known := map[string]bool{}
	for _, info := range catalogue(t) {
		known[info.ID] = true
		standard, strict := setOf(info.ID)
		if numbered := info.Code <= lastNumbered; numbered != (standard != "") {
			t.Errorf("%s is %s and in the sets: %t", info.ID, info.Code, standard != "")
			continue
		}
		want := departure{staging: standard, prod: strict}
		if standard == "" {
			want = departure{staging: info.Default, prod: info.Default}
		}
		reason, departs := departures[info.ID]
		if departs {
			if reason.staging == standard && reason.prod == strict {
				t.Errorf("%s has a reason to differ, and does not", info.ID)
			}
			want = reason
		}
		got := departure{cmp.Or(staging[info.ID].Enforcement, info.Default), cmp.Or(prod[info.ID].Enforcement, info.Default), want.why}
		if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(departure{})); diff != "" {
			t.Errorf("%s in staging and production (-want +got):\n%s", info.ID, diff)
		}
	}
	for _, set := range sets {
		for id := range strings.FieldsSeq(set.rules) {
			if !known[id] {
				t.Errorf("the sets have a rule %s, the library has none", id)
			}
		}
	}
}

// TestProductionHasTheParametersOfTheStrictSet holds what a rule finds in the strict set only.
func TestProductionHasTheParametersOfTheStrictSet(t *testing.T) {
	staging, prod := environment(t, "staging"), environment(t, "prod")
	schemas := map[string]map[string]any{}
	for _, info := range catalogue(t) {
		schemas[info.ID] = info.Schema
	}
	for id, clause := range clauses {
		schema, ok := schemas[id][clause.parameter].(map[string]any)
		if !ok {
			t.Errorf("%s has no parameter %s", id, clause.parameter)
			continue
		}
		if gocmp.Equal(schema["default"], clause.strict) {
			t.Errorf("%s: %s is strict by default", id, clause.parameter)
		}
		got, given := prod[id].Parameters[clause.parameter]
		if strict := given && gocmp.Equal(got, clause.strict); strict != (clause.why == "") {
			t.Errorf("%s: production has %s=%v, strict is %v, and a reason not to: %q", id, clause.parameter, got, clause.strict, clause.why)
		}
		if _, given := staging[id].Parameters[clause.parameter]; given {
			t.Errorf("%s: staging sets %s, which belongs to the strict set", id, clause.parameter)
		}
	}
}

// aboutSets introduces that table.
const aboutSets = `
### Staging and production

Staging switches on the standard set of the numbered catalogue, production the strict one, but for this:

| rule | standard, strict | staging, prod | why |
|---|---|---|---|
`

// departed is the table of what staging and production do not switch on, and why.
func departed() string {
	var b strings.Builder
	b.WriteString(aboutSets)
	for _, id := range slices.Sorted(maps.Keys(departures)) {
		standard, strict := setOf(id)
		d := departures[id]
		fmt.Fprintf(&b, "| `%s` | %s, %s | %s, %s | %s |\n", id, standard, strict, d.staging, d.prod, d.why)
	}
	for _, id := range slices.Sorted(maps.Keys(clauses)) {
		if c := clauses[id]; c.why != "" {
			fmt.Fprintf(&b, "| `%s` | strict with `%s: %v` | without it | %s |\n", id, c.parameter, c.strict, c.why)
		}
	}
	b.WriteString("\n")
	return b.String()
}
