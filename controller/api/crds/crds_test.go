// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"io/fs"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/crds"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/quantity"
)

// No apiserver stores an amount at which whoever reads the object would hang.
func TestAmountsAreBounded(t *testing.T) {
	files, err := fs.Glob(crds.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	amounts := 0
	for _, file := range files {
		text, err := crds.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var definition any
		if err := yaml.Unmarshal(text, &definition); err != nil {
			t.Fatal(err)
		}
		amounts += countAmounts(t, file, definition)
	}
	if amounts < 40 {
		t.Errorf("%d amounts, want at least 40: the test does not find them", amounts)
	}
}

// countAmounts counts the schemas of amounts: those that are a number or a text of a
// pattern.
func countAmounts(t *testing.T, path string, node any) int {
	t.Helper()
	count := 0
	switch node := node.(type) {
	case map[string]any:
		if pattern, hasPattern := node["pattern"]; hasPattern && node["x-kubernetes-int-or-string"] == true {
			count++
			if pattern != quantity.Pattern {
				t.Errorf("%s has the pattern %s, want %s", path, pattern, quantity.Pattern)
			}
		}
		for name, child := range node {
			count += countAmounts(t, path+"."+name, child)
		}
	case []any:
		for _, child := range node {
			count += countAmounts(t, path+"[]", child)
		}
	}
	return count
}
