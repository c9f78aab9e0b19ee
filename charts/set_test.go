// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/defaults"
)

// noted explains what the table of set fields cannot show: which setting decides, and
// when a field is left alone although it is unset.
var noted = map[string]string{
	"automountServiceAccountToken":                 "`hardening.token`",
	"enableServiceLinks":                           "`hardening.serviceLinks`",
	"runtimeClassName":                             "the first of `runtimeClass.classes` that can run in the cluster",
	"hostUsers":                                    "`hardening.userNamespaces`, as the RuntimeClass's entry says; not beside host namespaces or raw devices",
	"serviceAccountName":                           "the first of `serviceAccounts`, unless `default` is one of them",
	"securityContext.seccompProfile":               "`hardening.seccomp`",
	"securityContext.allowPrivilegeEscalation":     "`hardening.privilegeEscalation`; not where Kubernetes refuses it: privileged, or with `CAP_SYS_ADMIN`",
	"securityContext.capabilities.drop":            "`hardening.capabilities`, `dropCapabilities`",
	"securityContext.readOnlyRootFilesystem":       "`hardening.rootFilesystem`",
	"resources.limits.cpu":                         "`resources.limits`; at least what the container requests; not where the Pod as a whole has an amount, nor where it would go beyond `resources.max`",
	"resources.limits.ephemeral-storage":           "likewise",
	"resources.limits.memory":                      "likewise",
	"resources.requests.cpu":                       "`resources.requests`; not where the container has a limit",
	"resources.requests.ephemeral-storage":         "likewise",
	"resources.requests.memory":                    "likewise",
	"platform.agents.x-k8s.io/defaulted":           "names the fields that were set, the first hundred of them: `...` ends a list that leaves some out",
	"platform.agents.x-k8s.io/creator":             "on creation: who it was",
	"agents.x-k8s.io/pod-name":                     "on creation: the object's own name, unless it is generated",
	"agents.x-k8s.io/controller-first-observed-at": "on creation: the time",
}

// everyDefault is a tier that sets every field there is.
func everyDefault() config.Tier {
	amounts := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		amounts[name] = resource.MustParse("1")
	}
	return config.Tier{
		RuntimeClass:     config.RuntimeClass{Classes: []config.Class{{Name: "gvisor", HostUsers: new(false)}}},
		Hardening:        config.Hardening{RootFilesystem: config.Default},
		DropCapabilities: []string{"NET_RAW"}, ServiceAccounts: []string{"agent"},
		Resources: config.Resources{Requests: amounts, Limits: amounts},
	}
}

// set are the fields that a mutation set, by their names in the table, with their values.
type set map[string]any

// place takes an index of a list away.
var place = regexp.MustCompile(`\[[0-9]+\]`)

// setOn lists what is set on an object of a tier.
func setOn(t *testing.T, kind, object string, tier config.Tier) set {
	t.Helper()
	found := set{}
	mutated := mutate(t, kind, decoded(t, object), tier)
	annotations, _ := valueAt(mutated, "metadata").(map[string]any)["annotations"].(map[string]any)
	for key, value := range annotations {
		found["metadata.annotations["+key+"]"] = value
	}
	list, _ := annotations["platform.agents.x-k8s.io/defaulted"].(string)
	for name := range strings.SplitSeq(list, ",") {
		if name != "" {
			found[place.ReplaceAllString(name, "[*]")] = fieldAt(mutated, name)
		}
	}
	return found
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

// mutate is what admission makes of an object.
func mutate(t *testing.T, kind string, object map[string]any, tier config.Tier) map[string]any {
	t.Helper()
	operations := defaults.Operations(defaults.Request{
		Operation: "CREATE", Kind: kind, Object: object, Tier: tier, User: "jane",
		RuntimeClasses: sets.New("gvisor"), Now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC),
	})
	patch, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	decodedPatch, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := decodedPatch.Apply([]byte(asText(t, object)))
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, string(patched))
}

