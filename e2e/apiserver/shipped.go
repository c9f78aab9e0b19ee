// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Shipped is the controller as it is shipped, built once for several processes.
type Shipped struct {
	server       *Server
	dir, program string
	// flags are those of every process.
	flags []string
}

// Build builds the controller of the server's product; once for all who ask.
func (s *Server) Build(ctx context.Context) (*Shipped, error) {
	if s.shipped != nil {
		return s.shipped, nil
	}
	dir := s.in("shipped")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder of the controller: %w", err)
	}
	b := &Shipped{server: s, dir: dir, program: filepath.Join(dir, "agent-sandbox-controller")}
	build := exec.CommandContext(ctx, "go", "build", "-o", b.program, s.product.Command) //nolint:gosec // The folder is the test's.
	build.Dir = s.product.Module
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the controller: %w\n%s", err, out)
	}
	if s.product.Config != "" {
		if err := b.configure(s.product.Config); err != nil {
			return nil, fmt.Errorf("write the configuration: %w", err)
		}
	}
	s.shipped = b
	return b, nil
}

// configure lets every process have a configuration.
func (b *Shipped) configure(platform string) error {
	path := filepath.Join(b.dir, "platform.yaml")
	b.flags = append(b.flags, "--config="+path)
	return os.WriteFile(path, []byte(platform), 0o600)
}

// Process is a running controller.
type Process struct {
	*Daemon

	// Metrics and Health are the addresses at which it serves them.
	Metrics, Health string
}

// Launch starts a controller that is that user to the apiserver. The caller stops it.
func (b *Shipped) Launch(ctx context.Context, user string, flags ...string) (*Process, error) {
	kubeconfig, err := b.server.Kubeconfig(user, Controllers)
	if err != nil {
		return nil, err
	}
	ports, err := FreePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	p := &Process{Metrics: "127.0.0.1:" + ports[0], Health: "127.0.0.1:" + ports[1]}
	flags = slices.Concat(flags, b.flags, []string{"--kubeconfig=" + kubeconfig,
		"--metrics-bind-address=" + p.Metrics, "--health-probe-bind-address=" + p.Health})
	p.Daemon, err = LaunchIn(b.server.product.Environment, "the controller "+user, b.program, filepath.Join(b.dir, user+".log"), flags...)
	return p, err
}
