// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestAProgramIsBuiltWhenItIsAskedForEvenBySeveralAtOnce(t *testing.T) {
	b, c := tiny(t, "package main\n\nfunc main() {}\n")
	dir, err := b.Dir(c)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, name := range []string{"tiny", "other", "tiny"} {
		all.Go(func() {
			path, err := b.Program(t.Context(), []Component{c}, name)
			if err != nil || path != filepath.Join(dir, name) {
				t.Errorf("program %s: got %q and %v, want it in %s", name, path, err, dir)
			}
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestAProgramThatNobodyKnowsIsAnsweredWithThoseThatThereAre(t *testing.T) {
	b, c := tiny(t, "")
	_, err := b.Program(t.Context(), []Component{c}, "teeny")
	if err == nil || !strings.Contains(err.Error(), `no program is called "teeny": there are other, tiny`) {
		t.Errorf("got %v", err)
	}
}
