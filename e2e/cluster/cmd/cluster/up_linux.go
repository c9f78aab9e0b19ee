// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/cluster"
)

// up starts the cluster and says how to use it.
func up(ctx context.Context, c *cluster.Cluster, out io.Writer) error {
	if err := c.Up(ctx); err != nil {
		return err
	}
	kubectl, note := "kubectl", ""
	if _, err := exec.LookPath(kubectl); err != nil {
		kubectl = c.Paths().Bin("kubectl")
		note = fmt.Sprintf("this machine has no kubectl, so use %s\n", kubectl)
	}
	_, err := fmt.Fprintf(out, "%stry:\n  export KUBECONFIG=%s\n  %s get pods -A\n", note, c.Paths().Kubeconfig(), kubectl)
	return err
}
