// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

func TestBrokenModules(t *testing.T) {
	deny := "deny contains \"no\" if input.kind == \"Sandbox\"\n"
	cases := map[string]struct {
		module engine.Module
		// reason are parts of the report's reason.
		reason []string
	}{
		"Text that is no Rego":                    {ruleFile("a", "deny contains"), []string{"configmap/platform/extra/a.rego:12"}},
		"The v0 form without contains":            {ruleFile("a", "deny[msg] { msg := \"x\" }"), []string{"a.rego:12", "deny contains finding if"}},
		"The v0 form that v1 takes for an object": {ruleFile("a", "deny[msg] if { msg := \"x\" }"), []string{"a.rego:12", "deny has to be a set"}},
		"A complete rule":                         {ruleFile("a", "deny := {\"x\"}"), []string{"deny has to be a set"}},
		"A function":                              {ruleFile("a", "deny(x) := x"), []string{"deny has to be a set"}},
		"A set beside a complete rule":            {ruleFile("a", deny+"deny := {\"x\"}"), []string{"deny has to be a set"}},
		"No entry point":                          {ruleFile("a", "denied contains \"x\" if true"), []string{"neither deny nor warn"}},
		"An undefined function":                   {ruleFile("a", "deny contains \"x\" if nosuch(1)"), []string{"a.rego:12", "undefined function nosuch"}},
		"A request to the network":                {ruleFile("a", "deny contains \"x\" if http.send({\"url\": \"http://a\", \"method\": \"get\"})"), []string{"undefined function http.send; this builtin is not allowed"}},
		"The environment of the process":          {ruleFile("a", "deny contains \"x\" if opa.runtime()"), []string{"opa.runtime; this builtin is not allowed"}},
		"Quantities by the wrong builtin":         {ruleFile("a", "deny contains \"x\" if units.parse(\"1\")"), []string{"use data.lib.quantities"}},
		"Data of another rule":                    {ruleFile("a", "deny contains \"x\" if data.policies.library.privileged.deny"), []string{"a.rego:12", "its own package"}},
		"Data of another rule in a declaration":   {ruleFile("a", "deny contains x if some x in data.policies.library.privileged.deny"), []string{"its own package"}},
		"Parameters of another rule":              {ruleFile("a", "deny contains \"x\" if data.parameters"), []string{"its own package"}},
		"All data":                                {ruleFile("a", "deny contains \"x\" if count(data) > 0"), []string{"may not read all data"}},
		"Data by a variable":                      {ruleFile("a", "deny contains x if data[x]"), []string{"its own package"}},
		"An import of another rule":               {ruleFile("a", "import data.policies.library.privileged\n"+deny), []string{"import data.policies.library.privileged"}},
		"An import of the input":                  {ruleFile("a", "import input.parameters\n"+deny), []string{"refer to input directly"}},
		"A replacement of the input":              {ruleFile("a", "deny contains \"x\" if data.lib.pods.judged with input as {}"), []string{"with is for tests"}},
		"A parameter that is not declared":        {ruleFile("a", "deny contains \"x\" if input.parameters.max > 1"), []string{"there is no such parameter"}},
		"An unused variable":                      {ruleFile("a", "deny contains \"x\" if { y := 1 }"), []string{"y unused"}},
		"No METADATA":                             {extra("a.rego", "package policies.extra.a\n"+deny), []string{"no METADATA"}},
		"METADATA that is no YAML":                {extra("a.rego", "# METADATA\n# title: [\npackage policies.extra.a\n"+deny), []string{"a.rego:"}},
		"An unknown field of METADATA":            {changed("#   severity", "#   sverity"), []string{`unknown field "sverity"`, "known are id"}},
		"A field of custom that is not indented":  {changed("# custom:", "# at_least_one: [teams]\n# custom:"), []string{`a.rego:4: METADATA has unknown field "at_least_one"`, "under custom"}},
		"Two of them, written without a space":    {changed("package", "#data: [pools]\n# floor: true\npackage"), []string{`a.rego:10: METADATA has unknown field "data"`, `a.rego:11: METADATA has unknown field "floor"`}},
		"A field of METADATA in capitals":         {changed("# title: Test", "# title: Test\n# Description: x"), []string{`a.rego:3: METADATA has unknown field "Description"`}},
		"A field of custom in capitals":           {changed("#   kinds", "#   Kinds: [SandboxClaim]\n#   kinds"), []string{`custom: unknown field "Kinds"`}},
		"Schemas of its own":                      {changed("# custom:", "# schemas: [{input: {type: object}}]\n# custom:"), []string{`a.rego:4: METADATA has unknown field "schemas"`}},
		"An entry point":                          {changed("# custom:", "# entrypoint: true\n# custom:"), []string{`unknown field "entrypoint"`}},
		"Labels":                                  {changed("# custom:", "# labels: {a: b}\n# custom:"), []string{`unknown field "labels"`}},
		"METADATA for packages below":             {changed("# title: Test", "# scope: subpackages\n# title: Test"), []string{`a.rego:1: METADATA scope is "subpackages"`}},
		"Custom METADATA of a part of the rule":   {ruleFile("a", "# METADATA\n# title: x\n# custom: {floor: true}\ndeny contains \"x\" if true"), []string{`a.rego:14: METADATA has unknown field "custom"`, "above the package only"}},
		"An unknown severity":                     {changed("severity: high", "severity: hgh"), []string{`custom.severity is "hgh"`, "low, medium"}},
		"An unknown kind":                         {changed("[Sandbox]", "[Sandbx]"), []string{`custom.kinds is "Sandbx"`}},
		"No kind":                                 {changed("[Sandbox]", "[]"), []string{"name at least one of Sandbox"}},
		"An unknown enforcement":                  {changed("\"Deny\"", "Block"), []string{`custom.enforcement is "Block"`}},
		"No title":                                {changed("title: Test", "title: ''"), []string{`METADATA title is ""`}},
		"An id with a space":                      {changed("id: a\n", "id: a b\n"), []string{`custom.id is "a b"`}},
		"Data that is not served":                 {changed("#   severity", "#   data: [secrets]\n#   severity"), []string{`custom.data is "secrets": use namespaces`}},
		"Data of the cluster without a word":      {ruleFile("a", "deny contains \"x\" if data.inventory.namespaces.a"), []string{"a.rego:12", "declare what the rule reads"}},
		"All data of the cluster":                 {ruleFile("a", "deny contains \"x\" if data.inventory"), []string{"declare what the rule reads"}},
		"Data of the cluster by a variable":       {changed("#   severity", "#   data: [namespaces]\n#   severity", "deny contains x if data.inventory[x]"), []string{"declare what the rule reads"}},
		"Other data than was declared":            {changed("#   severity", "#   data: [pools]\n#   severity", "deny contains x if some x, _ in data.inventory.templates"), []string{"declare what the rule reads"}},
		"An empty allow-list that is on by default": {
			changed("#   severity", "#   at_least_one: [names]\n#   parameters: {names: {type: array, description: x, default: []}}\n#   severity"),
			[]string{"no entry is in names by default"},
		},
		"A parameter without a default":                  {changed("#   severity", "#   parameters: {max: {type: integer, description: x}}\n#   severity"), []string{"parameter max has no default"}},
		"A default of the wrong type":                    {changed("#   severity", "#   parameters: {max: {type: integer, description: x, default: many}}\n#   severity"), []string{"the default of parameter max does not fit"}},
		"A schema that is none":                          {changed("#   severity", "#   parameters: {max: {type: integr, description: x, default: 1}}\n#   severity"), []string{"no JSON schema"}},
		"A schema in another document":                   {changed("#   severity", "#   parameters: {max: {$ref: 'file:///etc/passwd', description: x, default: 1}}\n#   severity"), []string{"may not refer to another document"}},
		"A package outside of policies":                  {changed("package policies.extra.a", "package main"), []string{"name it policies.<group>.<rule>"}},
		"A package of the shared helpers":                {changed("package policies.extra.a", "package lib.containers"), []string{"name it policies.<group>.<rule>"}},
		"The package of a rule of the library":           {changed("package policies.extra.a", "package policies.library.privileged"), []string{"policies/library/privileged/privileged.rego", "use another"}},
		"A package within that of a rule of the library": {changed("package policies.extra.a", "package policies.library.privileged.deny"), []string{"use another"}},
		"The id of a rule of the library":                {changed("id: a\n", "id: privileged\n"), []string{"has already"}},
		"The id of a rule of the engine":                 {changed("id: a\n", "id: pss-baseline\n"), []string{"the engine has already"}},
		"Look-alike letters in a reference":              {ruleFile("a", "deny contains \"x\" if input.pоd"), []string{"a.rego:12", "illegal token"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			report := load(t, e, "", tc.module)
			if len(report.Broken) != 1 || report.Broken[0].LastGood {
				t.Fatalf("broken modules: %s", show(t, report))
			}
			for _, part := range tc.reason {
				if !strings.Contains(report.Broken[0].Reason, part) {
					t.Errorf("reason lacks %q: %s", part, report.Broken[0].Reason)
				}
			}
			d := e.Evaluate(context.Background(), requestOf(t))
			if len(d.Findings) != 1 || !d.Findings[0].Failure || !d.Denied() {
				t.Errorf("want one failure that denies, got %s", show(t, d.Findings))
			}
			d = e.Evaluate(context.Background(), requestOf(t, "hostPID: true"))
			if !strings.Contains(show(t, d.Findings), "host-namespaces") {
				t.Errorf("the other rules do not judge any more: %s", show(t, d.Findings))
			}
		})
	}
}

