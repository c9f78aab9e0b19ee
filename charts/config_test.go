// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// platform returns the configuration as both programs read it.
func platform(t *testing.T, r rendered) *config.Platform {
	t.Helper()
	for _, c := range all[*corev1.ConfigMap](r) {
		if text, ok := c.Data["platform.yaml"]; ok {
			p, err := config.Parse([]byte(text))
			if err != nil {
				t.Fatalf("the programs refuse the configuration: %v\n%s", err, text)
			}
			return p
		}
	}
	t.Fatal("no ConfigMap has platform.yaml")
	return nil
}

func TestPlatformConfigurationIsRead(t *testing.T) {
	for _, env := range environments {
		in := elsewhere.with(env)
		p := platform(t, render(t, in))
		if p.Router.Namespace != in.namespace {
			t.Errorf("values of %s: the router is in %q, want the release namespace", or(env, "defaults"), p.Router.Namespace)
		}
		if got := p.Environment["name"]; env != "" && got != env {
			t.Errorf("values of %s: rules see the environment %v", env, got)
		}
	}
	all := []string{
		"platform.router.namespace=edge", "platform.cluster.dnsAddresses={169.254.20.10}", "platform.cluster.cidrs={10.0.0.0/8}",
		"platform.egressProfiles.git.rules[0].cidrs={192.0.2.0/24}", "platform.egressProfiles.git.rules[0].ports[0].port=443",
		"platform.egressProfiles.git.rules[0].ports[0].endPort=444", "platform.tiers.trusted.ingress=namespace",
		"platform.egressProfiles.git.nameservers={192.0.2.53}", "platform.tiers.trusted.egress.allowed={git}", "platform.tiers.restricted=null",
		"platform.tiers.trusted.runtimeClass.classes[0].name=kata", "platform.tiers.trusted.runtimeClass.classes[0].hostUsers=false",
	}
	p := platform(t, render(t, install{set: all}))
	if got := p.EgressProfiles["git"].Rules[0].Ports[0]; got.Port.IntValue() != 443 || *got.EndPort != 444 {
		t.Errorf("the profile of the values has the port %v", got)
	}
	if got := p.EgressProfiles["git"].Nameservers; !cmp.Equal(got, []string{"192.0.2.53"}) {
		t.Errorf("the profile of the values has the resolvers %v", got)
	}
	if got := p.Tiers["trusted"].RuntimeClass.Classes; len(got) != 1 || got[0].Name != "kata" || got[0].HostUsers == nil || *got[0].HostUsers {
		t.Errorf("the RuntimeClasses of the values are %+v, want kata with user namespaces", got)
	}
	if _, there := p.Tiers["restricted"]; there || p.Router.Namespace != "edge" {
		t.Errorf("values are not followed: %+v", p)
	}
}

// hardening is that of a tier which says so of the token and leaves the root file system
// to the image.
func hardening(token config.Mode) config.Hardening {
	return config.Hardening{
		Token: token, ServiceLinks: config.Default, UserNamespaces: config.Default, Seccomp: config.Default,
		PrivilegeEscalation: config.Default, Capabilities: config.Default, RootFilesystem: config.Open,
	}
}

func amounts(cpu, memory, storage string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourceEphemeralStorage: resource.MustParse(storage),
	}
}

