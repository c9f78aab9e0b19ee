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

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/layout"
)

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

// MakePodsCgroup makes the cgroup that all Pods are put in, in every hierarchy.
func MakePodsCgroup() error {
	trees, err := podTrees()
	if err != nil {
		return err
	}
	for _, tree := range trees {
		delegate(filepath.Dir(tree))
		if err := os.MkdirAll(tree, 0o755); err != nil { //nolint:gosec // As all cgroups are.
			return fmt.Errorf("cgroup of Pods: %w", err)
		}
		// Version 1 lets no process into a cpuset that names no processor.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := inherit(tree, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate lets cgroups below a version 2 hierarchy use the controllers that the
// kubelet insists on. One that cannot be had is the kubelet's to report: which
// it needs depends on the kernel. Version 1 has no such file.
func delegate(hierarchy string) {
	available, err := os.ReadFile(filepath.Join(hierarchy, "cgroup.controllers"))
	if err != nil {
		return
	}
	for controller := range strings.FieldsSeq(string(available)) {
		if slices.Contains([]string{"cpu", "cpuset", "memory", "pids", "hugetlb"}, controller) {
			_ = os.WriteFile(filepath.Join(hierarchy, "cgroup.subtree_control"), []byte("+"+controller), 0o600)
		}
	}
}

// inherit copies a value from the parent of a version 1 cgroup that has it.
func inherit(tree, name string) error {
	value, err := os.ReadFile(filepath.Join(filepath.Dir(tree), name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(tree, name), value, 0o600) //nolint:gosec // A mounted hierarchy of the kernel.
	}
	if err != nil {
		return fmt.Errorf("cgroup of Pods: %w", err)
	}
	return nil
}

// podTrees are the paths of the Pods' cgroup, in each hierarchy that is mounted.
func podTrees() ([]string, error) {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cgroup hierarchies: %w", err)
	}
	var trees []string
	for _, mount := range cgroupMounts(string(raw)) {
		trees = append(trees, filepath.Join(mount, layout.PodsCgroup))
	}
	return trees, nil
}

// cgroupMounts lists where a mountinfo table has cgroup hierarchies of either
// version.
func cgroupMounts(table string) []string {
	const pointField = 4
	var points []string
	for line := range strings.Lines(table) {
		mount, filesystem, _ := strings.Cut(line, " - ")
		kind, _, _ := strings.Cut(filesystem, " ")
		if fields := strings.Fields(mount); len(fields) > pointField && (kind == "cgroup" || kind == "cgroup2") {
			points = append(points, fields[pointField])
		}
	}
	return points
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
