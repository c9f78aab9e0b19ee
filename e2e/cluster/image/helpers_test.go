// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image"
)

// binaryFor returns the smallest file that reads as a static binary for machine.
func binaryFor(t *testing.T, machine elf.Machine, segments ...elf.ProgType) []byte {
	t.Helper()
	header := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: uint16(len(segments)), Shentsize: 64,
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
	header.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	header.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	var out bytes.Buffer
	parts := []any{header}
	for _, segment := range segments {
		parts = append(parts, elf.Prog64{Type: uint32(segment)})
	}
	for _, part := range parts {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// write puts content into a new file of a new folder.
func write(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// spec returns a description that holds one binary, to be changed by tests.
func spec(t *testing.T, architecture string) image.Spec {
	t.Helper()
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[architecture]
	return image.Spec{
		Files:        map[string]string{"/server": write(t, binaryFor(t, machine))},
		Symlinks:     map[string]string{"/bin/server": "../server"},
		Entrypoint:   []string{"/server"},
		Cmd:          []string{"-v"},
		User:         "65532:65532",
		Env:          []string{"PATH=/bin"},
		WorkingDir:   "/tmp",
		Architecture: architecture,
		Labels:       map[string]string{"team": "blue"},
	}
}

func build(t *testing.T, s image.Spec) v1.Image {
	t.Helper()
	img, err := image.FromBinaries(s)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func digest(t *testing.T, d interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	hash, err := d.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

// entries returns the headers of the image's only layer, in their order.
func entries(t *testing.T, img v1.Image) []tar.Header {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 {
		t.Fatalf("image has %d layers, want 1", len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close() //nolint:errcheck // Read only.
	var headers []tar.Header
	for in := tar.NewReader(content); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, *header)
	}
}
