// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"archive/tar"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image"
)

func TestFromBinariesConfiguresTheImage(t *testing.T) {
	for _, architecture := range []string{"amd64", "arm64"} {
		got, err := build(t, spec(t, architecture)).ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		want := v1.Config{
			Entrypoint: []string{"/server"},
			Cmd:        []string{"-v"},
			User:       "65532:65532",
			Env:        []string{"PATH=/bin"},
			WorkingDir: "/tmp",
			Labels:     map[string]string{"team": "blue"},
		}
		if diff := cmp.Diff(want, got.Config); diff != "" {
			t.Errorf("configuration (-want +got):\n%s", diff)
		}
		if got.OS != "linux" || got.Architecture != architecture {
			t.Errorf("platform is %s/%s, want linux/%s", got.OS, got.Architecture, architecture)
		}
		if epoch := time.Unix(0, 0); !got.Created.Equal(epoch) {
			t.Errorf("created %s, want %s", got.Created, epoch)
		}
	}
}

func TestFromBinariesLaysOutTheFiles(t *testing.T) {
	s := spec(t, "amd64")
	s.Files["/etc/app/config"] = write(t, []byte("a=b\n"))
	s.Files["/usr/script"] = write(t, []byte("#!/bin/sh\n"))
	type entry struct {
		Name, Target string
		Mode         int64
		Kind         byte
	}
	var got []entry
	for _, header := range entries(t, build(t, s)) {
		got = append(got, entry{header.Name, header.Linkname, header.Mode, header.Typeflag})
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.Gname != "" {
			t.Errorf("%s belongs to %d:%d (%q:%q), want 0:0 without names",
				header.Name, header.Uid, header.Gid, header.Uname, header.Gname)
		}
		if !header.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s is dated %s, want the Unix epoch", header.Name, header.ModTime)
		}
	}
	want := []entry{
		{"bin/", "", 0o755, tar.TypeDir},
		{"bin/server", "../server", 0o777, tar.TypeSymlink},
		{"etc/", "", 0o755, tar.TypeDir},
		{"etc/app/", "", 0o755, tar.TypeDir},
		{"etc/app/config", "", 0o644, tar.TypeReg},
		{"etc/group", "", 0o644, tar.TypeReg},
		{"etc/passwd", "", 0o644, tar.TypeReg},
		{"server", "", 0o755, tar.TypeReg},
		{"tmp/", "", 0o1777, tar.TypeDir},
		{"usr/", "", 0o755, tar.TypeDir},
		{"usr/script", "", 0o755, tar.TypeReg},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// The umask is the process's, so this test and its neighbours are not parallel.
func TestSameFilesHaveTheSameDigestEverywhere(t *testing.T) {
	content := binaryFor(t, elf.EM_X86_64)
	digests := map[string][]string{}
	for _, host := range []struct {
		umask    int
		mode     os.FileMode
		modified time.Time
	}{
		{0o022, 0o755, time.Unix(1_000_000_000, 0)},
		{0o077, 0o600, time.Unix(1_700_000_000, 0)},
	} {
		old := syscall.Umask(host.umask)
		file := filepath.Join(t.TempDir(), "server")
		err := os.WriteFile(file, content, host.mode)
		archive := filepath.Join(t.TempDir(), "image.tar")
		s := spec(t, "amd64")
		s.Files["/server"] = file
		if err == nil {
			err = os.Chtimes(file, host.modified, host.modified)
		}
		img := build(t, s)
		if err == nil {
			err = image.WriteArchive(archive, "team/server:1", img)
		}
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		bytes, err := os.ReadFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		digests["image"] = append(digests["image"], digest(t, img))
		digests["archive"] = append(digests["archive"], string(bytes))
	}
	for what, values := range digests {
		if values[0] != values[1] {
			t.Errorf("two builds differ in their %s", what)
		}
	}
}

func TestDifferentContentHasADifferentDigest(t *testing.T) {
	first := digest(t, build(t, spec(t, "amd64")))
	for name, change := range map[string]func(*image.Spec){
		"another file":  func(s *image.Spec) { s.Files["/more"] = write(t, []byte("x")) },
		"another date":  func(s *image.Spec) { s.Created = time.Unix(86400, 0) },
		"another user":  func(s *image.Spec) { s.User = "1" },
		"another link":  func(s *image.Spec) { s.Symlinks["/bin/server"] = "/server" },
		"another label": func(s *image.Spec) { s.Labels["team"] = "red" },
	} {
		s := spec(t, "amd64")
		change(&s)
		if digest(t, build(t, s)) == first {
			t.Errorf("%s left the digest as it was", name)
		}
	}
}

func TestFromBinariesRefusesWhatCouldNotRun(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*image.Spec)
		want   string
	}{
		"a binary for another architecture": {
			func(s *image.Spec) { s.Architecture = "arm64" },
			"built for EM_X86_64, the image is for arm64",
		},
		"a binary that needs a loader": {
			func(s *image.Spec) { s.Files["/server"] = write(t, binaryFor(t, elf.EM_X86_64, elf.PT_INTERP)) },
			"build it with CGO_ENABLED=0",
		},
		"half a binary": {
			func(s *image.Spec) { s.Files["/server"] = write(t, binaryFor(t, elf.EM_X86_64)[:20]) },
			"not a complete binary",
		},
		"a file that is not there": {
			func(s *image.Spec) { s.Files["/more"] = filepath.Join(t.TempDir(), "missing") },
			"read the file for /more",
		},
		"an unknown architecture": {
			func(s *image.Spec) { s.Architecture = "mips" },
			`architecture "mips" is unknown; use one of amd64, arm64`,
		},
		"a user by name": {
			func(s *image.Spec) { s.User = "nonroot" },
			`user "nonroot" is not numeric`,
		},
		"an entry point that is not in the image": {
			func(s *image.Spec) { s.Entrypoint = []string{"/serve"} },
			`entrypoint "/serve" is no file of the image`,
		},
		"a relative path": {
			func(s *image.Spec) { s.Files["more"] = s.Files["/server"] },
			`"more" is not absolute and clean`,
		},
		"a path that climbs out": {
			func(s *image.Spec) { s.Symlinks["/../more"] = "x" },
			`"/../more" is not absolute and clean`,
		},
		"a file below a file": {
			func(s *image.Spec) { s.Files["/server/more"] = write(t, nil) },
			"/server is not a folder",
		},
		"a link in the place of a folder": {
			func(s *image.Spec) { s.Symlinks["/etc"] = "/usr/etc" },
			"/etc is a folder and something else at once",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(t, "amd64")
			test.change(&s)
			_, err := image.FromBinaries(s)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one that says %q", err, test.want)
			}
		})
	}
}
