// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// serve answers every request with the names of both sides until ctx ends.
func serve(ctx context.Context, address string, out io.Writer) int {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		_, _ = fmt.Fprintf(out, "failed %s: %v\n", address, err)
		return exitOther
	}
	echo, err := config.ListenPacket(ctx, "udp", listener.Addr().String())
	if err != nil {
		_, _ = fmt.Fprintf(out, "failed %s: %v\n", address, err)
		return exitOther
	}
	defer context.AfterFunc(ctx, func() { _ = echo.Close() })()
	go answer(echo)
	_, _ = fmt.Fprintf(out, "serving %s\n", listener.Addr())

	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	server := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = fmt.Fprintf(w, "%s answers %s\n", host, r.RemoteAddr) //nolint:gosec // Plain text.
		}),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		_, _ = fmt.Fprintf(out, "failed %s: %v\n", address, err)
		return exitOther
	}
	return 0
}

// answer sends every datagram back, until the connection is closed.
func answer(conn net.PacketConn) {
	buffer := make([]byte, 1024)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = conn.WriteTo(buffer[:n], from)
	}
}
