// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// longestDefault is how long a default may be to stand in the table.
const longestDefault = 60

// value is a documented key of values.yaml.
type value struct {
	key, text, fallback string
}

// documented lists the keys below a node that have a comment which begins with "--". A
// key without one is a section; one that is neither is reported.
func documented(t *testing.T, prefix string, node *yaml.Node) []value {
	t.Helper()
	var found []value
	for i := 0; i < len(node.Content); i += 2 {
		name, content := node.Content[i], node.Content[i+1]
		key := strings.TrimPrefix(prefix+"."+name.Value, ".")
		if _, comment, is := strings.Cut(name.HeadComment, "# -- "); is {
			found = append(found, value{key, strings.ReplaceAll(comment, "\n# ", " "), fallback(t, content)})
			continue
		}
		if content.Kind != yaml.MappingNode || len(content.Content) == 0 {
			t.Errorf("values.yaml does not say what %s is: write a comment that begins with \"# --\" above it", key)
			continue
		}
		found = append(found, documented(t, key, content)...)
	}
	return found
}

func fallback(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var content any
	if err := node.Decode(&content); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > longestDefault {
		return "see values.yaml"
	}
	return "`" + string(data) + "`"
}

func table(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("| value | default | what it is |\n|---|---|---|\n")
	for _, v := range documented(t, "", document.Content[0]) {
		fmt.Fprintf(&text, "| `%s` | %s | %s |\n", v.key, v.fallback, strings.ReplaceAll(v.text, "|", `\|`))
	}
	return text.String()
}

func TestReadmeListsEveryValue(t *testing.T) {
	requireInReadme(t, "values", table(t))
}
