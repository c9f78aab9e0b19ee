// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/shim"
	"golang.org/x/sys/unix"
	gvisorshim "gvisor.dev/gvisor/pkg/shim/v1"
)

// addressFile is where both containerd and the shim look for the socket of a
// running task service.
const addressFile = "address"

// manager starts the task service; stopping and describing stay gVisor's.
type manager struct {
	shim.Manager
}

func newManager(name string) *manager {
	return &manager{Manager: gvisorshim.NewShimManager(name)}
}

// Start serves containerd's "start" call: it returns the address of the
// container's task service, after starting one when there is none.
func (m *manager) Start(ctx context.Context, id string, opts shim.StartOpts) (shim.BootstrapParams, error) {
	address, err := shim.SocketAddress(ctx, opts.Address, id, opts.Debug)
	if err != nil {
		return shim.BootstrapParams{}, fmt.Errorf("address of the task service: %w", err)
	}
	params := shim.BootstrapParams{Version: 2, Address: address, Protocol: "ttrpc"}
	socket, err := shim.NewSocket(address)
	if shim.SocketEaddrinuse(err) {
		if shim.CanConnect(address) {
			return params, writeAddress(address)
		}
		if err = shim.RemoveSocket(address); err == nil {
			socket, err = shim.NewSocket(address)
		}
	}
	if err != nil {
		return shim.BootstrapParams{}, fmt.Errorf("socket of the task service: %w", err)
	}
	// The task service inherits the socket: closing it here must not remove it.
	socket.SetUnlinkOnClose(false)
	defer func() { _ = socket.Close() }()
	listener, err := socket.File()
	if err != nil {
		return shim.BootstrapParams{}, fmt.Errorf("socket of the task service: %w", err)
	}
	defer func() { _ = listener.Close() }()
	if err := writeAddress(address); err != nil {
		return shim.BootstrapParams{}, err
	}
	if err := startService(ctx, id, opts, listener); err != nil {
		return shim.BootstrapParams{}, errors.Join(err, shim.RemoveSocket(address))
	}
	return params, nil
}

// startService runs this binary again as the task service, in a process group
// of its own.
func startService(ctx context.Context, id string, opts shim.StartOpts, listener *os.File) error {
	namespace, err := namespaces.NamespaceRequired(ctx)
	if err != nil {
		return fmt.Errorf("containerd namespace: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("path of the shim: %w", err)
	}
	args := []string{"-namespace", namespace, "-address", opts.Address, "-id", id}
	if opts.Debug {
		args = append(args, "-debug")
	}
	// The service outlives this call, so it must not be bound to its context.
	service := exec.Command(self, args...)
	service.Env = append(os.Environ(), "GOMAXPROCS=2")
	service.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	service.ExtraFiles = []*os.File{listener}
	if err := service.Start(); err != nil {
		return fmt.Errorf("start the task service: %w", err)
	}
	if err := shim.WritePidFile("shim.pid", service.Process.Pid); err != nil {
		return errors.Join(fmt.Errorf("record the task service: %w", err), service.Process.Kill())
	}
	return service.Process.Release()
}

func writeAddress(address string) error {
	if err := os.WriteFile(addressFile, []byte(address), 0o600); err != nil {
		return fmt.Errorf("record the address of the task service: %w", err)
	}
	return nil
}
