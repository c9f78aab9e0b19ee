// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

func TestAFileThatSaysNothingClearIsRefused(t *testing.T) {
	const object = "apiVersion: v1\nkind: Sandbox\n"
	cases := map[string]struct{ name, text, want string }{
		"a good one":              {"sandbox/deny/a.yaml", "# Tries something.\n# expect: names metadata.name\n" + object, ""},
		"no sentence":             {"sandbox/allow/a.yaml", object, "say in the first line"},
		"a key with a typo":       {"sandbox/deny/a.yaml", "# Tries.\n# expects: names metadata.name\n" + object, `no key "expects"`},
		"denied without findings": {"sandbox/deny/a.yaml", "# Tries.\n" + object, "expects no finding"},
		"allowed with findings":   {"sandbox/allow/a.yaml", "# Tries.\n# expect: names metadata.name\n" + object, "it is in allow"},
		"another folder":          {"sandbox/maybe/a.yaml", "# Tries.\n" + object, "move it into allow or deny"},
		"an unknown namespace":    {"sandbox/allow/a.yaml", "# Tries.\n# namespace: lax\n" + object, `no namespace "lax"`},
		"an unknown evasion":      {"sandbox/allow/a.yaml", "# Tries.\n# evasion: init, magic\n" + object, `no evasion "magic"`},
		"an unknown user":         {"sandbox/allow/a.yaml", "# Tries.\n# user: root\n" + object, `no user "root"`},
		"no YAML":                 {"sandbox/allow/a.yaml", "# Tries.\na: [", "sandbox/allow/a.yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Cases(fstest.MapFS{tc.name: {Data: []byte(tc.text)}})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Cases() = %v, want %q", err, tc.want)
			}
		})
	}
}

// Every evasion is tried on every kind, by a manifest that has to be refused and by one
// that a check which is too eager would refuse. Variables are brought along by claims only.
func TestEveryEvasionIsTriedOnEveryKind(t *testing.T) {
	cases, err := Cases(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]int{}
	for _, c := range cases {
		for _, evasion := range c.Evasions {
			tried[path.Dir(c.Name)+" "+evasion]++
		}
	}
	for _, kind := range []string{"sandbox", "template", "pool", "claim"} {
		for _, verdict := range []string{"allow", "deny"} {
			for _, evasion := range Evasions {
				if evasion != EvasionEnv || kind == "claim" {
					if wanted := kind + "/" + verdict + " " + evasion; tried[wanted] == 0 {
						t.Errorf("nothing in %s", wanted)
					}
				}
			}
		}
	}
}

func TestTheCorpusIsLargeAndTellsDifferentStories(t *testing.T) {
	cases, err := Cases(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	stories, denied := map[string]string{}, 0
	for _, c := range cases {
		if other := stories[c.Story]; other != "" {
			t.Errorf("%s and %s tell the same story: %s", other, c.Name, c.Story)
		}
		stories[c.Story] = c.Name
		if !c.Allowed {
			denied++
		}
	}
	if allowed := len(cases) - denied; len(cases) < 150 || denied < 80 || allowed < 40 {
		t.Errorf("%d allowed and %d denied manifests: too few to prove much", allowed, denied)
	}
}
