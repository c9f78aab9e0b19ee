// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/layout"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/process"
)

// Ports, links and cgroups have the same names in every cluster, so a machine
// has one at a time: the owner file names the state folder of that one, and the
// lock file keeps two commands from changing it at once. Both lie in the folder
// machine of a Cluster.
const (
	lockFile  = "agent-sandbox-cluster.lock"
	ownerFile = "agent-sandbox-cluster.owner"
)

// lock is held until the returned function is called.
func (c *Cluster) lock() (func(), error) {
	path := filepath.Join(c.machine, lockFile)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(
			errors.New("another command is starting or stopping a cluster on this machine: wait until it has ended"),
			file.Close())
	}
	return func() {
		_ = os.Remove(path)
		_ = file.Close()
	}, nil
}

// precheckAlone fails when a cluster with another state folder runs here.
func (c *Cluster) precheckAlone() error {
	raw, err := os.ReadFile(filepath.Join(c.machine, ownerFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("owner of this machine's cluster: %w", err)
	}
	owner := strings.TrimSpace(string(raw))
	if owner == c.paths.Root {
		return nil
	}
	records, err := process.Load(layout.New(owner).Records())
	if err != nil {
		return err
	}
	for _, r := range records {
		if r.Identity.Alive() {
			return fmt.Errorf("a cluster with the state folder %s runs on this machine: stop it first", owner)
		}
	}
	return nil
}

func (c *Cluster) own() error {
	if err := os.WriteFile(filepath.Join(c.machine, ownerFile), []byte(c.paths.Root+"\n"), 0o600); err != nil {
		return fmt.Errorf("owner of this machine's cluster: %w", err)
	}
	return nil
}

func (c *Cluster) disown() error {
	if err := os.Remove(filepath.Join(c.machine, ownerFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("owner of this machine's cluster: %w", err)
	}
	return nil
}
