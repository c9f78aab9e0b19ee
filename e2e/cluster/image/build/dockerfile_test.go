// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image/build"
)

// The Dockerfile cannot be built here, so its lines are held against the images
// that are.
func TestTheDockerfileMakesTheSameImages(t *testing.T) {
	root, err := build.FindRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	dockerfile, err := os.ReadFile(filepath.Join(root, "cmd", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	base := stage(t, string(dockerfile), "FROM scratch AS base")
	config, err := product(t, build.Builder{Root: sources(t)}, "amd64").ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"COPY --from=build /rootfs /", "USER " + config.Config.User, "WORKDIR " + config.Config.WorkingDir,
	}
	if diff := cmp.Diff(want, base); diff != "" {
		t.Errorf("base (-want +got):\n%s", diff)
	}
	for _, name := range build.Programs() {
		got := stage(t, string(dockerfile), "FROM base AS "+name)
		var want []string
		for _, command := range append([]string{name}, build.Companions(name)...) {
			want = append(want, "COPY --from=build /out/"+command+" /"+command)
		}
		want = append(want, `ENTRYPOINT ["/`+name+`"]`)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	img := product(t, build.Builder{Root: sources(t)}, "amd64")
	for _, file := range []string{"/etc/passwd", "/etc/group"} {
		content, err := os.ReadFile(extract(t, img, file))
		if err != nil {
			t.Fatal(err)
		}
		line := "printf '" + strings.ReplaceAll(string(content), "\n", `\n`) + "' > /rootfs" + file
		if !strings.Contains(string(dockerfile), line) {
			t.Errorf("the Dockerfile lacks %q", line)
		}
	}
}

// stage returns the instructions of one stage of a Dockerfile.
func stage(t *testing.T, dockerfile, from string) []string {
	t.Helper()
	_, rest, found := strings.Cut(dockerfile, from+"\n")
	if !found {
		t.Fatalf("no stage %q", from)
	}
	body, _, _ := strings.Cut(rest, "\nFROM ")
	return strings.Split(strings.TrimSpace(body), "\n")
}
