// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/validation"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

func TestNamed(t *testing.T) {
	const document = `{"spec": {"containers": [{"name": "a", "ports": [{"hostPort": 1}], "env": [{"name": "X"}]}, {"name": "b"}],
		"volumeClaimTemplates": [{"metadata": {"name": "v"}}], "add": ["SYS_ADMIN"]}, "metadata": {"labels": {"a.b/c": "d"}}}`
	cases := map[string]struct{ path, want string }{
		"a member of a list is called by its name":            {"spec.containers[1].image", ".spec.containers[b].image"},
		"also further down":                                   {"spec.containers[0].env[0].value", ".spec.containers[a].env[X].value"},
		"also by the name in its metadata":                    {"spec.volumeClaimTemplates[0].spec", ".spec.volumeClaimTemplates[v].spec"},
		"a member without a name is any member":               {"spec.containers[0].ports[0].hostPort", ".spec.containers[a].ports[].hostPort"},
		"so is a text":                                        {"spec.add[0]", ".spec.add[]"},
		"a key stays, dots and all":                           {"metadata.labels[a.b/c]", ".metadata.labels[a.b/c]"},
		"an index beyond the list stays":                      {"spec.containers[7].image", ".spec.containers[7].image"},
		"an index into something that is no list stays":       {"metadata[0].x", ".metadata[0].x"},
		"a bracket that does not end is read as if it did":    {"spec.containers[0", ".spec.containers[a]"},
		"nothing is nothing":                                  {"", ""},
		"a field that does not exist stays as it was written": {"no.such[0].field", ".no.such[0].field"},
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(document), &object); err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := named(tc.path, object); got != tc.want {
				t.Errorf("named(%q) = %q, want %q", tc.path, got, tc.want)
			}
		})
	}
}

