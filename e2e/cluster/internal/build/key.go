// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// Key names the build of a component: it changes with everything that can
// change the binaries, which are the module's sources and requirements, the
// flags and the toolchain, and with nothing else.
func Key(c Component, module fs.FS, toolchain string) (string, error) {
	sum := sha256.New()
	flags, err := json.Marshal(c.buildInputs(toolchain))
	if err != nil {
		return "", fmt.Errorf("key of component %s: %w", c.Name, err)
	}
	sum.Write(flags)
	err = fs.WalkDir(module, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isBuildInput(path) {
			return err
		}
		content, err := fs.ReadFile(module, path)
		if err != nil {
			return err
		}
		sum.Write(fmt.Appendf(nil, "\n%s %d\n", path, len(content)))
		sum.Write(content)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("key of component %s: %w", c.Name, err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// buildInputs is what of a component decides the binaries; its Note does not.
func (c Component) buildInputs(toolchain string) any {
	return struct {
		Name, Toolchain string
		Programs        []Program
		Tags, LDFlags   []string
		CGO             bool
	}{c.Name, toolchain, c.Programs, c.Tags, c.LDFlags, c.CGO}
}

func isBuildInput(path string) bool {
	base := filepath.Base(path)
	return base == "go.mod" || base == "go.sum" ||
		strings.HasSuffix(base, ".go") && !strings.HasSuffix(base, "_test.go")
}
