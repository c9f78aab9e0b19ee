// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"testing"
)

// The standard resolver understands what the world says of names.
func TestEveryNameIsInTheWorld(t *testing.T) {
	at := serving(t, resolve)
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "udp", at.String())
	}}
	got, err := resolver.LookupHost(t.Context(), "any.name.test")
	if err != nil || len(got) != 1 || got[0] != "203.0.113.10" {
		t.Errorf("the name has the addresses %v, %v, want 203.0.113.10", got, err)
	}
}

func TestWhatIsNoQuestionHasNoAnswer(t *testing.T) {
	cases := map[string][]byte{
		"nothing":                 nil,
		"half a header":           make([]byte, 6),
		"no question":             make([]byte, 40),
		"a name without an end":   append([]byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, 3, 'a', 'b', 'c'),
		"a name and nothing more": append([]byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, 1, 'a', 0),
	}
	for name, query := range cases {
		t.Run(name, func(t *testing.T) {
			if got := resolve(query); got != nil {
				t.Errorf("resolve() = %v, want nothing", got)
			}
		})
	}
}

// A datagram comes back from the address that was asked, which is not the first of the
// host.
func TestTheAddressThatWasAskedAnswers(t *testing.T) {
	at := serving(t, func(datagram []byte) []byte { return datagram })
	asked := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 99), Port: at.Port}
	conn, err := net.DialUDP("udp", nil, asked)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte("echo")); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, 8)
	n, err := conn.Read(reply) // from anybody else it would not be read
	if err != nil || string(reply[:n]) != "echo" {
		t.Errorf("the answer is %q, %v", reply[:n], err)
	}
}

// serving answers datagrams on every address until the test ends.
func serving(t *testing.T, answer func([]byte) []byte) *net.UDPAddr {
	t.Helper()
	conn, err := listen(t.Context(), "udp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() { _ = datagrams(conn, answer) }()
	return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: conn.LocalAddr().(*net.UDPAddr).Port}
}