// changed is a good module with one part of its text replaced, and more rules.
func changed(old, replacement string, body ...string) engine.Module {
	m := ruleFile("a", strings.Join(append(body, "deny contains \"no\" if input.kind == \"Nothing\"\n"), "\n\n"))
	m.Content = []byte(strings.Replace(string(m.Content), old, replacement, 1))
	return m
}

// What only tells a reader something may stand in METADATA.
func TestMetadataThatTellsAReaderSomething(t *testing.T) {
	m := changed("# custom:", "# related_resources: [{ref: https://example.com}]\n# scope: package\n# custom:",
		"# METADATA\n# title: A part of the rule\n# description: It says why.\nknown := input.kind\n")
	if report := load(t, newEngine(t), "", m); len(report.Broken) > 0 {
		t.Errorf("report: %s", show(t, report.Broken))
	}
}

func TestBrokenModuleHasTheKindsAndEnforcementOfItsMetadata(t *testing.T) {
	broken := extra("a.rego", header("a", "Warn")+"deny contains")
	e := loaded(t, "", broken)
	d := e.Evaluate(context.Background(), requestOf(t))
	if diff := cmp.Diff([]brief{{Rule: "a", Enforcement: "Warn"}}, briefs(d.Findings)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	pool := requestOf(t)
	pool.Kind = engine.KindSandboxWarmPool
	if d := e.Evaluate(context.Background(), pool); len(d.Findings) > 0 {
		t.Errorf("a kind that the rule is not for has findings: %s", show(t, d))
	}
	load(t, e, "rules: {a: {enforcement: Deny}}", broken)
	if !e.Evaluate(context.Background(), requestOf(t)).Denied() {
		t.Error("the configured enforcement does not count")
	}
	load(t, e, "rules: {a: {enforcement: 'Off'}}", broken)
	if d := e.Evaluate(context.Background(), requestOf(t)); len(d.Findings) > 0 {
		t.Errorf("a rule that is off has findings: %s", show(t, d))
	}
}

func TestBrokenModuleKeepsItsLastGoodContent(t *testing.T) {
	e := newEngine(t)
	good := ruleFile("a", "deny contains \"no\" if true\n")
	first := load(t, e, "", good)
	broken := good
	broken.Content = []byte(header("a", "Deny") + "deny contains")
	for range 2 {
		report := load(t, e, "", broken)
		if len(report.Broken) != 1 || !report.Broken[0].LastGood {
			t.Fatalf("report: %s", show(t, report))
		}
		d := e.Evaluate(context.Background(), requestOf(t))
		if len(d.Findings) != 1 || d.Findings[0].Message != "no" || d.Findings[0].Failure {
			t.Errorf("want the finding of the last good content, got %s", show(t, d.Findings))
		}
	}
	if report := load(t, e, "", good); len(report.Broken) != 0 || report.Digest != first.Digest {
		t.Errorf("after the correction: %s, want digest %s", show(t, report), first.Digest)
	}
	load(t, e, "")
	if d := e.Evaluate(context.Background(), requestOf(t)); len(d.Findings) > 0 {
		t.Errorf("a rule that was removed still judges: %s", show(t, d.Findings))
	}
}

func TestLoadKeepsTheSetInForceOnErrors(t *testing.T) {
	e := loaded(t, "")
	digest := e.Digest()
	library := libraryModules(t)
	damaged := append([]engine.Module{}, library...)
	damaged[len(damaged)-1].Content = []byte("package policies.library.x\ndeny contains")
	cases := map[string]struct {
		modules       []engine.Module
		configuration engine.Configuration
		want          string
	}{
		"The library does not load": {damaged, engine.Configuration{}, "the library does not load"},
		"There are no rules":        {nil, engine.Configuration{}, "there are no rules"},
		"The configuration does not fit a rule": {
			library, configured(t, "rules: {dra: {parameters: {allowed: []}}}"), "policy.yaml: rules.dra.parameters",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report, err := e.Load(context.Background(), tc.modules, tc.configuration)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
			if e.Digest() != digest || report.Digest != digest || !e.Ready() {
				t.Error("the set in force changed")
			}
		})
	}
}

