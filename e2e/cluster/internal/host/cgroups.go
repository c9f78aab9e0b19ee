// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// podsCgroup is the cgroup that the kubelet makes for all Pods.
const podsCgroup = "kubepods"

// emptying is how long killed processes get to leave their cgroup.
const emptying = 10 * time.Second

// KillPods kills every process of every Pod and removes the Pods' cgroups.
func KillPods(ctx context.Context, clk clock.Clock) error {
	for end := clk.Now().Add(emptying); ; {
		trees, err := podTrees()
		if err != nil {
			return err
		}
		pids := members(trees)
		if len(pids) == 0 {
			return removeCgroups(trees)
		}
		if clk.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("processes %v of Pods do not end, not even when killed", pids)
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-clk.After(50 * time.Millisecond)
	}
}

// podTrees are the Pods' cgroups: one in version 2, one a controller in
// version 1.
func podTrees() ([]string, error) {
	var trees []string
	for _, pattern := range []string{"/sys/fs/cgroup/" + podsCgroup, "/sys/fs/cgroup/*/" + podsCgroup} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("cgroups of Pods: %w", err)
		}
		for _, tree := range found {
			// Version 1 mounts some controllers twice, under a link.
			if real, err := filepath.EvalSymlinks(tree); err == nil && real == tree {
				trees = append(trees, tree)
			}
		}
	}
	return trees, nil
}

func members(trees []string) []int {
	var pids []int
	for _, tree := range trees {
		for _, dir := range cgroupDirs(tree) {
			raw, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			if err != nil {
				continue
			}
			for field := range strings.FieldsSeq(string(raw)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
					pids = append(pids, pid)
				}
			}
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// cgroupDirs lists a cgroup and all below it, parents first.
func cgroupDirs(tree string) []string {
	var dirs []string
	_ = filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	return dirs
}

func removeCgroups(trees []string) error {
	var failed []error
	for _, tree := range trees {
		dirs := cgroupDirs(tree)
		slices.Reverse(dirs)
		for _, dir := range dirs {
			if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				failed = append(failed, fmt.Errorf("remove cgroup: %w", err))
			}
		}
	}
	return errors.Join(failed...)
}
