// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

const overrides = `
rules:
  no-latest: {enforcement: Warn, parameters: {tags: [latest, edge]}}
  registry-allowed: {enforcement: "Off"}
overrides:
- name: experiments
  namespaceSelector: {matchLabels: {stage: experiment}}
  rules:
    no-latest: {enforcement: "Off"}
    dra: {enforcement: Warn}
- name: production
  namespaceSelector: {matchExpressions: [{key: stage, operator: In, values: [production, both]}]}
  rules:
    no-latest: {enforcement: Deny}
    registry-allowed: {enforcement: Deny, parameters: {registries: [registry.example.com]}}
- name: one namespace
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: special}}
  rules:
    no-latest: {parameters: {tags: [nightly]}}
`

func TestOverridesHoldInTheirNamespaces(t *testing.T) {
	e := loaded(t, overrides)
	cases := map[string]struct {
		namespace engine.NamespaceInfo
		image     string
		want      []brief
	}{
		"No override":                           {engine.NamespaceInfo{Name: "a"}, "a:edge", []brief{{"no-latest", "Warn", imageField, "a:edge"}}},
		"A rule that is off there":              {inStage("experiment"), "a:edge", nil},
		"A stricter enforcement":                {inStage("production"), "registry.example.com/a:edge", []brief{{"no-latest", "Deny", imageField, "registry.example.com/a:edge"}}},
		"A rule that is off everywhere else":    {inStage("production"), "a:1", []brief{{"registry-allowed", "Deny", imageField, "a:1"}}},
		"Parameters of one namespace":           {engine.NamespaceInfo{Name: "special"}, "a:nightly", []brief{{"no-latest", "Warn", imageField, "a:nightly"}}},
		"Its parameters replace, not add":       {engine.NamespaceInfo{Name: "special"}, "a:edge", nil},
		"Others keep theirs":                    {engine.NamespaceInfo{Name: "b"}, "a:nightly", nil},
		"Two overrides, each with its own part": {special("production"), "registry.example.com/a:nightly", []brief{{"no-latest", "Deny", imageField, "registry.example.com/a:nightly"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := requestOf(t, `containers: [{name: a, image: "`+tc.image+`", resources: {limits: {cpu: 1, memory: 1Gi}}}]`)
			in.Namespace = tc.namespace
			d := e.Evaluate(context.Background(), in)
			if diff := cmp.Diff(tc.want, briefs(d.Findings)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// Who names one ceiling keeps the others.
func TestMembersOfAMappingReplaceTheirNamesakes(t *testing.T) {
	e := loaded(t, `
rules: {max-resources: {parameters: {container: {cpu: "8", memory: 32Gi, ephemeral-storage: null}}}}
overrides:
- name: production
  namespaceSelector: {matchLabels: {stage: production}}
  rules: {max-resources: {parameters: {container: {cpu: "4"}}}}
- name: special
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: special}}
  rules: {max-resources: {parameters: {container: {memory: null}}}}
`)
	const limits = "spec.podTemplate.spec.containers[0].resources.limits."
	cpu, memory := brief{"max-resources", "Warn", limits + "cpu", "9"}, brief{"max-resources", "Warn", limits + "memory", "33Gi"}
	for name, tc := range map[string]struct {
		namespace engine.NamespaceInfo
		cpu       string
		want      []brief
	}{
		"the configuration":            {engine.NamespaceInfo{Name: "a"}, "9", []brief{cpu, memory}},
		"a ceiling of the rule is off": {engine.NamespaceInfo{Name: "a"}, "8", []brief{memory}},
		"an override lowers one":       {inStage("production"), "5", []brief{{"max-resources", "Warn", limits + "cpu", "5"}, memory}},
		"an override takes one away":   {special(""), "9", []brief{cpu}},
		"two overrides":                {special("production"), "9", []brief{cpu}},
	} {
		t.Run(name, func(t *testing.T) {
			in := requestOf(t, `containers: [{name: a, image: "a:1", resources: {limits: {cpu: "`+tc.cpu+`", memory: 33Gi, ephemeral-storage: 300Gi}}}]`)
			in.Namespace = tc.namespace
			if diff := cmp.Diff(tc.want, briefs(e.Evaluate(context.Background(), in).Findings)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

const imageField = "spec.podTemplate.spec.containers[0].image"

func inStage(stage string) engine.NamespaceInfo {
	return engine.NamespaceInfo{Name: "a", Labels: map[string]string{"stage": stage}}
}

func special(stage string) engine.NamespaceInfo {
	info := inStage(stage)
	info.Name = "special"
	return info
}

func TestAFaultHasTheEnforcementOfTheNamespace(t *testing.T) {
	e := loaded(t, `
overrides:
- {name: x, namespaceSelector: {matchLabels: {stage: x}}, rules: {a: {enforcement: Audit}}}
- {name: "off", namespaceSelector: {matchLabels: {stage: "off"}}, rules: {a: {enforcement: "Off"}}}
`, ruleFile("a", "deny contains \"x\" if to_number(input.kind) > 1\n"))
	for stage, want := range map[string][]brief{"": {{Rule: "a", Enforcement: "Deny"}}, "x": {{Rule: "a", Enforcement: "Audit"}}, "off": nil} {
		in := requestOf(t)
		in.Namespace = inStage(stage)
		d := e.Evaluate(context.Background(), in)
		if diff := cmp.Diff(want, briefs(d.Findings)); diff != "" {
			t.Errorf("stage %q: findings (-want +got):\n%s", stage, diff)
		}
		for _, id := range d.Evaluated {
			if id == "a" && stage == "off" {
				t.Error("a rule that is off counts as evaluated")
			}
		}
	}
}

// What a rule denies in some namespaces only is refused there too while its module does not load.
func TestABrokenModuleHasTheEnforcementOfTheNamespace(t *testing.T) {
	e := loaded(t, `
rules: {a: {enforcement: Audit}}
overrides:
- {name: production, namespaceSelector: {matchLabels: {stage: production}}, rules: {a: {enforcement: Deny}}}
- {name: "off", namespaceSelector: {matchLabels: {stage: "off"}}, rules: {a: {enforcement: "Off"}}}
- {name: other, namespaceSelector: {matchLabels: {stage: other}}, rules: {no-latest: {enforcement: Deny}}}
`, ruleFile("a", "deny contains"))
	for stage, want := range map[string][]brief{
		"": {{Rule: "a", Enforcement: "Audit"}}, "other": {{Rule: "a", Enforcement: "Audit"}}, "production": {{Rule: "a", Enforcement: "Deny"}}, "off": nil,
	} {
		in := requestOf(t)
		in.Namespace = inStage(stage)
		if diff := cmp.Diff(want, briefs(e.Evaluate(context.Background(), in).Findings)); diff != "" {
			t.Errorf("stage %q: findings (-want +got):\n%s", stage, diff)
		}
	}
}

func TestExemptionsRecordUntilTheirLastDay(t *testing.T) {
	const configuration = `
rules: {no-latest: {enforcement: Deny}}
exemptions:
- {rule: no-latest, namespaces: [legacy], objects: [old-*], kinds: [Sandbox], reason: Moves to pinned images., owner: team-a, expires: "2026-12-31"}
`
	e := loaded(t, configuration)
	day := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	cases := map[string]struct {
		namespace, name, kind, now string
		want                       string
	}{
		"It is recorded":       {"legacy", "old-1", "Sandbox", "2026-12-01T00:00:00Z", "Audit"},
		"The last second":      {"legacy", "old-1", "Sandbox", "2026-12-31T23:59:59Z", "Audit"},
		"The day after":        {"legacy", "old-1", "Sandbox", "2027-01-01T00:00:00Z", "Deny"},
		"Another namespace":    {"legacy2", "old-1", "Sandbox", "2026-12-01T00:00:00Z", "Deny"},
		"Another object":       {"legacy", "new-1", "Sandbox", "2026-12-01T00:00:00Z", "Deny"},
		"Another kind":         {"legacy", "old-1", "SandboxTemplate", "2026-12-01T00:00:00Z", "Deny"},
		"The beginning itself": {"legacy", "old-", "Sandbox", "2026-12-01T00:00:00Z", "Audit"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := requestOf(t, `containers: [{name: a, image: "a:latest", resources: {limits: {cpu: 1, memory: 1Gi}}}]`)
			in.Namespace.Name, in.Kind, in.Now = tc.namespace, tc.kind, day(tc.now)
			in.Object["metadata"] = map[string]any{"name": tc.name}
			d := e.Evaluate(context.Background(), in)
			if len(d.Findings) != 1 || string(d.Findings[0].Enforcement) != tc.want {
				t.Fatalf("want one finding with %s, got %s", tc.want, show(t, d.Findings))
			}
			if exempt := d.Findings[0].Exemption; (exempt == "until 2026-12-31 by team-a: Moves to pinned images.") != (tc.want == "Audit") {
				t.Errorf("exemption %q", exempt)
			}
		})
	}
	states := map[string]engine.ExemptionStatus{}
	for _, now := range []string{"2026-12-24T23:59:59Z", "2026-12-25T00:00:00Z", "2027-01-01T00:00:00Z"} {
		all := configured(t, configuration).ExemptionsAt(day(now))
		if len(all) != 1 {
			t.Fatal(show(t, all))
		}
		states[now] = all[0]
	}
	if s := states["2026-12-24T23:59:59Z"]; s.Expiring || s.Expired {
		t.Errorf("more than a week before: %s", show(t, s))
	}
	if s := states["2026-12-25T00:00:00Z"]; !s.Expiring || s.Expired {
		t.Errorf("a week before: %s", show(t, s))
	}
	if s := states["2027-01-01T00:00:00Z"]; s.Expiring || !s.Expired {
		t.Errorf("after: %s", show(t, s))
	}
}

// Whoever may have a name generated must not get the exemption of the one object that has the name.
func TestAnExemptionByNameCoversNoGeneratedName(t *testing.T) {
	e := loaded(t, `
rules: {no-latest: {enforcement: Deny}}
exemptions:
- {rule: no-latest, namespaces: [exact], objects: [old-], reason: r, owner: o, expires: "9999-12-31"}
- {rule: no-latest, namespaces: [pattern], objects: [old-*], reason: r, owner: o, expires: "9999-12-31"}
- {rule: no-latest, namespaces: [longer], objects: [old-a*], reason: r, owner: o, expires: "9999-12-31"}
`)
	cases := map[string]struct {
		namespace, name, generateName, want string
	}{
		"the name":                             {namespace: "exact", name: "old-", want: "Audit"},
		"a generated one that begins like it":  {namespace: "exact", generateName: "old-", want: "Deny"},
		"a pattern that the beginning matches": {namespace: "pattern", generateName: "old-a-", want: "Audit"},
		"a pattern that it may match":          {namespace: "longer", generateName: "old-", want: "Deny"},
		"a name beside it":                     {namespace: "pattern", name: "new", generateName: "old-", want: "Deny"},
		"neither":                              {namespace: "pattern", want: "Deny"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := requestOf(t, `containers: [{name: a, image: "a:latest", resources: {limits: {cpu: 1, memory: 1Gi}}}]`)
			in.Namespace.Name, in.Object["metadata"] = tc.namespace, map[string]any{"name": tc.name, "generateName": tc.generateName}
			if d := e.Evaluate(context.Background(), in); len(d.Findings) != 1 || string(d.Findings[0].Enforcement) != tc.want {
				t.Errorf("want one finding with %s, got %s", tc.want, show(t, d.Findings))
			}
		})
	}
}

// Reports carry it with each result.
func TestWhatAnExemptionSaysIsBounded(t *testing.T) {
	e := loaded(t, fmt.Sprintf("exemptions: [{rule: no-latest, objects: [old-*], reason: %q, owner: o, expires: '9999-12-31'}]", strings.Repeat("ö", 5000)))
	in := requestOf(t, `containers: [{name: a, image: "a:latest", resources: {limits: {cpu: 1, memory: 1Gi}}}]`)
	in.Object["metadata"] = map[string]any{"name": "old-1"}
	d := e.Evaluate(context.Background(), in)
	if len(d.Findings) != 1 || len(d.Findings[0].Exemption) > 512 || !strings.HasPrefix(d.Findings[0].Exemption, "until 9999-12-31 by o: ö") {
		t.Errorf("want one finding with the beginning of the reason, got %s", show(t, d.Findings))
	}
}

func TestErrorsOfOverridesAndExemptions(t *testing.T) {
	override := func(text string) string {
		return "overrides: [{name: a, namespaceSelector: {matchLabels: {a: b}}, " + text + "}]"
	}
	exemption := func(old, replacement string) string {
		return strings.Replace(`exemptions: [{rule: dra, namespaces: [a], reason: r, owner: o, expires: "2027-01-31"}]`, old, replacement, 1)
	}
	cases := map[string]struct{ text, want string }{
		"Overrides as a mapping":     {"overrides: {}", "policy.yaml: overrides is {}; write a list"},
		"An override's unknown key":  {override("rules: {dra: {enforcement: Warn}}, namespace: a"), `policy.yaml: overrides[0]: unknown field "namespace"`},
		"A field in capitals":        {"overrides: [{name: a, namespaceSelector: {matchLabels: {a: b}}, Rules: {dra: {enforcement: deny}}}]", `overrides[0]: unknown field "Rules"`},
		"A rule's field in capitals": {override("rules: {dra: {Enforcement: deny}}"), `overrides[0].rules.dra: unknown field "Enforcement"`},
		"An exemption's in capitals": {exemption("rule:", "Rule: pss-baseline, rule:"), `exemptions[0]: unknown field "Rule"`},
		"A name of the wrong type":   {"overrides: [{name: off}]", "overrides[0].name is a bool; write a string"},
		"No name":                    {"overrides: [{namespaceSelector: {matchLabels: {a: b}}, rules: {dra: {enforcement: Warn}}}]", `overrides[0].name is ""`},
		"One name for two":           {"overrides: [{name: a, namespaceSelector: {matchLabels: {a: b}}, rules: {dra: {enforcement: Warn}}}, {name: a, namespaceSelector: {matchLabels: {a: c}}, rules: {dra: {enforcement: Warn}}}]", `overrides[1].name is "a", which another has`},
		"Every namespace":            {"overrides: [{name: a, namespaceSelector: {}, rules: {dra: {enforcement: Warn}}}]", "selects every namespace"},
		"A selector that is none":    {"overrides: [{name: a, namespaceSelector: {matchExpressions: [{key: a, operator: Near}]}, rules: {dra: {enforcement: Warn}}}]", "overrides[0].namespaceSelector"},
		"No rule":                    {override("rules: {}"), "overrides[0].rules is empty"},
		"An enforcement":             {override("rules: {dra: {enforcement: warn}}"), `overrides[0].rules.dra.enforcement is "warn"`},
		"A parameter":                {override("rules: {dra: {parameters: {allowedTemplates: 7}}}"), "overrides[0].rules.dra.parameters.allowedTemplates is 7"},
		"An empty allow-list":        {override("rules: {registry-allowed: {enforcement: Deny}}"), "overrides[0].rules.registry-allowed.enforcement is Deny but no entry"},
		"The floor":                  {override("rules: {privileged: {enforcement: Warn}}"), "only a tier relaxes it"},
		"Parameters of the floor": {
			override("rules: {automount-token: {parameters: {allowServiceAccounts: [builder]}}}"), "overrides[0].rules.automount-token.parameters: the cluster itself enforces rule automount-token, by the parameters under rules.automount-token; set them there",
		},
		"Pod Security":                 {override("rules: {pss-restricted: {enforcement: Warn}}"), "follows the tier"},
		"An exemption's unknown key":   {exemption("rule:", "rules: [a], rule:"), `exemptions[0]: unknown field "rules"`},
		"No rule to be exempt from":    {exemption("rule: dra, ", ""), `exemptions[0].rule is ""; name a rule`},
		"No reason":                    {exemption("reason: r", "reason: ' '"), `exemptions[0].reason is " "; say why`},
		"No owner":                     {exemption("owner: o, ", ""), `exemptions[0].owner is ""`},
		"No end":                       {exemption(`, expires: "2027-01-31"`, ""), `exemptions[0].expires is ""; write the last day`},
		"A day that does not exist":    {exemption("01-31", "02-30"), `exemptions[0].expires is "2027-02-30"`},
		"Nothing selected":             {exemption("namespaces: [a], ", ""), "exemptions[0] has neither namespaces nor objects"},
		"A pattern of namespaces":      {exemption("[a]", "['a*']"), `exemptions[0].namespaces has "a*"`},
		"All objects":                  {exemption("namespaces: [a]", "objects: ['*']"), `exemptions[0].objects has "*"`},
		"An unknown kind":              {exemption("[a]", "[a], kinds: [Pod]"), `exemptions[0].kinds has "Pod"`},
		"An exemption from the floor":  {exemption("dra", "hostpath"), "exemptions[0].rule: rule hostpath holds everywhere"},
		"An exemption from the tier's": {exemption("dra", "pss-baseline"), "exemptions[0].rule: rule pss-baseline follows the tier"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg, err := engine.ParseConfiguration("policy.yaml", []byte(tc.text))
			if err == nil {
				_, err = newEngine(t).Load(context.Background(), libraryModules(t), cfg)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v\nwant %s", err, tc.want)
			}
		})
	}
}

// Each of two overrides leaves an entry, and both together none: an empty allow-list finds nothing, or all.
func TestOverridesThatTakeAllEntriesAwayTogetherRefuse(t *testing.T) {
	taking := func(name string) string {
		return "{name: no-" + name + ", namespaceSelector: {matchLabels: {" + name + ": away}}, rules: {isolated-nodes: {parameters: {nodeSelector: {" + name + ": null}}}}}"
	}
	e := loaded(t, "rules: {isolated-nodes: {enforcement: Deny, parameters: {nodeSelector: {a: x, b: x}}}}\noverrides: ["+taking("a")+", "+taking("b")+"]")
	for name, tc := range map[string]struct {
		labels map[string]string
		fails  bool
	}{
		"one of them":  {map[string]string{"a": "away"}, false},
		"the other":    {map[string]string{"b": "away"}, false},
		"both of them": {map[string]string{"a": "away", "b": "away"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := requestOf(t, "nodeSelector: {a: x, b: x}")
			in.Namespace.Labels = tc.labels
			d := e.Evaluate(context.Background(), in)
			failed := slices.ContainsFunc(d.Findings, func(f engine.Finding) bool { return f.Failure && f.Enforcement == engine.Deny })
			if failed != tc.fails {
				t.Errorf("a failure refuses: %t, want %t: %s", failed, tc.fails, show(t, briefs(d.Findings)))
			}
		})
	}
}
