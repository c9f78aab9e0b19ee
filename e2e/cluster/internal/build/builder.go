// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// goflags replace the user's own: the key of a build must say all about it.
const goflags = "-mod=readonly -buildvcs=false -trimpath"

// unfinished begins the name of the folder of a build that is under way.
const unfinished = ".building-"

// Builder builds components from Source, the folder of their modules, into
// Cache.
type Builder struct {
	Source, Cache string
	toolchain     string
}

// NewBuilder finds the folder of the modules from the current directory and the
// cache folder of the user.
func NewBuilder(ctx context.Context) (*Builder, error) {
	source, err := findSource()
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return nil, fmt.Errorf("the go command does not run, install Go 1.26 or newer: %w", err)
	}
	return &Builder{Source: source, Cache: cache, toolchain: strings.Join(strings.Fields(string(out)), " ")}, nil
}

// CacheDir is where built programs are kept; root without a HOME, as under some
// service managers, gets /var/cache.
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = "/var/cache"
	}
	dir := filepath.Join(base, "agent-sandbox")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("cache of built programs: %w", err)
	}
	return dir, nil
}

func findSource() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("current directory: %w", err)
	}
	for _, candidate := range []string{"components", "e2e/cluster/components"} {
		path := filepath.Join(dir, candidate)
		if _, err := os.Stat(filepath.Join(path, "kubernetes", "go.mod")); err == nil {
			return path, nil
		}
	}
	return "", errors.New("the sources of the cluster's components are not here: run this in e2e/cluster or at the top of the repository")
}

// Dir is the folder of a component's binaries, whether they exist or not.
func (b *Builder) Dir(c Component) (string, error) {
	key, err := Key(c, os.DirFS(filepath.Join(b.Source, c.Name)), b.toolchain)
	if err != nil {
		return "", err
	}
	return filepath.Join(b.Cache, c.Name+"-"+key), nil
}

// Missing lists the components that have to be built.
func (b *Builder) Missing(components []Component) ([]Component, error) {
	var missing []Component
	for _, c := range components {
		dir, err := b.Dir(c)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			missing = append(missing, c)
		} else if err != nil {
			return nil, fmt.Errorf("cache of component %s: %w", c.Name, err)
		}
	}
	return missing, nil
}

// Build compiles a component, unless it is there, beside its final folder and renames
// it into place, so that an interrupted build leaves nothing that looks finished.
func (b *Builder) Build(ctx context.Context, c Component) error {
	dir, err := b.Dir(c)
	if err != nil {
		return err
	}
	unlock, err := b.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := b.removeUnfinished(c); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(b.Cache, unfinished+c.Name+"-")
	if err != nil {
		return fmt.Errorf("build %s: %w", c.Name, err)
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	if err := os.Chmod(temporary, 0o755); err != nil { //nolint:gosec // Programs are for everyone.
		return fmt.Errorf("build %s: %w", c.Name, err)
	}
	for _, p := range c.Programs {
		if err := b.compile(ctx, c, p, temporary); err != nil {
			return err
		}
	}
	if err := os.Rename(temporary, dir); err != nil {
		return fmt.Errorf("build %s: %w", c.Name, err)
	}
	return nil
}

// removeUnfinished removes what builds of the component that were killed left.
func (b *Builder) removeUnfinished(c Component) error {
	folders, err := filepath.Glob(filepath.Join(b.Cache, unfinished+c.Name+"-*"))
	for _, folder := range folders {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	if err != nil {
		return fmt.Errorf("build %s: %w", c.Name, err)
	}
	return nil
}

func (b *Builder) compile(ctx context.Context, c Component, p Program, out string) error {
	args := []string{"build", "-o", filepath.Join(out, p.File), "-ldflags", strings.Join(c.LDFlags, " ")}
	if len(c.Tags) > 0 {
		args = append(args, "-tags", strings.Join(c.Tags, ","))
	}
	cgo := "0"
	if c.CGO {
		cgo = "1"
	}
	cmd := exec.CommandContext(ctx, "go", append(args, p.Package)...) //nolint:gosec // Built from the table of components.
	cmd.Dir = filepath.Join(b.Source, c.Name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo, "GOFLAGS="+goflags, "GOWORK=off")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s of component %s: %w\n%s", p.File, c.Name, err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}

// Link makes links to all programs of the components in bin, under their names
// and aliases.
func (b *Builder) Link(components []Component, bin string) error {
	if err := os.MkdirAll(bin, 0o750); err != nil {
		return fmt.Errorf("links to programs: %w", err)
	}
	for _, c := range components {
		dir, err := b.Dir(c)
		if err != nil {
			return err
		}
		for _, p := range c.Programs {
			for _, name := range append([]string{p.File}, p.Aliases...) {
				if err := os.Symlink(filepath.Join(dir, p.File), filepath.Join(bin, name)); err != nil {
					return fmt.Errorf("link to %s: %w", name, err)
				}
			}
		}
	}
	return nil
}
