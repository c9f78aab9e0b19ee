// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image/build"
)

const webhook = "agent-sandbox-webhook"

// sources returns the root of a repository like this one, whose webhook prints
// its version.
func sources(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "go.mod"), "module "+build.MainModule+"\n\ngo 1.26\n\n"+
		"require k8s.io/component-base v0.0.0\n\nreplace k8s.io/component-base => ./component-base\n")
	writeFile(t, filepath.Join(root, "component-base", "go.mod"), "module k8s.io/component-base\n\ngo 1.26\n")
	writeFile(t, filepath.Join(root, "component-base", "version", "version.go"),
		"package version\n\nvar gitVersion = \"none\"\n\nfunc Get() string { return gitVersion }\n")
	for _, command := range append([]string{webhook}, build.Companions(webhook)...) {
		writeFile(t, filepath.Join(root, "cmd", command, "main.go"),
			"package main\n\nimport (\n\t\"os\"\n\n\t\"k8s.io/component-base/version\"\n)\n\nfunc main() { os.Stdout.WriteString(version.Get()) }\n")
	}
	return root
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func product(t *testing.T, builder build.Builder, arch string) v1.Image {
	t.Helper()
	img, err := builder.Product(t.Context(), webhook, "v1.2.3", arch)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func digest(t *testing.T, img v1.Image) string {
	t.Helper()
	hash, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

// extract writes a file of the image to this machine and returns its path.
func extract(t *testing.T, img v1.Image, name string) string {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close() //nolint:errcheck // Read only.
	for in := tar.NewReader(content); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("no %s in the image", name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if "/"+header.Name != name {
			continue
		}
		body, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(file, body, os.FileMode(header.Mode)); err != nil {
			t.Fatal(err)
		}
		return file
	}
}

func TestTheSameSourcesHaveTheSameDigestInEveryFolder(t *testing.T) {
	first := product(t, build.Builder{Root: sources(t)}, "amd64")
	t.Setenv("GOFLAGS", "-gcflags=-N")
	t.Setenv("CGO_ENABLED", "1")
	t.Setenv("GOAMD64", "v3")
	second := product(t, build.Builder{Root: sources(t)}, "amd64")
	if digest(t, first) != digest(t, second) {
		t.Errorf("digests %s and %s differ", digest(t, first), digest(t, second))
	}
	dated := product(t, build.Builder{Root: sources(t), Created: time.Unix(86400, 0)}, "amd64")
	if digest(t, first) == digest(t, dated) {
		t.Error("another date left the digest as it was, so the date is not used")
	}
}

func TestAProductImageRunsItsProgramAsNonRoot(t *testing.T) {
	img := product(t, build.Builder{Root: sources(t)}, runtime.GOARCH)
	got, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		Entrypoint: []string{"/" + webhook},
		User:       "65532:65532",
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":   webhook,
			"org.opencontainers.image.version": "v1.2.3",
		},
	}
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	for _, command := range []string{webhook, "agent-sandbox-socket"} {
		out, err := exec.CommandContext(t.Context(), extract(t, img, "/"+command)).Output()
		if err != nil || string(out) != "v1.2.3" {
			t.Errorf("%s in the image prints %q (%v), want its version v1.2.3", command, out, err)
		}
	}
}

func TestAProductImageForAnotherArchitecture(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		config, err := product(t, build.Builder{Root: sources(t)}, arch).ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != arch {
			t.Errorf("architecture is %s, want %s", config.Architecture, arch)
		}
	}
}

func TestTheProbeImageStartsTheProbe(t *testing.T) {
	root, err := build.FindRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	img, err := build.Builder{Root: root}.Probe(t.Context(), runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	command := slices.Concat(config.Config.Entrypoint, config.Config.Cmd)
	if diff := cmp.Diff([]string{"/bin/probe", "sleep"}, command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if config.Config.User != "65532:65532" {
		t.Errorf("user is %q, want 65532:65532", config.Config.User)
	}
	extract(t, img, "/bin/probe")
}