func TestRatchet(t *testing.T) {
	finding := func(field, value string) engine.Finding {
		return engine.Finding{Rule: "r", Field: field, Value: value, Enforcement: engine.Deny}
	}
	plain := func(message string) engine.Finding {
		return engine.Finding{Rule: "r", Message: message, Enforcement: engine.Deny}
	}
	late := engine.Finding{Rule: "r", Failure: true, Late: true, Enforcement: engine.Deny}
	amount := func(much float64, text, content string) engine.Finding {
		return engine.Finding{Rule: "r", Field: "a", Value: text, Amount: much, Content: content, Enforcement: engine.Deny}
	}
	content := func(text string) engine.Finding {
		return engine.Finding{Rule: "r", Field: "a", Value: "1", Content: text, Enforcement: engine.Deny}
	}
	failure := engine.Finding{Rule: "r", Failure: true, Enforcement: engine.Deny}
	noTier := engine.Finding{Rule: validation.RuleTier, Failure: true, Enforcement: engine.Deny}
	omits := func(count int) engine.Finding {
		return engine.Finding{Rule: "engine", Omits: count, Amount: float64(count), Content: "Deny", Enforcement: engine.Deny}
	}
	omitted := omits(3)
	cases := map[string]struct {
		now, before []engine.Finding
		change      Change
		// brought is the number of findings that count.
		brought int
		// late is the number of those of which nobody had time to say whether they are new.
		late int
	}{
		"the same finding is tolerated":                {[]engine.Finding{finding("a", "1")}, []engine.Finding{finding("a", "1")}, ChangesSpec, 0, 0},
		"another value counts":                         {[]engine.Finding{finding("a", "2")}, []engine.Finding{finding("a", "1")}, ChangesSpec, 1, 0},
		"another place counts":                         {[]engine.Finding{finding("b", "1")}, []engine.Finding{finding("a", "1")}, ChangesSpec, 1, 0},
		"the same plain text is tolerated":             {[]engine.Finding{plain("image a")}, []engine.Finding{plain("image a")}, ChangesSpec, 0, 0},
		"another plain text counts":                    {[]engine.Finding{plain("image b")}, []engine.Finding{plain("image a")}, ChangesSpec, 1, 0},
		"a plain text excuses no place":                {[]engine.Finding{finding("a", "")}, []engine.Finding{plain("")}, ChangesSpec, 1, 0},
		"an old finding excuses a single new one":      {[]engine.Finding{finding("a[0]", "1"), finding("a[0]", "1")}, []engine.Finding{finding("a[0]", "1")}, ChangesSpec, 1, 0},
		"a failure counts once the spec changes":       {[]engine.Finding{failure}, []engine.Finding{failure}, ChangesSpec, 1, 0},
		"what is not listed counts once it changes":    {[]engine.Finding{omitted}, []engine.Finding{omitted}, ChangesSpec, 1, 0},
		"it is tolerated while only the end does":      {[]engine.Finding{omits(3)}, []engine.Finding{omits(3)}, ChangesEnd, 0, 0},
		"but not if there is more of it":               {[]engine.Finding{omits(4)}, []engine.Finding{omits(3)}, ChangesEnd, 1, 0},
		"what is as it was is left no other's excuse":  {[]engine.Finding{content("a"), content("a c")}, []engine.Finding{content("a b d"), content("a c")}, ChangesSpec, 0, 0},
		"a failure is tolerated while it does not":     {[]engine.Finding{failure}, []engine.Finding{failure}, ChangesNothing, 0, 0},
		"a new failure counts without a change, too":   {[]engine.Finding{failure}, nil, ChangesNothing, 1, 0},
		"an unknown tier counts once the spec changes": {[]engine.Finding{noTier}, []engine.Finding{noTier}, ChangesSpec, 1, 0},
		"it is tolerated while only the end changes":   {[]engine.Finding{noTier}, []engine.Finding{noTier}, ChangesEnd, 0, 0},
		"another failure is not":                       {[]engine.Finding{failure}, []engine.Finding{failure}, ChangesEnd, 1, 0},
		"a smaller amount of what was too much":        {[]engine.Finding{amount(8, "8", "")}, []engine.Finding{amount(10, "10", "")}, ChangesSpec, 0, 0},
		"the same amount in other words":               {[]engine.Finding{amount(8, "8", "")}, []engine.Finding{amount(8, "8000m", "")}, ChangesSpec, 0, 0},
		"a larger one counts":                          {[]engine.Finding{amount(10, "10", "")}, []engine.Finding{amount(8, "8", "")}, ChangesSpec, 1, 0},
		"a larger one in the same words counts":        {[]engine.Finding{amount(10, "", "")}, []engine.Finding{amount(8, "", "")}, ChangesSpec, 1, 0},
		"an amount of something else counts":           {[]engine.Finding{amount(8, "8", "cpu")}, []engine.Finding{amount(10, "10", "memory")}, ChangesSpec, 1, 0},
		"an amount where there was none counts":        {[]engine.Finding{amount(8, "8", "")}, []engine.Finding{amount(0, "", "")}, ChangesSpec, 1, 0},
		"other content counts":                         {[]engine.Finding{content("a")}, []engine.Finding{content("b")}, ChangesSpec, 1, 0},
		"the same content is tolerated":                {[]engine.Finding{content("a")}, []engine.Finding{content("a")}, ChangesSpec, 0, 0},
		"what had no time before excuses nothing":      {[]engine.Finding{finding("a", "1")}, []engine.Finding{late}, ChangesSpec, 1, 1},
		"nor is it excused by itself":                  {[]engine.Finding{late}, []engine.Finding{late}, ChangesNothing, 1, 1},
		"and speaks for no other rule":                 {[]engine.Finding{{Rule: "other", Field: "a", Enforcement: engine.Deny}}, []engine.Finding{late}, ChangesSpec, 1, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			brought, tolerated := Ratchet(Judgement{Findings: tc.now}, Judgement{Findings: tc.before}, tc.change)
			if len(brought) != tc.brought || len(brought)+len(tolerated) != len(tc.now) {
				t.Errorf("Ratchet() = %v, %v, want %d brought in", brought, tolerated, tc.brought)
			}
			if got := len(slices.DeleteFunc(brought, func(f engine.Finding) bool { return !f.Late })); got != tc.late {
				t.Errorf("%d of those brought in are late, want %d", got, tc.late)
			}
		})
	}
}

func TestContains(t *testing.T) {
	for _, tc := range []struct {
		content, other string
		want           bool
	}{
		{"a b c", "", true},
		{"", "", true},
		{"a b c", "a b c", true},
		{"a b c", "a c", true},
		{"a b c", "c", true},
		{"", "a", false},
		{"a c", "b", false},
		{"a c", "c d", false},
		{"aa b", "a", false},
		{"a b", "aa b", false},
	} {
		if got := contains(tc.content, tc.other); got != tc.want {
			t.Errorf("contains(%q, %q) = %t", tc.content, tc.other, got)
		}
	}
}
