// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/distribution/reference"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image"
)

const shortName = "team/server:1.2"

func TestAnArchiveReadsBackAsALayout(t *testing.T) {
	img := build(t, spec(t, "amd64"))
	folder := untar(t, writeArchive(t, shortName, img))
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("the layout is not sound: %v", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %d images, want 1", len(manifest.Manifests))
	}
	if got, want := manifest.Manifests[0].Digest.String(), digest(t, img); got != want {
		t.Errorf("digest in the layout is %s, want %s", got, want)
	}
}

func TestAnArchiveReadsBackAsADockerArchive(t *testing.T) {
	img := build(t, spec(t, "arm64"))
	tag, err := name.NewTag(shortName)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tarball.ImageFromPath(writeArchive(t, shortName, img), &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(got); err != nil {
		t.Errorf("the archive is not sound: %v", err)
	}
	gotConfig, err := got.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	wantConfig, err := img.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(wantConfig), string(gotConfig)); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

// This is what `ctr images import` does with an archive, and what the kubelet's
// runtime does with the image name of a Pod.
func TestContainerdFindsTheImageUnderTheNameAPodUses(t *testing.T) {
	for name, ref := range map[string]string{
		"a name without a registry": "team/server:1.2",
		"a name of one part":        "python:3.12-slim",
		"a name without a tag":      "team/server",
		"a complete name":           "registry.example:5000/team/pause:3",
	} {
		t.Run(name, func(t *testing.T) {
			img := build(t, spec(t, "amd64"))
			descriptor := containerdImport(t, writeArchive(t, ref, img))
			asked, err := reference.ParseDockerRef(ref)
			if err != nil {
				t.Fatal(err)
			}
			if got := descriptor.Annotations[images.AnnotationImageName]; got != asked.String() {
				t.Errorf("stored as %q, but a Pod with %q asks for %q", got, ref, asked)
			}
			if got, want := descriptor.Digest.String(), digest(t, img); got != want {
				t.Errorf("digest in containerd is %s, want %s", got, want)
			}
		})
	}
}

func TestWriteArchiveSaysWhatIsWrong(t *testing.T) {
	file := write(t, nil)
	for name, test := range map[string]struct{ file, ref, want string }{
		"a folder that is a file": {filepath.Join(file, "image.tar"), shortName, "cannot write the image archive " + file},
		"a folder as file":        {t.TempDir(), shortName, "choose another place"},
		"a name with capitals":    {file, "Team/Server:1", `image name "Team/Server:1"`},
		"a name with a digest": {
			file, "server@sha256:" + strings.Repeat("0", 64), "name the image by a tag",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := image.WriteArchive(test.file, test.ref, build(t, spec(t, "amd64")))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one that says %q", err, test.want)
			}
		})
	}
}

func TestAFailedWriteKeepsTheOldFile(t *testing.T) {
	file := write(t, []byte("old"))
	failure := errors.New("disk full")
	err := image.WriteFile(file, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("error is %v, want %v", err, failure)
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{file}, append(names, hidden...)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "old" {
		t.Errorf("the old file holds %q (%v), want %q", content, err, "old")
	}
}

func writeArchive(t *testing.T, ref string, img v1.Image) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := image.WriteArchive(file, ref, img); err != nil {
		t.Fatal(err)
	}
	return file
}

// containerdImport reads the archive as containerd does and returns the one
// image in it, whose content must be complete.
func containerdImport(t *testing.T, file string) ocispec.Descriptor {
	t.Helper()
	store, err := local.NewStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // Read only.
	top, err := archive.ImportIndex(t.Context(), store, in)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := content.ReadBlob(t.Context(), store, top)
	if err != nil {
		t.Fatal(err)
	}
	var index ocispec.Index
	if err := json.Unmarshal(raw, &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 1 {
		t.Fatalf("containerd finds %d images, want 1", len(index.Manifests))
	}
	complete, _, _, missing, err := images.Check(t.Context(), store, index.Manifests[0], nil)
	if err != nil || !complete {
		t.Fatalf("the image is not complete in containerd: missing %v, error %v", missing, err)
	}
	return index.Manifests[0]
}

func untar(t *testing.T, file string) string {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // Read only.
	root := t.TempDir()
	for archive := tar.NewReader(in); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(root, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(target, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