// A rule that went away, or a mistyped id, must not keep an engine from its first load: then everything would
// be refused. What the rest of the configuration says counts.
func TestAnEntryAboutARuleThatDoesNotExistIsReported(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"a rule": {"{rules: {privilegd: {enforcement: Warn}, no-latest: {enforcement: Audit}}}", "policy.yaml: rules.privilegd: there is no rule privilegd; known are access-mode"},
		"an override": {
			"{rules: {no-latest: {enforcement: Audit}}, overrides: [{name: a, namespaceSelector: {matchLabels: {a: b}}, rules: {privilegd: {enforcement: Warn}}}]}",
			"policy.yaml: overrides[0].rules.privilegd: there is no rule privilegd",
		},
		"an exemption": {
			"{rules: {no-latest: {enforcement: Audit}}, exemptions: [{rule: privilegd, namespaces: [a], reason: r, owner: o, expires: '2027-01-31'}]}",
			"policy.yaml: exemptions[0].rule: there is no rule privilegd",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			report := load(t, e, tc.text)
			if len(report.Unknown) != 1 || report.Unknown[0].Rule != "privilegd" || !strings.HasPrefix(report.Unknown[0].Reason, tc.want) {
				t.Errorf("report %s, want %q", show(t, report.Unknown), tc.want)
			}
			if !configured(t, tc.text).Mentions("privilegd") || configured(t, tc.text).Mentions("dra") {
				t.Error("the configuration does not know what it mentions")
			}
			for _, info := range e.Catalogue() {
				if info.ID == "no-latest" && info.Enforcement != engine.Audit {
					t.Errorf("the rest of the configuration does not count: no-latest is %s", info.Enforcement)
				}
			}
			if d := e.Evaluate(context.Background(), requestOf(t, "hostPID: true")); !d.Denied() || d.Findings[0].Failure {
				t.Errorf("the library does not judge: %s", show(t, d.Findings))
			}
		})
	}
}

