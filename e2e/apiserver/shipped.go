// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// Shipped is the controller as it is shipped, built once for several processes.
type Shipped struct {
	server       *Server
	dir, program string
	config       string
}

// Build builds the controller, with the configuration of Platform; once for all who ask.
func (s *Server) Build(ctx context.Context) (*Shipped, error) {
	if s.shipped != nil {
		return s.shipped, nil
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	dir := s.in("shipped")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder of the controller: %w", err)
	}
	b := &Shipped{
		server: s, dir: dir, program: filepath.Join(dir, "agent-sandbox-controller"), config: filepath.Join(dir, "platform.yaml"),
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", b.program, "./cmd/agent-sandbox-controller") //nolint:gosec // The folder is the test's.
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the controller: %w\n%s", err, out)
	}
	platform, err := yaml.Marshal(Platform())
	if err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	if err := os.WriteFile(b.config, platform, 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	s.shipped = b
	return b, nil
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
	flags = append(flags, "--kubeconfig="+kubeconfig, "--config="+b.config,
		"--metrics-bind-address="+p.Metrics, "--health-probe-bind-address="+p.Health)
	p.Daemon, err = Launch("the controller "+user, b.program, filepath.Join(b.dir, user+".log"), flags...)
	return p, err
}