// The tiers of the platform are a decision; this is its table.
func TestTiersAreAsDecided(t *testing.T) {
	both := []string{"Sandbox", "SandboxClaim"}
	want := map[string]config.Tier{
		"trusted": {
			PodSecurity: config.PodSecurity{Deny: "baseline", Version: "v1.37"}, Creates: both, Adoption: config.AdoptionAllow, Hardening: hardening(config.Default),
			Resources: config.Resources{PodLevel: true}, Egress: config.TierEgress{Profile: "public", Allowed: []string{"none", "dns-only"}},
		},
		"standard": {
			PodSecurity:      config.PodSecurity{Deny: "baseline", Warn: "restricted", Version: "v1.37"},
			RuntimeClass:     config.RuntimeClass{Classes: []config.Class{{Name: "gvisor"}, {Name: "kata"}}},
			DropCapabilities: []string{"NET_RAW"}, Creates: both, Adoption: config.AdoptionAllow, Hardening: hardening(config.Default),
			Resources: config.Resources{PodLevel: true}, Egress: config.TierEgress{Profile: "public", Allowed: []string{"none", "dns-only"}},
		},
		"restricted": {
			PodSecurity:      config.PodSecurity{Deny: "restricted", Version: "v1.37"},
			RuntimeClass:     config.RuntimeClass{Classes: []config.Class{{Name: "gvisor"}, {Name: "kata"}}, Required: true, Floor: "gvisor"},
			DropCapabilities: []string{"ALL"}, Creates: []string{"SandboxClaim"}, Adoption: config.AdoptionRefuse,
			Hardening: hardening(config.Require),
			Resources: config.Resources{
				Requests: amounts("100m", "128Mi", "256Mi"), Limits: amounts("2", "2Gi", "4Gi"), Max: amounts("8", "16Gi", "32Gi"), PodLevel: true,
			},
			Egress: config.TierEgress{Profile: "dns-only", Allowed: []string{"none"}, Ceiling: "dns-only"},
		},
	}
	p := platform(t, render(t, install{}))
	if diff := cmp.Diff(want, p.Tiers, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("tiers (-want +got):\n%s", diff)
	}
	if p.DefaultTier != "standard" {
		t.Errorf("the default tier is %s, want standard", p.DefaultTier)
	}
	profiles := map[string]config.EgressProfile{"none": {}, "dns-only": {DNS: true}, "public": {DNS: true, Internet: true}}
	if diff := cmp.Diff(profiles, p.EgressProfiles); diff != "" {
		t.Errorf("egress profiles (-want +got):\n%s", diff)
	}
}

// policyConfig is the shape of policy.yaml.
type policyConfig struct {
	Rules map[string]struct {
		Enforcement string         `json:"enforcement"`
		Parameters  map[string]any `json:"parameters"`
	} `json:"rules"`
	// What these say is a matter of the engine.
	Overrides  []any `json:"overrides"`
	Exemptions []any `json:"exemptions"`
}

func policiesOf(t *testing.T, r rendered) (corev1.ConfigMap, policyConfig) {
	t.Helper()
	var parsed policyConfig
	for _, c := range all[*corev1.ConfigMap](r) {
		if c.Labels[keys.PolicySource] != "true" {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(c.Data["policy.yaml"]), &parsed); err != nil {
			t.Fatalf("policy.yaml: %v\n%s", err, c.Data["policy.yaml"])
		}
		return *c, parsed
	}
	t.Fatal("no ConfigMap is a policy source")
	return corev1.ConfigMap{}, parsed
}

