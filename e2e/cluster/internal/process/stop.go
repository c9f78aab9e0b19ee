// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// poll is how often a process that should end is looked at.
const poll = 50 * time.Millisecond

// Stop asks a process to end, kills it after grace, and returns when it is
// gone. A process that is already gone, or whose id was given to another one,
// is left alone.
func Stop(ctx context.Context, clk clock.Clock, id Identity, grace time.Duration) error {
	if !id.Alive() {
		return nil
	}
	if err := signal(id, syscall.SIGTERM); err != nil {
		return err
	}
	if waitGone(ctx, clk, id, grace) {
		return nil
	}
	if err := signal(id, syscall.SIGKILL); err != nil {
		return err
	}
	if !waitGone(ctx, clk, id, 10*time.Second) {
		return fmt.Errorf("process %d does not end, not even when killed", id.PID)
	}
	return nil
}

func signal(id Identity, s syscall.Signal) error {
	if err := syscall.Kill(id.PID, s); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("signal %s to process %d: %w", s, id.PID, err)
	}
	return nil
}

func waitGone(ctx context.Context, clk clock.Clock, id Identity, limit time.Duration) bool {
	for end := clk.Now().Add(limit); id.Alive(); {
		if clk.Now().After(end) || ctx.Err() != nil {
			return false
		}
		<-clk.After(poll)
	}
	return true
}

// Matching finds the processes whose executable lies in one of the folders and
// whose command line holds the given argument.
func Matching(folders []string, argument string) ([]Identity, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []Identity
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !runsFrom(pid, folders) || !hasArgument(pid, argument) {
			continue
		}
		if id, err := Identify(pid); err == nil {
			found = append(found, id)
		}
	}
	return found, nil
}

func runsFrom(pid int, folders []string) bool {
	exe, err := os.Readlink(filepath.Join(proc, strconv.Itoa(pid), "exe"))
	if err != nil {
		return false
	}
	for _, folder := range folders {
		if strings.HasPrefix(exe, strings.TrimSuffix(folder, "/")+"/") {
			return true
		}
	}
	return false
}

func hasArgument(pid int, argument string) bool {
	raw, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cmdline"))
	return err == nil && strings.Contains("\x00"+string(raw), "\x00"+argument+"\x00")
}
