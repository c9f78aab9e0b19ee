// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// tierNames are those of the default values, from the most trusted on.
var tierNames = []string{"trusted", "standard", "restricted"}

// tierSettings explains each setting of a tier.
var tierSettings = [][2]string{
	{"podSecurity.deny", "Pod Security level whose violations are refused"},
	{"podSecurity.warn", "level whose violations are warned of"},
	{"podSecurity.audit", "level whose violations are recorded in the apiserver's audit log"},
	{"podSecurity.version", "version of the levels; a namespace's own `pod-security.kubernetes.io` labels ask for theirs besides"},
	{"runtimeClass.classes", "RuntimeClasses in order of preference; the first that can run is set. An entry `{name: kata, hostUsers: false}` gives its Pods a user namespace"},
	{"runtimeClass.required", "refuse Pods under none of them"},
	{"runtimeClass.floor", "weakest class of `platform.runtimeClassOrder`"},
	{"hardening.token", "no ServiceAccount token"},
	{"hardening.serviceLinks", "no addresses of Services in variables"},
	{"hardening.userNamespaces", "`hostUsers` as the RuntimeClass of the list says"},
	{"hardening.seccomp", "`RuntimeDefault`"},
	{"hardening.privilegeEscalation", "none"},
	{"hardening.capabilities", "drop `dropCapabilities`"},
	{"hardening.rootFilesystem", "read-only; images have to be made for it"},
	{"dropCapabilities", "dropped in containers that drop none"},
	{"resources.requests", "requests of containers that have neither request nor limit"},
	{"resources.limits", "limits of containers that have none"},
	{"resources.max", "most of all containers of a Pod together; each then needs a limit"},
	{"resources.podLevel", "limits of CPU and memory of a Pod as a whole do as well as those of its containers; unset, they do from Kubernetes 1.34 on, which keeps them by default"},
	{"serviceAccounts", "that Pods may run as, the first by default; empty is any"},
	{"maxLifetime", "longest time from creation to `shutdownTime`, which must then be set; what waits in a pool is replaced within it; 0s is none"},
	{"egress.profile", "egress profile of Sandboxes that choose none"},
	{"egress.allowed", "profiles that they may choose besides"},
	{"egress.ceiling", "profile that own rules of templates and NetworkPolicies of tenants may not exceed"},
	{"egress.reopened", "`Refuse` or `Report`: what happens when a NetworkPolicy opens more than the ceiling all the same; empty starts no Pod that it selects"},
	{"ingress", "`router` or `namespace`: who may connect; empty is the router, and the namespace for a Sandbox with a Service"},
	{"creates", "which of Sandboxes and claims tenants create; without `Sandbox` they change of one only its mode and its end; who keeps templates and pools is for the rule `platform-owned`"},
	{"adoption", "`Allow` or `Refuse`: whether tenants may hand over Pods, Services and volume claims of their own by the label `agents.x-k8s.io/adoptable`; empty allows it"},
}

// defaultTiers are those of values.yaml.
func defaultTiers(t *testing.T) map[string]map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Platform struct {
			Tiers map[string]map[string]any `json:"tiers"`
		} `json:"platform"`
	}
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	return values.Platform.Tiers
}

func TestReadmeExplainsEverySettingOfATier(t *testing.T) {
	tiers := defaultTiers(t)
	if diff := cmp.Diff(slices.Sorted(slices.Values(tierNames)), slices.Sorted(maps.Keys(tiers))); diff != "" {
		t.Fatalf("tiers (-tests +values.yaml):\n%s", diff)
	}
	var text strings.Builder
	text.WriteString("| setting |")
	for _, name := range tierNames {
		fmt.Fprintf(&text, " `%s` |", name)
	}
	text.WriteString(" what it is |\n|---|---|---|---|---|\n")
	for _, setting := range tierSettings {
		fmt.Fprintf(&text, "| `%s` |", setting[0])
		for _, name := range tierNames {
			fmt.Fprintf(&text, " %s |", cell(t, valueAt(tiers[name], setting[0])))
		}
		fmt.Fprintf(&text, " %s |\n", setting[1])
	}
	requireInReadme(t, "tiers", text.String())
}

// Every setting that the schema knows is in the table.
func TestTheTableOfTiersIsComplete(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Definitions struct {
			Tier map[string]any `json:"tier"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	var explained []string
	for _, setting := range tierSettings {
		explained = append(explained, setting[0])
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(settingsOf("", schema.Definitions.Tier))), slices.Sorted(slices.Values(explained))); diff != "" {
		t.Errorf("settings (-schema +table):\n%s", diff)
	}
}

// settingsOf lists the leaves of a schema.
func settingsOf(prefix string, schema map[string]any) []string {
	properties, _ := schema["properties"].(map[string]any)
	if len(properties) == 0 {
		return []string{prefix}
	}
	var leaves []string
	for name, property := range properties {
		below, _ := property.(map[string]any)
		leaves = append(leaves, settingsOf(strings.TrimPrefix(prefix+"."+name, "."), below)...)
	}
	return leaves
}

func valueAt(object map[string]any, path string) any {
	var at any = object
	for name := range strings.SplitSeq(path, ".") {
		below, _ := at.(map[string]any)
		at = below[name]
	}
	return at
}

// cell is a value as it stands in a table.
func cell(t *testing.T, value any) string {
	t.Helper()
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return "`" + value + "`"
	case []any:
		var entries []string
		for _, entry := range value {
			entries = append(entries, cell(t, entry))
		}
		return strings.Join(entries, ", ")
	case map[string]any:
		var entries []string
		for _, name := range slices.Sorted(maps.Keys(value)) {
			entries = append(entries, name+" "+cell(t, value[name]))
		}
		return strings.Join(entries, ", ")
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return "`" + string(text) + "`"
}
