// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// tick is the unit of times in /proc, on every architecture that Go knows.
const tick = 10 * time.Millisecond

// diesWithParent lets a process end when the test that started it is killed.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// CPU is how much processor time the process has used since it was started, to a
// hundredth of a second.
func (d *Daemon) CPU() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("processor time of %s: %w", d.name, err)
	}
	used, err := parseCPU(stat)
	if err != nil {
		return 0, fmt.Errorf("processor time of %s: %w", d.name, err)
	}
	return used, nil
}

// parseCPU reads the times of a process in user and kernel mode, the 14th and 15th
// field. The second is a name in parentheses that may hold anything.
func parseCPU(stat []byte) (time.Duration, error) {
	const third, user, system = 3, 14, 15
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from the third on
	if len(fields) <= system-third {
		return 0, fmt.Errorf("%q ends before the %dth field", stat, system)
	}
	var used time.Duration
	for _, field := range [][]byte{fields[user-third], fields[system-third]} {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		used += time.Duration(ticks) * tick
	}
	return used, nil
}
