// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/image"
)

// tag is what a registry takes as the tag of an image.
var tag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// MainModule is the module path of the repository's root.
const MainModule = "github.com/agent-sandbox-platform/agent-sandbox"

// Programs returns the names of the product's images. Each is the folder below
// cmd, the last part of the image's name and the binary's name in the image.
func Programs() []string {
	return []string{"agent-sandbox-controller", "agent-sandbox-webhook"}
}

// Companions returns the commands that the image of a program holds beside it.
func Companions(program string) []string {
	if program == "agent-sandbox-webhook" {
		return []string{"agent-sandbox-socket"}
	}
	return nil
}

// Builder makes images from the sources below Root.
type Builder struct {
	// Root is the folder of the main module.
	Root string
	// Created dates the images; zero means the Unix epoch.
	Created time.Time
}

// Product makes the image of one of [Programs]: a static binary at /NAME that
// runs as 65532:65532 and knows its version, and beside it its [Companions].
func (b Builder) Product(ctx context.Context, name, version, arch string) (v1.Image, error) {
	if !tag.MatchString(version) {
		return nil, fmt.Errorf("version %q cannot be the tag of an image; name one of letters, digits, '.', '_' and '-' with -version", version)
	}
	files := map[string]program{}
	for _, command := range append([]string{name}, Companions(name)...) {
		files["/"+command] = program{dir: b.Root, pkg: "./cmd/" + command, arch: arch, version: version}
	}
	return b.image(ctx, files, arch, image.Spec{
		Entrypoint: []string{"/" + name},
		User:       fmt.Sprintf("%d:%d", image.NonRoot, image.NonRoot),
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":   name,
			"org.opencontainers.image.version": version,
		},
	})
}

// Probe makes the image of the network probe: /bin/probe, which sleeps unless
// told otherwise.
func (b Builder) Probe(ctx context.Context, arch string) (v1.Image, error) {
	files := map[string]program{"/bin/probe": {dir: filepath.Join(b.Root, "e2e", "cluster"), pkg: "./probe", arch: arch}}
	return b.image(ctx, files, arch, image.Spec{
		Entrypoint: []string{"/bin/probe"},
		Cmd:        []string{"sleep"},
		Env:        []string{"PATH=/bin"},
		User:       fmt.Sprintf("%d:%d", image.NonRoot, image.NonRoot),
	})
}

// image compiles the programs into the files that they are to be in the image.
func (b Builder) image(ctx context.Context, files map[string]program, arch string, spec image.Spec) (v1.Image, error) {
	dir, err := os.MkdirTemp("", "agent-sandbox-image-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the binaries: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // A leftover harms nothing.
	spec.Files = map[string]string{}
	for file, p := range files {
		binary := filepath.Join(dir, filepath.Base(file))
		if err := p.compile(ctx, binary); err != nil {
			return nil, err
		}
		spec.Files[file] = binary
	}
	spec.Architecture, spec.Created = arch, b.Created
	return image.FromBinaries(spec)
}