func TestAnEngineWithoutRulesDenies(t *testing.T) {
	e := newEngine(t)
	if e.Ready() || e.Digest() != "" || e.Catalogue() != nil {
		t.Error("ready before the first load")
	}
	if d := e.Evaluate(context.Background(), requestOf(t)); !d.Denied() || !d.Findings[0].Failure {
		t.Errorf("want a failure that denies, got %s", show(t, d))
	}
}

// Replicas that judge differently have different digests, also when they were asked for the same.
func TestDigestNamesWhatIsInForce(t *testing.T) {
	good := ruleFile("a", "deny contains \"no\" if input.kind == \"Nothing\"\n")
	broken := good
	broken.Content = []byte(header("a", "Deny") + "deny contains")
	warm := loaded(t, "", good)
	before := warm.Digest()
	load(t, warm, "", broken)
	if warm.Digest() != before {
		t.Error("the last good content has another digest than the same content as submitted")
	}
	cold := loaded(t, "", broken)
	if cold.Digest() == before {
		t.Error("a replica on last good content and one that has none have the same digest")
	}
	if again := loaded(t, "", broken); again.Digest() != cold.Digest() {
		t.Error("two replicas that have no good content differ")
	}
	if on := loaded(t, "rules: {a: {enforcement: Warn}}", broken); on.Digest() == cold.Digest() {
		t.Error("what the failure of a module comes to is not in the digest")
	}
}

// A file that nobody reads is told of. One that is a rule by the wrong name fails as any rule.
func TestATestInAConfigMapIsReported(t *testing.T) {
	cases := map[string]struct {
		content string
		denied  bool
	}{
		"a test": {"package policies.extra.a_test\n\ntest_a if true\n", false},
		"a rule": {header("a", "Deny") + "deny contains \"no\" if true\n", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			report := load(t, e, "", extra("a_test.rego", tc.content))
			if len(report.Broken) != 1 || !strings.Contains(report.Broken[0].Reason, "configmap/platform/extra/a_test.rego: a name that ends in _test.rego") {
				t.Errorf("report: %s", show(t, report))
			}
			if d := e.Evaluate(context.Background(), requestOf(t)); d.Denied() != tc.denied {
				t.Errorf("denied %t, want %t: %s", d.Denied(), tc.denied, show(t, d.Findings))
			}
			inFolder := engine.Module{Source: "rules", Name: "a_test.rego", Content: []byte(tc.content)}
			if report := load(t, newEngine(t), "", inFolder); len(report.Broken) > 0 {
				t.Errorf("a test in a folder is reported: %s", show(t, report.Broken))
			}
		})
	}
}

func TestDigestNamesRulesAndConfiguration(t *testing.T) {
	digests := map[string]string{}
	for name, e := range map[string]*engine.Engine{
		"plain":         loaded(t, ""),
		"configuration": loaded(t, "rules: {dra: {enforcement: Warn}}"),
		"extra rule":    loaded(t, "", ruleFile("a", "deny contains \"no\" if true\n")),
		"other content": loaded(t, "", ruleFile("a", "deny contains \"yes\" if true\n")),
	} {
		if other, ok := digests[e.Digest()]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		digests[e.Digest()] = name
	}
	if _, ok := digests[loaded(t, "").Digest()]; !ok {
		t.Error("the same rules have another digest")
	}
}
