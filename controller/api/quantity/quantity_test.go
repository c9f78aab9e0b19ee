// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package quantity_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/quantity"
)

func TestCostly(t *testing.T) {
	cases := map[string]struct {
		text           string
		costly, schema bool
	}{
		"a number":                              {"2", false, true},
		"a suffix":                              {"1.5Gi", false, true},
		"an exponent":                           {"1e3", false, true},
		"the largest exponent":                  {"1E+99", false, true},
		"an exponent that begins with zeros":    {"1e007", false, true},
		"an exponent of three digits":           {"1e100", true, false},
		"one that would take a minute":          {"1.5e-100000000", true, false},
		"one that hides behind zeros":           {"1e-00100000000", true, false},
		"one that hides behind very many zeros": {"1e" + strings.Repeat("0", 200) + "1", true, false},
		"an exponent with a point":              {"1e1.5", false, false},
		"many digits":                           {strings.Repeat("9", 101), true, false},
		"no number":                             {"much", false, false},
		"a suffix alone":                        {"Gi", false, false},
		"nothing":                               {"", false, false},
	}
	pattern := regexp.MustCompile(quantity.Pattern)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := quantity.Costly(tc.text); got != tc.costly {
				t.Errorf("Costly(%q) = %t, want %t", tc.text, got, tc.costly)
			}
			if got := pattern.MatchString(tc.text); got != tc.schema {
				t.Errorf("the schema takes %q: %t, want %t", tc.text, got, tc.schema)
			}
			if amount, err := quantity.Parse(tc.text); tc.schema && err != nil || tc.costly && err == nil {
				t.Errorf("Parse(%q) = %s, %v", tc.text, amount.String(), err)
			}
		})
	}
}

func TestFindCostly(t *testing.T) {
	const much = `"1e-100000000"`
	cases := map[string]struct{ object, path string }{
		"a limit":                   {`{"spec": {"containers": [{}, {"resources": {"limits": {"cpu": ` + much + `}}}]}}`, ".spec.containers[1].resources.limits[cpu]"},
		"a request of a Pod":        {`{"resources": {"requests": {"example.com/a": ` + much + `}}}`, ".resources.requests[example.com/a]"},
		"overhead":                  {`{"overhead": {"cpu": ` + much + `}}`, ".overhead[cpu]"},
		"the size of an emptyDir":   {`{"volumes": [{"emptyDir": {"sizeLimit": ` + much + `}}]}`, ".volumes[0].emptyDir.sizeLimit"},
		"the divisor of a variable": {`{"env": [{"valueFrom": {"resourceFieldRef": {"divisor": ` + much + `}}}]}`, ".env[0].valueFrom.resourceFieldRef.divisor"},
		"a variable, which is text": {`{"env": [{"name": "COMMIT", "value": ` + much + `}], "limits": ` + much + `}`, ""},
		"a label of that name":      {`{"metadata": {"labels": {"limits": ` + much + `}}}`, ""},
		"something below limits":    {`{"limits": {"a": {"requests": {"b": ` + much + `}}}}`, ".limits.a.requests[b]"},
		"numbers":                   {`{"limits": {"a": 1e-300}, "sizeLimit": 1e300}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var object any
			if err := json.Unmarshal([]byte(tc.object), &object); err != nil {
				t.Fatal(err)
			}
			if path, _, found := quantity.FindCostly(object); path != tc.path || found != (tc.path != "") {
				t.Errorf("FindCostly = %q, %t, want %q", path, found, tc.path)
			}
		})
	}
}
