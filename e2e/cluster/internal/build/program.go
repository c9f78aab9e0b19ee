// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Program is the path of one program of the components, under its name or an alias.
// What was never built is built first.
func (b *Builder) Program(ctx context.Context, components []Component, name string) (string, error) {
	component, program, err := find(components, name)
	if err != nil {
		return "", err
	}
	dir, err := b.Dir(component)
	if err != nil {
		return "", err
	}
	if err := b.Build(ctx, component); err != nil {
		return "", err
	}
	if name == program.File {
		return filepath.Join(dir, program.File), nil
	}
	return alias(dir, program.File, name)
}

func find(components []Component, name string) (Component, Program, error) {
	var known []string
	for _, c := range components {
		for _, p := range c.Programs {
			names := append([]string{p.File}, p.Aliases...)
			if slices.Contains(names, name) {
				return c, p, nil
			}
			known = append(known, names...)
		}
	}
	slices.Sort(known)
	return Component{}, Program{}, fmt.Errorf("no program is called %q: there are %s", name, strings.Join(known, ", "))
}

// alias is a link beside a program by which it is called under another name.
func alias(dir, file, name string) (string, error) {
	path := filepath.Join(dir, name)
	if err := os.Symlink(file, path); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("link to %s: %w", name, err)
	}
	return path, nil
}

// lock keeps another process from building into the same cache until the returned
// function is called.
func (b *Builder) lock() (func(), error) {
	file, err := os.OpenFile(filepath.Join(b.Cache, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the cache of built programs: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the cache of built programs: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
