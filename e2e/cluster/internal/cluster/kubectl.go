// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/process"
)

// kubectl runs the cluster's own kubectl as its administrator and returns what
// it printed.
func (c *Cluster) kubectl(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	return c.program(ctx, stdin, "kubectl", append([]string{"--kubeconfig=" + c.paths.Kubeconfig()}, args...)...)
}

// ctr runs containerd's command in the namespace of Kubernetes.
func (c *Cluster) ctr(ctx context.Context, args ...string) (string, error) {
	return c.program(ctx, nil, "ctr", append([]string{"--address", c.paths.Containerd(), "--namespace", "k8s.io"}, args...)...)
}

func (c *Cluster) program(ctx context.Context, stdin io.Reader, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.paths.Bin(name), args...) //nolint:gosec // A program of the cluster.
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	// The user's own settings must not change what this command sees.
	cmd.Env = append(os.Environ(), "KUBECONFIG=", "KUBERC=off")
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return "", cause
		}
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// watched returns a context that ends, with a DiedError as its cause, as soon as
// a recorded component dies.
func (c *Cluster) watched(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ticker := c.clock.NewTicker(checkInterval)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
			}
			records, err := process.Load(c.paths.Records())
			if err == nil {
				err = process.Check(records)
			}
			if err != nil {
				cancel(err)
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
