// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"go.yaml.in/yaml/v3"
)

// scopePackage is the scope of the METADATA that describes a rule.
const scopePackage = "package"

// Fields of METADATA that are read, or that tell a reader something. OPA passes over all others without a word: a
// field of custom that is not indented would vanish.
var (
	packageFields = []string{"scope", "title", "description", "related_resources", "custom"}
	ruleFields    = []string{"scope", "title", "description", "related_resources"}
)

func packageAnnotation(parsed *ast.Module) *ast.Annotations {
	for _, a := range parsed.Annotations {
		if a.Scope == scopePackage {
			return a
		}
	}
	return nil
}

// checkAnnotations refuses fields of METADATA that have no meaning where they stand.
func checkAnnotations(m Module, parsed *ast.Module) error {
	var errs []error
	for _, a := range parsed.Annotations {
		switch a.Scope {
		case scopePackage:
			errs = append(errs, checkFields(m, a, packageFields, "those of a rule stand two spaces further in, under custom"))
		case "rule", "document":
			errs = append(errs, checkFields(m, a, ruleFields, "all else is read above the package only"))
		default:
			errs = append(errs, fmt.Errorf("%s: METADATA scope is %q: write it above the package, without a scope", lineOf(m, a, 0), a.Scope))
		}
	}
	return errors.Join(errs...)
}

func checkFields(m Module, a *ast.Annotations, known []string, remedy string) error {
	var errs []error
	for _, key := range outermostKeys(a) {
		if !slices.Contains(known, key.Value) {
			errs = append(errs, fmt.Errorf("%s: METADATA has unknown field %q; known are %s; %s", lineOf(m, a, key.Line), key.Value, list(known), remedy))
		}
	}
	return errors.Join(errs...)
}

// outermostKeys are the outermost keys of the block, with their lines below the one that says METADATA.
func outermostKeys(a *ast.Annotations) []*yaml.Node {
	if a.Location == nil {
		return nil
	}
	var text strings.Builder
	for i, line := range strings.Split(string(a.Location.Text), "\n") {
		if i > 0 {
			text.WriteString(strings.TrimPrefix(line, "# ") + "\n")
		}
	}
	var document yaml.Node
	// OPA has read the same text as YAML already.
	if err := yaml.Unmarshal([]byte(text.String()), &document); err != nil || len(document.Content) == 0 {
		return nil
	}
	var keys []*yaml.Node
	for i, node := range document.Content[0].Content {
		if i%2 == 0 {
			keys = append(keys, node)
		}
	}
	return keys
}

// lineOf is the file, and where it is known the line, of a field of METADATA.
func lineOf(m Module, a *ast.Annotations, below int) string {
	if a.Location == nil {
		return m.file()
	}
	return fmt.Sprintf("%s:%d", m.file(), a.Location.Row+below)
}
