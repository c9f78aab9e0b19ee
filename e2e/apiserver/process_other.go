// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package apiserver

import (
	"errors"
	"syscall"
	"time"
)

// diesWithParent has no meaning here: the programs are those of Linux.
func diesWithParent() *syscall.SysProcAttr { return nil }

// CPU is not known here.
func (*Daemon) CPU() (time.Duration, error) {
	return 0, errors.New("the processor time of another process is read from /proc, which only Linux has")
}
