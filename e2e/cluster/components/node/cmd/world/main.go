// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command world stands in for what lies outside the cluster: on every address
// of its network namespace it answers HTTP at port 80 and says which of them
// was asked, so that a test can tell a connection that was blocked from one to
// nowhere. A datagram to port 80 comes back, and at port 53 every name has the
// address of the world.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	fmt.Fprintln(os.Stderr, "world:", serve(context.Background()))
	os.Exit(1)
}

// serve answers until something fails.
func serve(ctx context.Context) error {
	var config net.ListenConfig
	failed := make(chan error)
	answers := map[string]func([]byte) []byte{
		":80": func(datagram []byte) []byte { return datagram },
		":53": resolve,
	}
	for at, answer := range answers {
		conn, err := config.ListenPacket(ctx, "udp", at)
		if err != nil {
			return fmt.Errorf("listen at %s: %w", at, err)
		}
		go func() { failed <- datagrams(conn, answer) }()
	}
	server := &http.Server{
		Addr:              ":80",
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "outside world at %s\n", r.Context().Value(http.LocalAddrContextKey))
		}),
	}
	go func() { failed <- server.ListenAndServe() }()
	return <-failed
}

// datagrams answers each datagram that has an answer.
func datagrams(conn net.PacketConn, answer func([]byte) []byte) error {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return fmt.Errorf("read a datagram: %w", err)
		}
		if reply := answer(buffer[:n]); reply != nil {
			_, _ = conn.WriteTo(reply, from)
		}
	}
}
