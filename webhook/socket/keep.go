// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

// Keep holds the last socket that a server left on the Unix socket at path, until ctx ends. It
// knows one server at a time.
func Keep(ctx context.Context, path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what an earlier process left: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen for the server: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })() // Accept says so
	var k keeper
	defer func() { k.replace(nil) }()
	for {
		conn, err := listener.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for the server: %w", err)
		}
		k.attend(ctx, conn)
	}
}

// keeper has the socket that is kept, or none.
type keeper struct {
	kept *os.File
}

// attend tells a server what is kept, and keeps what it leaves, until it ends. Whatever goes
// wrong between them, the server calls again.
func (k *keeper) attend(ctx context.Context, conn *net.UnixConn) {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // receive says so
	defer func() { _ = conn.Close() }()                         // the other side has ended
	if err := send(conn, k.kept); err != nil {
		return
	}
	for {
		left, err := receive(conn)
		if err != nil {
			return
		}
		k.replace(left)
	}
}

func (k *keeper) replace(left *os.File) {
	if k.kept != nil {
		_ = k.kept.Close() // whoever serves it has it too
	}
	k.kept = left
}
