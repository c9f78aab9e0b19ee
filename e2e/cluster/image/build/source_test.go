// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image/build"
)

func TestFindRoot(t *testing.T) {
	root := sources(t)
	nested := filepath.Join(root, "e2e", "cluster")
	writeFile(t, filepath.Join(nested, "go.mod"), "module "+build.MainModule+"/e2e/cluster\n")
	for name, start := range map[string]string{
		"from the root":                root,
		"from a folder":                filepath.Join(root, "cmd", webhook),
		"from inside a nested module":  nested,
		"from a folder to be made yet": filepath.Join(root, "build", "out"),
	} {
		if got, err := build.FindRoot(start); err != nil || got != root {
			t.Errorf("%s: found %q (%v), want %q", name, got, err, root)
		}
	}
	_, err := build.FindRoot(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "name its folder with -source") {
		t.Errorf("outside the repository: error is %v, want the remedy", err)
	}
}

func TestVersion(t *testing.T) {
	root := sources(t)
	if _, err := build.Version(t.Context(), root); err == nil || !strings.Contains(err.Error(), "name it with -version") {
		t.Errorf("without git: error is %v, want the remedy", err)
	}

	git(t, root, "init", "-q")
	git(t, root, "add", ".")
	git(t, root, "commit", "-q", "-m", "first")
	version(t, root, `^[0-9a-f]{12}$`)
	git(t, root, "tag", "v1.2.3")
	version(t, root, `^v1\.2\.3$`)
	writeFile(t, filepath.Join(root, "go.mod"), "module changed\n")
	version(t, root, `^v1\.2\.3-dirty$`)
}

func version(t *testing.T, root, pattern string) {
	t.Helper()
	got, err := build.Version(t.Context(), root)
	if err != nil || !regexp.MustCompile(pattern).MatchString(got) {
		t.Errorf("version is %q (%v), want one like %s", got, err, pattern)
	}
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	identity := []string{"-c", "user.name=tester", "-c", "user.email=tester@example.com", "-c", "commit.gpgsign=false"}
	cmd := exec.CommandContext(t.Context(), "git", append(identity, args...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func TestSourceDate(t *testing.T) {
	for name, test := range map[string]struct {
		value string
		want  time.Time
		fails bool
	}{
		"nothing":       {"", time.Unix(0, 0), false},
		"seconds":       {"86400", time.Unix(86400, 0), false},
		"a date":        {"2026-11-29", time.Time{}, true},
		"before 1970":   {"-1", time.Time{}, true},
		"half a second": {"0.5", time.Time{}, true},
	} {
		got, err := build.SourceDate(test.value)
		if !got.Equal(test.want) || (err != nil) != test.fails {
			t.Errorf("%s: %s (%v), want %s, failure %t", name, got, err, test.want, test.fails)
		}
	}
}
