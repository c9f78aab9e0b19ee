// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// packages are asked for by name; apt adds what they depend on. None of them may
// depend on perl, which would double the image.
var packages = []string{
	"base-files", "bash", "coreutils", "dash", "findutils", "grep", "hostname",
	"libc-bin", "mawk", "python3", "sed", "util-linux",
}

// apt is the machine's apt, pretending that nothing is installed.
type apt struct {
	// dir is an existing folder for apt's state.
	dir string
	// ownLists takes the package lists in dir instead of the machine's.
	ownLists bool
}

// resolve returns the file names (NAME_VERSION_ARCH.deb, sorted) of packages
// and all that they need.
func (a apt) resolve(ctx context.Context) ([]string, error) {
	out, err := a.run(ctx, append([]string{"install", "-qq", "-y", "--print-uris"}, packages...)...)
	if err != nil {
		return nil, fmt.Errorf("find the Debian packages: %w", err)
	}
	return parseURIs(out)
}

// download puts the packages' archives into a folder and returns their paths.
func (a apt) download(ctx context.Context, folder string) ([]string, error) {
	if err := os.MkdirAll(filepath.Join(folder, "partial"), 0o755); err != nil { //nolint:gosec // Public content.
		return nil, fmt.Errorf("make a folder for Debian packages: %w", err)
	}
	args := []string{"install", "-qq", "-y", "--download-only", "-o", "Dir::Cache::Archives=" + folder}
	if _, err := a.run(ctx, append(args, packages...)...); err != nil {
		return nil, fmt.Errorf("download the Debian packages: %w", err)
	}
	archives, err := filepath.Glob(filepath.Join(folder, "*.deb"))
	if err != nil {
		return nil, fmt.Errorf("list the Debian packages: %w", err)
	}
	slices.Sort(archives)
	return archives, nil
}

// update fetches package lists into the apt's own state.
func (a apt) update(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(a.lists(), "partial"), 0o755); err != nil { //nolint:gosec // Public content.
		return fmt.Errorf("make a folder for package lists: %w", err)
	}
	if _, err := a.run(ctx, "update", "-qq"); err != nil {
		return fmt.Errorf("fetch the package lists: %w", err)
	}
	return nil
}

func (a apt) lists() string { return filepath.Join(a.dir, "lists") }

func (a apt) run(ctx context.Context, args ...string) (string, error) {
	status := filepath.Join(a.dir, "status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return "", fmt.Errorf("make an empty package status: %w", err)
	}
	options := []string{
		"-o", "Dir::State::Status=" + status,
		"-o", "Dir::Cache::PkgCache=",
		"-o", "Dir::Cache::SrcPkgCache=",
		"-o", "Debug::NoLocking=true",
		"-o", "APT::Sandbox::User=",
		"-o", "APT::Install-Recommends=false",
	}
	if a.ownLists {
		options = append(options, "-o", "Dir::State::Lists="+a.lists())
	}
	return run(ctx, "apt-get", append(options, args...)...)
}

// parseURIs reads the lines "'URI' FILE SIZE HASH" of apt-get --print-uris.
func parseURIs(out string) ([]string, error) {
	var files []string
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[0], "'") || !strings.HasSuffix(fields[1], ".deb") {
			continue
		}
		files = append(files, fields[1])
	}
	if len(files) == 0 {
		return nil, errors.New("apt-get names no package to download")
	}
	slices.Sort(files)
	return files, nil
}

// run returns the standard output of a command; an error ends with what the
// command said.
func run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // The programs are named in this package.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s is missing; this image can only be made on Debian or a system derived from it", name)
	case err != nil:
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.Join(strings.Fields(problems.String()), " "))
	}
	return out.String(), nil
}
