// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gvisor is gVisor's containerd shim for machines whose root may not
// lower an OOM score (no CAP_SYS_RESOURCE): the task service is gVisor's own,
// the manager that starts it is ours.
package main

import (
	"context"

	"github.com/containerd/containerd/v2/pkg/shim"
	_ "gvisor.dev/gvisor/pkg/shim/v1/plugin" // Registers gVisor's task service.
)

func main() {
	shim.Run(context.Background(), newManager("io.containerd.runsc.v1"))
}
