// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// NonRoot is the numeric user and group of the platform's images.
const NonRoot = 65532

const (
	//nolint:gosec // User names, no passwords.
	passwd = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
)

// machines are the architectures that can be built, by their name in an image.
var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64,
	"arm64": elf.EM_AARCH64,
}

// Spec describes an image for Linux.
type Spec struct {
	// Files are the image's files: path in the image to file on this machine.
	Files map[string]string
	// Symlinks are the image's symbolic links: path in the image to target.
	Symlinks map[string]string
	// Entrypoint and Cmd are the command and its default arguments.
	Entrypoint, Cmd []string
	// User is numeric, "UID" or "UID:GID"; empty means root.
	User string
	// Env are NAME=value pairs.
	Env []string
	// WorkingDir is the folder the command starts in; empty means /.
	WorkingDir string
	// Architecture is amd64 or arm64.
	Architecture string
	// Labels are recorded in the image's configuration.
	Labels map[string]string
	// Created dates the image and its entries; zero means the Unix epoch.
	Created time.Time
}

// FromBinaries makes an image with the files and links of spec, the users root
// and nonroot, and /tmp. Errors name the path or field at fault.
func FromBinaries(spec Spec) (v1.Image, error) {
	tree := &Tree{}
	if err := addBase(tree); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Files)) {
		if err := addHostFile(tree, name, spec.Files[name], spec.Architecture); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Symlinks)) {
		if err := tree.AddSymlink(name, spec.Symlinks[name]); err != nil {
			return nil, err
		}
	}
	return FromTree(spec, tree)
}

// FromTree makes an image whose one layer is tree, configured by the fields of
// spec other than Files and Symlinks.
func FromTree(spec Spec, tree *Tree) (v1.Image, error) {
	if len(spec.Entrypoint) > 0 && !tree.Has(spec.Entrypoint[0]) {
		return nil, fmt.Errorf("entrypoint %q is no file of the image", spec.Entrypoint[0])
	}
	layer, err := tree.Layer(created(spec))
	if err != nil {
		return nil, err
	}
	return FromLayer(spec, layer)
}

// FromLayer makes an image of one layer, configured by the fields of spec other
// than Files and Symlinks.
func FromLayer(spec Spec, layer v1.Layer) (v1.Image, error) {
	if _, known := machines[spec.Architecture]; !known {
		return nil, fmt.Errorf("architecture %q is unknown; use one of %s",
			spec.Architecture, strings.Join(slices.Sorted(maps.Keys(machines)), ", "))
	}
	if err := validateUser(spec.User); err != nil {
		return nil, err
	}
	spec.Created = created(spec)
	return assemble(spec, layer)
}

func created(spec Spec) time.Time {
	if spec.Created.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return spec.Created.UTC()
}

func assemble(spec Spec, layer v1.Layer) (v1.Image, error) {
	base := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	base = mutate.ConfigMediaType(base, types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: spec.Created}, CreatedBy: "agent-sandbox image"},
	})
	if err != nil {
		return nil, fmt.Errorf("add the layer to the image: %w", err)
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", spec.Architecture
	file.Created = v1.Time{Time: spec.Created}
	file.Config = v1.Config{
		Entrypoint: spec.Entrypoint,
		Cmd:        spec.Cmd,
		User:       spec.User,
		Env:        spec.Env,
		WorkingDir: spec.WorkingDir,
		Labels:     spec.Labels,
	}
	img, err = mutate.ConfigFile(img, file)
	if err != nil {
		return nil, fmt.Errorf("set the image's configuration: %w", err)
	}
	return img, nil
}

func validateUser(user string) error {
	if user == "" {
		return nil
	}
	for id := range strings.SplitSeq(user, ":") {
		if _, err := strconv.ParseUint(id, 10, 31); err != nil {
			return fmt.Errorf("user %q is not numeric; the kubelet cannot tell whether a name is root, so write UID or UID:GID", user)
		}
	}
	return nil
}

func addBase(tree *Tree) error {
	return errors.Join(
		tree.AddFile("/etc/passwd", modeFile, []byte(passwd)),
		tree.AddFile("/etc/group", modeFile, []byte(group)),
		tree.AddDir("/tmp", modeTemp),
	)
}

func addHostFile(tree *Tree, name, source, architecture string) error {
	body, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf("read the file for %s: %w", name, err)
	}
	mode := int64(modeFile)
	switch {
	case bytes.HasPrefix(body, []byte(elf.ELFMAG)):
		mode = modeProgram
		if err := checkBinary(body, architecture); err != nil {
			return fmt.Errorf("%s (from %s): %w", name, source, err)
		}
	case bytes.HasPrefix(body, []byte("#!")):
		mode = modeProgram
	}
	return tree.AddFile(name, mode, body)
}

// checkBinary refuses a binary that could not start in an image that holds
// nothing else.
func checkBinary(body []byte, architecture string) error {
	file, err := elf.NewFile(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("not a complete binary: %w", err)
	}
	if want, known := machines[architecture]; known && file.Machine != want {
		return fmt.Errorf("built for %s, the image is for %s", file.Machine, architecture)
	}
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP {
			return errors.New("dynamically linked; build it with CGO_ENABLED=0")
		}
	}
	return nil
}
