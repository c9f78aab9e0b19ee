// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// FindRoot returns the folder of the main module, at or above start.
func FindRoot(start string) (string, error) {
	dir, err := filepath.Abs(start)
	if err != nil {
		return "", fmt.Errorf("find the sources: %w", err)
	}
	for {
		found, err := isRoot(dir)
		if err != nil {
			return "", err
		}
		if found {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no sources of %s at or above %s; run this inside the repository or name its folder with -source", MainModule, start)
		}
		dir = parent
	}
}

func isRoot(dir string) (bool, error) {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find the sources: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if module, found := strings.CutPrefix(strings.TrimSpace(line), "module "); found {
			return strings.Trim(module, `" `) == MainModule, nil
		}
	}
	return false, nil
}

// Version returns the version that git gives the sources in root: a tag, or a
// tag or nothing followed by the commit, then "-dirty" if there are changes.
func Version(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty", "--abbrev=12")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		detail := ""
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			detail = ": " + strings.TrimSpace(string(exit.Stderr))
		}
		return "", fmt.Errorf("git does not tell the version of %s: %w%s; name it with -version", root, err, detail)
	}
	return strings.TrimSpace(string(out)), nil
}

// SourceDate reads the date of images from the value of SOURCE_DATE_EPOCH
// (seconds since the Unix epoch); an empty value is the Unix epoch itself.
func SourceDate(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds since 1970; unset or correct it", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
