// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// lax is a configuration whose tier asks nothing of Pod Security, so that only the labels
// of the namespace speak.
var lax = strings.Replace(platform, "podSecurity: {deny: baseline, version: v1.37}", "podSecurity: {deny: privileged, version: v1.37}", 1)

// The labels of a namespace by which the apiserver would judge Pods hold for what would
// make them: enforce refuses, warn warns, audit is recorded, each at its own version. A
// tenant hears of it when he applies, not from a Sandbox that never starts.
func TestThePodSecurityLabelsOfANamespace(t *testing.T) {
	const mode = "pod-security.kubernetes.io/"
	// Versions before v1.34 know nothing of probes that are sent elsewhere.
	probing := strings.Replace(sandbox(""), `"name": "main",`, `"name": "main", "livenessProbe": {"tcpSocket": {"host": "10.0.0.1", "port": 80}},`, 1)
	root := sandbox("")
	cases := map[string]struct {
		object   string
		platform string
		labels   map[string]string
		// denied, warned and audited are the rules of the audit annotations.
		denied, warned, audited string
	}{
		"no label":                           {probing, lax, nil, "", "", ""},
		"enforce":                            {probing, lax, map[string]string{mode + "enforce": "baseline"}, "pss-baseline", "", ""},
		"enforce, at a version before":       {probing, lax, map[string]string{mode + "enforce": "baseline", mode + "enforce-version": "v1.33"}, "", "", ""},
		"enforce, at the version":            {probing, lax, map[string]string{mode + "enforce": "baseline", mode + "enforce-version": "v1.34"}, "pss-baseline", "", ""},
		"enforce, at a version to come":      {probing, lax, map[string]string{mode + "enforce": "baseline", mode + "enforce-version": "v1.99"}, "pss-baseline", "", ""},
		"warn":                               {probing, lax, map[string]string{mode + "warn": "baseline"}, "", "pss-baseline", ""},
		"warn, at a version before":          {probing, lax, map[string]string{mode + "warn": "baseline", mode + "warn-version": "v1.33"}, "", "", ""},
		"audit":                              {probing, lax, map[string]string{mode + "audit": "baseline"}, "", "", "pss-baseline"},
		"audit, at a version before":         {probing, lax, map[string]string{mode + "audit": "baseline", mode + "audit-version": "v1.33"}, "", "", ""},
		"each at its own level":              {probing, lax, map[string]string{mode + "enforce": "baseline", mode + "audit": "restricted"}, "pss-baseline", "", "pss-restricted"},
		"the strictest of two for one fault": {probing, lax, map[string]string{mode + "enforce": "baseline", mode + "warn": "baseline"}, "pss-baseline", "", ""},
		"a level that is none is the strictest": {
			root, lax, map[string]string{mode + "enforce": "strict"}, "pss-restricted", "", "",
		},
		"a label cannot weaken the tier":        {probing, platform, map[string]string{mode + "enforce": "privileged"}, "pss-baseline", "", ""},
		"a label can be stricter than the tier": {root, platform, map[string]string{mode + "enforce": "restricted"}, "pss-restricted", "", ""},
		"a level that the tier only records": {
			root, strings.Replace(platform, "deny: baseline,", "deny: baseline, audit: restricted,", 1), nil, "", "", "pss-restricted",
		},
	}
	worlds := map[string]world{}
	names := map[string]string{}
	for name, tc := range cases {
		names[name] = "case-" + strconv.Itoa(len(names))
		w := worlds[tc.platform]
		w.platform, w.policies = tc.platform, map[string]string{"policy.yaml": `rules: {probe-host: {enforcement: "Off"}}`}
		w.objects = append(w.objects, namespace(names[name], tc.labels))
		worlds[tc.platform] = w
	}
	started := map[string]map[string]http.Handler{}
	for configuration, w := range worlds {
		started[configuration] = w.start(t)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ask(t, started[tc.platform][PathValidate], creation(names[name], "Sandbox", tc.object))
			if got.Allowed != (tc.denied == "") || got.AuditAnnotations["denied"] != tc.denied {
				t.Errorf("allowed %t, refused by %q, want %q: %v", got.Allowed, got.AuditAnnotations["denied"], tc.denied, got.Result)
			}
			of := func(annotation string) string {
				var rules []string
				for rule := range strings.SplitSeq(got.AuditAnnotations[annotation], ",") {
					if strings.HasPrefix(rule, "pss-") {
						rules = append(rules, rule)
					}
				}
				return strings.Join(rules, ",")
			}
			if of("warned") != tc.warned || of("audited") != tc.audited {
				t.Errorf("warned of %q and recorded %q, want %q and %q", of("warned"), of("audited"), tc.warned, tc.audited)
			}
		})
	}
}
