// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package apiserver

import "syscall"

// diesWithParent has no meaning here: the programs are those of Linux.
func diesWithParent() *syscall.SysProcAttr { return nil }
