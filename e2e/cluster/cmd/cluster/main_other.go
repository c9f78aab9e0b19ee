// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

// Command cluster runs a single-node Kubernetes on a Linux machine.
package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "the cluster needs Linux, and this is %s: use a Linux machine, or set KUBECONFIG to a cluster you have\n", runtime.GOOS)
	os.Exit(1)
}