func asText(t *testing.T, object map[string]any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fieldAt follows a field path with indexes.
func fieldAt(object map[string]any, path string) any {
	var at any = object
	for name := range strings.SplitSeq(strings.NewReplacer("[", ".[", "]", "]").Replace(path), ".") {
		switch below := at.(type) {
		case map[string]any:
			at = below[name]
		case []any:
			var index int
			if _, err := fmt.Sscanf(name, "[%d]", &index); err != nil || index >= len(below) {
				return nil
			}
			at = below[index]
		}
	}
	return at
}

const (
	openPod = `{"metadata": {"name": "x"}, "spec": {"podTemplate": {"spec": {%s"containers": [{}], "initContainers": [{}], "ephemeralContainers": [{}]}}}}`
	claim   = `{"metadata": {"name": "x"}}`
)

// everySet lists every field that can be set, by kind.
func everySet(t *testing.T) map[string]set {
	t.Helper()
	open := fmt.Sprintf(openPod, "")
	return map[string]set{
		"Sandbox":         setOn(t, "Sandbox", open, everyDefault()),
		"SandboxTemplate": setOn(t, "SandboxTemplate", open, everyDefault()),
		"SandboxClaim":    setOn(t, "SandboxClaim", claim, everyDefault()),
	}
}

// The table of what admission sets is made by asking it.
func TestReadmeListsEveryFieldThatIsSet(t *testing.T) {
	p := platform(t, render(t, install{}))
	inTier := map[string]set{}
	for name, tier := range p.Tiers {
		inTier[name] = setOn(t, "Sandbox", fmt.Sprintf(openPod, ""), tier)
	}
	windows := setOn(t, "Sandbox", fmt.Sprintf(openPod, `"os": {"name": "windows"}, `), everyDefault())
	var text strings.Builder
	text.WriteString("| field |")
	for _, name := range tierNames {
		fmt.Fprintf(&text, " `%s` |", name)
	}
	text.WriteString(" Windows | decided by |\n|---|---|---|---|---|---|\n")
	every := everySet(t)["Sandbox"]
	for _, field := range slices.Sorted(maps.Keys(every)) {
		name, of := inPod(field)
		if strings.HasPrefix(field, "metadata.") || of != "" && of != "containers" {
			continue
		}
		fmt.Fprintf(&text, "| `%s`%s |", name, lists(every, field))
		for _, tier := range tierNames {
			fmt.Fprintf(&text, " %s |", cell(t, inTier[tier][field]))
		}
		applies := "no"
		if _, does := windows[field]; does {
			applies = "yes"
		}
		fmt.Fprintf(&text, " %s | %s |\n", applies, note(t, strings.TrimPrefix(name, "containers[*].")))
	}
	text.WriteString("\n| annotation | on |  |\n|---|---|---|\n")
	for _, key := range annotationsOf(every, everySet(t)["SandboxTemplate"], everySet(t)["SandboxClaim"]) {
		var kinds []string
		for _, kind := range []string{"Sandbox", "SandboxTemplate", "SandboxClaim"} {
			if _, does := everySet(t)[kind]["metadata.annotations["+key+"]"]; does {
				kinds = append(kinds, kind)
			}
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s |\n", key, strings.Join(kinds, ", "), note(t, key))
	}
	requireInReadme(t, "set", text.String())
}

// inPod is the name of a field within the Pod, and the list of containers it is in.
func inPod(field string) (name, list string) {
	name = strings.TrimPrefix(field, "spec.podTemplate.spec.")
	before, _, inList := strings.Cut(name, "[*]")
	if !inList {
		return name, ""
	}
	return name, before
}

// lists says in which other lists of containers a field is set as well.
func lists(every set, field string) string {
	const path = "spec.podTemplate.spec."
	rest, inContainers := strings.CutPrefix(field, path+"containers[*]")
	if !inContainers {
		return ""
	}
	var others []string
	for _, other := range []string{"initContainers", "ephemeralContainers"} {
		if _, does := every[path+other+"[*]"+rest]; does {
			others = append(others, strings.TrimSuffix(other, "Containers"))
		}
	}
	return ", " + strings.Join(others, " and ") + " too"
}

func note(t *testing.T, name string) string {
	t.Helper()
	if noted[name] == "" {
		t.Errorf("nobody says what decides on %s", name)
	}
	return noted[name]
}

func annotationsOf(sets ...set) []string {
	found := map[string]bool{}
	for _, fields := range sets {
		for field := range fields {
			if key, is := strings.CutPrefix(field, "metadata.annotations["); is {
				found[strings.TrimSuffix(key, "]")] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
