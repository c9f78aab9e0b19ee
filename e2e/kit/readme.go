// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Readme returns the block of the project's README that follows a comment such as
// "manifest: first", so that what the README shows is what the stories prove.
func Readme(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), fmt.Sprintf("<!-- %s -->\n```", name))
	if !found {
		t.Fatalf("the README has no block %q", name)
	}
	_, rest, _ = strings.Cut(rest, "\n")
	block, _, closed := strings.Cut(rest, "\n```\n")
	if !closed {
		t.Fatalf("block %q of the README does not end", name)
	}
	return block
}
