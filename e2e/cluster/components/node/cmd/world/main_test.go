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
	var config net.ListenConfig
	conn, err := config.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = datagrams(conn, resolve) }()
	t.Cleanup(func() { _ = conn.Close() })
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "udp", conn.LocalAddr().String())
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
