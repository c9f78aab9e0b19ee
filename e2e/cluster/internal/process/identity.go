// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process starts the cluster's programs so that they outlive the
// command, recognises them later, and stops those and no others.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Identity names one process for good: a process id alone is given to another
// process sooner or later.
type Identity struct {
	PID int `json:"pid"`
	// StartTime is the kernel's start time of the process, in clock ticks since
	// boot, and Boot the id of that boot.
	StartTime uint64 `json:"startTime"`
	Boot      string `json:"boot"`
}

// proc is where the kernel describes processes.
const proc = "/proc"

// Identify reads the identity of a running process.
func Identify(pid int) (Identity, error) {
	stat, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	boot, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return Identity{}, fmt.Errorf("boot id: %w", err)
	}
	return Identity{PID: pid, StartTime: stat.startTime, Boot: string(bytes.TrimSpace(boot))}, nil
}

// Alive reports whether this very process still runs; one that has exited and
// waits for its parent does not.
func (i Identity) Alive() bool {
	if !i.Exists() {
		return false
	}
	stat, err := readStat(i.PID)
	return err == nil && !stat.exited()
}

// Exists reports whether the process is still in the kernel's table: alive, or
// ended and not yet collected by its parent.
func (i Identity) Exists() bool {
	now, err := Identify(i.PID)
	return err == nil && now == i
}

type stat struct {
	state     byte
	startTime uint64
}

func (s stat) exited() bool { return s.state == 'Z' || s.state == 'X' }

func readStat(pid int) (stat, error) {
	raw, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return parseStat(string(raw))
}

// parseStat reads a line of /proc/PID/stat. The second field is the program's
// name in parentheses and may itself hold spaces and parentheses, so fields are
// counted from the last one that closes.
func parseStat(line string) (stat, error) {
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return stat{}, errors.New("process status without a program name")
	}
	const state, startTime = 0, 19 // Fields 3 and 22 of the whole line.
	fields := strings.Fields(line[end+1:])
	if len(fields) <= startTime {
		return stat{}, fmt.Errorf("process status with %d fields after the name, want more than %d", len(fields), startTime)
	}
	ticks, err := strconv.ParseUint(fields[startTime], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("start time of a process: %w", err)
	}
	return stat{state: fields[state][0], startTime: ticks}, nil
}
