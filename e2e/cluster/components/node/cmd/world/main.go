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
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

func main() {
	fmt.Fprintln(os.Stderr, "world:", serve(context.Background()))
	os.Exit(1)
}

// serve answers until something fails.
func serve(ctx context.Context) error {
	failed := make(chan error)
	answers := map[string]func([]byte) []byte{
		":80": func(datagram []byte) []byte { return datagram },
		":53": resolve,
	}
	for at, answer := range answers {
		for network := range addressOptions() {
			conn, err := listen(ctx, network, at)
			if err != nil {
				return err
			}
			go func() { failed <- datagrams(conn, answer) }()
		}
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

// addressOptions are the options of sockets, by kind of network, with which the kernel
// says to which address each datagram came.
func addressOptions() map[string]struct{ level, option int } {
	return map[string]struct{ level, option int }{
		"udp4": {syscall.IPPROTO_IP, syscall.IP_PKTINFO}, "udp6": {syscall.IPPROTO_IPV6, syscall.IPV6_RECVPKTINFO},
	}
}

// listen opens a socket for the datagrams of one kind of network.
func listen(ctx context.Context, network, at string) (*net.UDPConn, error) {
	option := addressOptions()[network]
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failure error
		err := raw.Control(func(fd uintptr) { failure = syscall.SetsockoptInt(int(fd), option.level, option.option, 1) })
		return errors.Join(err, failure)
	}}
	conn, err := config.ListenPacket(ctx, network, at)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", at, err)
	}
	datagrams, isUDP := conn.(*net.UDPConn)
	if !isUDP {
		return nil, fmt.Errorf("listen at %s: it is a %T", at, conn)
	}
	return datagrams, nil
}

// datagrams answers each datagram that has an answer, from the address that it came to.
func datagrams(conn *net.UDPConn, answer func([]byte) []byte) error {
	buffer, ancillary := make([]byte, 1500), make([]byte, 128)
	for {
		n, extra, _, from, err := conn.ReadMsgUDP(buffer, ancillary)
		if err != nil {
			return fmt.Errorf("read a datagram: %w", err)
		}
		if reply := answer(buffer[:n]); reply != nil {
			_, _, _ = conn.WriteMsgUDP(reply, ancillary[:extra], from)
		}
	}
}
