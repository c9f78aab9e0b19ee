// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/host"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/process"
)

// stopGrace is how long a component gets to end by itself.
const stopGrace = 5 * time.Second

// reapLimit is how long an ended process may wait to be collected by init.
const reapLimit = 3 * time.Second

// Down stops the cluster and removes all that it made, data included. Without a
// cluster it does nothing.
func (c *Cluster) Down(ctx context.Context) error {
	if err := c.precheckUser(); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(c.paths.Root); errors.Is(err, os.ErrNotExist) {
		c.say("there is no cluster to stop")
		return nil
	}
	start := c.clock.Now()
	if err := c.tearDown(ctx); err != nil {
		return err
	}
	c.say("the cluster is stopped and removed after %s", c.clock.Since(start).Round(100*time.Millisecond))
	return nil
}

// tearDown removes whatever there is of a cluster, complete or not. It goes on
// after a failure, so that as little as possible is left.
func (c *Cluster) tearDown(ctx context.Context) error {
	if err := c.precheckAlone(); err != nil {
		return err
	}
	records, err := process.Load(c.paths.Records())
	if err != nil {
		return err
	}
	// The kubelet goes first, or it would start again what is stopped after it.
	err = errors.Join(
		c.stopRecorded(ctx, records, nameKubelet),
		c.stopPods(ctx),
		c.stopRecorded(ctx, records, reversed(startOrder())...),
	)
	host.UnmakePolicyRules(ctx)
	host.UnmakeWorld(ctx)
	host.UnmakeNodeDNS(ctx)
	host.RemoveNetwork(ctx)
	err = errors.Join(err,
		host.Unmount(c.paths.Root, c.paths.Run),
		host.Restore(ctx, c.paths.Saved()),
		host.Remove(c.paths.Run),
	)
	if err != nil {
		return fmt.Errorf("the cluster was not removed completely, and %s is kept: %w", c.paths.Root, err)
	}
	c.awaitReaped(ctx, records)
	return errors.Join(host.Remove(c.paths.Root), c.disown())
}

// awaitReaped gives init a moment to collect what has ended, so that whoever
// compares the processes of before and after finds none left.
func (c *Cluster) awaitReaped(ctx context.Context, records []process.Record) {
	for end := c.clock.Now().Add(reapLimit); ctx.Err() == nil && c.clock.Now().Before(end); {
		if !slices.ContainsFunc(records, func(r process.Record) bool { return r.Identity.Exists() }) {
			return
		}
		<-c.clock.After(checkInterval)
	}
}

// programFolders are the folders that the cluster's programs really lie in.
func (c *Cluster) programFolders() []string {
	links, _ := filepath.Glob(c.paths.In("bin", "*"))
	var folders []string
	for _, link := range links {
		if target, err := filepath.EvalSymlinks(link); err == nil {
			folders = append(folders, filepath.Dir(target))
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

func reversed(names []string) []string {
	slices.Reverse(names)
	return names
}

func (c *Cluster) stopRecorded(ctx context.Context, records []process.Record, names ...string) error {
	var failed []error
	for _, name := range names {
		for _, r := range records {
			if r.Name != name {
				continue
			}
			if err := process.Stop(ctx, c.clock, r.Identity, stopGrace); err != nil {
				failed = append(failed, fmt.Errorf("stop %s: %w", name, err))
			}
		}
	}
	return errors.Join(failed...)
}

// stopPods ends the processes of all Pods and the shims that look after them. A
// shim is known by its program, which is ours, and by the socket of this
// cluster's containerd on its command line.
func (c *Cluster) stopPods(ctx context.Context) error {
	if err := host.KillPods(ctx, c.clock); err != nil {
		return err
	}
	shims, err := process.Matching(c.programFolders(), c.paths.Containerd())
	if err != nil {
		return err
	}
	var failed []error
	for _, shim := range shims {
		failed = append(failed, process.Stop(ctx, c.clock, shim, time.Second))
	}
	// A shim may have started something more before it ended.
	return errors.Join(append(failed, host.KillPods(ctx, c.clock))...)
}