// library returns the rules of the library with what each does by default.
func library(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../policies/library/*/*.rego")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.rego") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if value, found := strings.CutPrefix(line, "#   enforcement: "); found {
				rules[filepath.Base(filepath.Dir(file))] = strings.Trim(strings.TrimSpace(value), `"`)
			}
		}
	}
	if len(rules) == 0 {
		t.Fatal("the library is empty")
	}
	return rules
}

// An id that no rule has is an error to the webhook, so the values must keep in step
// with the library; and what a rule does without values is what the values say.
func TestRulesAreThoseOfTheLibrary(t *testing.T) {
	known := library(t)
	_, defaults := policiesOf(t, render(t, install{}))
	got := map[string]string{}
	for id, rule := range defaults.Rules {
		got[id] = rule.Enforcement
	}
	if diff := cmp.Diff(known, got); diff != "" {
		t.Errorf("rules of the library and of values.yaml (-library +values):\n%s", diff)
	}
	for _, env := range environments[1:] {
		_, configured := policiesOf(t, render(t, install{}.with(env)))
		for id := range configured.Rules {
			if known[id] == "" {
				t.Errorf("values of %s configure %s, which the library does not have", env, id)
			}
		}
	}
}

// What the README of the policies says of each rule is what is rendered.
func TestRulesDoWhatTheCatalogueSays(t *testing.T) {
	content, err := os.ReadFile("../policies/README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| SBX-[0-9]{3} \\| [a-z]+ \\| (\\w+) \\| (\\w+) \\| (\\w+) \\|").FindAllStringSubmatch(string(content), -1)
	said := map[string][]string{}
	for _, row := range rows {
		said[row[1]] = row[2:]
	}
	for column, env := range []string{"", "staging", "prod"} {
		_, configured := policiesOf(t, render(t, install{}.with(env)))
		if len(said) < len(configured.Rules) {
			t.Fatalf("the catalogue has %d rules, the chart configures %d", len(said), len(configured.Rules))
		}
		for id, rule := range configured.Rules {
			if said[id] == nil || said[id][column] != rule.Enforcement {
				t.Errorf("%s is %s under the values of %s, the catalogue says %v of default, staging and prod", id, rule.Enforcement, or(env, "defaults"), said[id])
			}
		}
	}
}

// What the defaults deny is a decision; the rest warns or is off. A RuntimeClass is
// required only where the tier says so.
func TestDefaultsDenyWhatWasDecided(t *testing.T) {
	decided := []string{
		"pss-baseline", "host-namespaces", "privileged", "capabilities-add", "apparmor", "selinux", "proc-mount", "sysctls",
		"windows-hostprocess", "host-port", "probe-host", "ephemeral-in-template", "automount-token", "projected-identity",
		"image-malformed", "dra", "hostpath", "one-volume-source", "volume-binding", "reserved-metadata", "forged-owner",
		"runtimeclass-required",
	}
	_, defaults := policiesOf(t, render(t, install{}))
	for id, rule := range defaults.Rules {
		if denies, want := rule.Enforcement == "Deny", slices.Contains(decided, id); denies != want {
			t.Errorf("%s is %s by default, want it to deny: %t", id, rule.Enforcement, want)
		}
	}
	_, prod := policiesOf(t, render(t, install{}.with("prod")))
	_, staging := policiesOf(t, render(t, install{}.with("staging")))
	for id, rule := range defaults.Rules {
		if rule.Enforcement == "Deny" && (prod.Rules[id].Enforcement != "Deny" || staging.Rules[id].Enforcement != "Deny") {
			t.Errorf("%s denies by default but not in staging and production", id)
		}
		if staging.Rules[id].Enforcement == "Deny" && prod.Rules[id].Enforcement != "Deny" {
			t.Errorf("%s denies in staging but not in production", id)
		}
	}
}

func TestProductionAllowsTheRegistryOfTheExamples(t *testing.T) {
	_, prod := policiesOf(t, render(t, install{}.with("prod")))
	rule := prod.Rules["registry-allowed"]
	if rule.Enforcement != "Deny" {
		t.Errorf("registry-allowed is %s in production, want Deny", rule.Enforcement)
	}
	if diff := cmp.Diff([]any{"docker.io/library"}, rule.Parameters["repositories"]); diff != "" {
		t.Errorf("repositories (-want +got):\n%s", diff)
	}
	set := []string{"policies.rules.registry-allowed.parameters.repositories={registry.example.com/team}"}
	_, mine := policiesOf(t, render(t, install{set: set}.with("prod")))
	if diff := cmp.Diff([]any{"registry.example.com/team"}, mine.Rules["registry-allowed"].Parameters["repositories"]); diff != "" {
		t.Errorf("repositories of one's own (-want +got):\n%s", diff)
	}
}

// YAML reads a bare Off as false.
func TestABareOffIsOff(t *testing.T) {
	var given map[string]any
	if err := yaml.Unmarshal([]byte("{crds: {install: false}, policies: {rules: {no-latest: {enforcement: Off}}}}"), &given); err != nil {
		t.Fatal(err)
	}
	r, err := install{}.tryValues(given)
	if err != nil {
		t.Fatal(err)
	}
	if _, got := policiesOf(t, r); got.Rules["no-latest"].Enforcement != "Off" {
		t.Errorf("no-latest is %q, want Off", got.Rules["no-latest"].Enforcement)
	}
}

func TestModulesAreTakenAsTheyAre(t *testing.T) {
	text := "package mine\n\n# {{ not a template }}\ndeny contains \"x\" if input.a == 1e6\n"
	given := map[string]any{
		"crds":     map[string]any{"install": false},
		"policies": map[string]any{"modules": map[string]any{"mine.rego": text}},
	}
	r, err := install{}.tryValues(given)
	if err != nil {
		t.Fatal(err)
	}
	source, _ := policiesOf(t, r)
	if diff := cmp.Diff(text, source.Data["mine.rego"]); diff != "" {
		t.Errorf("module (-want +got):\n%s", diff)
	}
}
