// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Program asks the test cluster's command for a program, which it builds when it
// is missing.
func Program(ctx context.Context, name string) (string, error) {
	module, err := clusterModule()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "run", "./cmd/cluster", "bin", name) //nolint:gosec // The names are those of this package.
	cmd.Dir = module
	// The flags of the Makefile: all who ask share one build.
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0", "GOWORK=off")
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("find program %s: %w\n%s", name, err, complaint.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// clusterModule is the folder of the test cluster's module.
func clusterModule() (string, error) {
	root, err := Root()
	return filepath.Join(root, "e2e", "cluster"), err
}

// Root is the top folder of the repository, seen from the folder of a test.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("current directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "e2e", "cluster", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the module of the test cluster is in no folder above: run this in the repository")
		}
		dir = filepath.Dir(dir)
	}
}

// FreePorts are ports of the loopback interface that nobody listens on.
func FreePorts(ctx context.Context, count int) ([]string, error) {
	ports := make([]string, 0, count)
	for range count {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = listener.Close() }() // all are held until all are found
		address, isTCP := listener.Addr().(*net.TCPAddr)
		if !isTCP {
			return nil, fmt.Errorf("find a free port: %v is none", listener.Addr())
		}
		ports = append(ports, strconv.Itoa(address.Port))
	}
	return ports, nil
}
