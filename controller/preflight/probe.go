// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// ServePort is where Serve listens in the server's Pod.
	ServePort = 8080

	dialTimeout   = time.Second
	probeInterval = 500 * time.Millisecond
	probeFor      = 8 * time.Second
	// terminationLog is where the kubelet reads what a container has to say at its end.
	terminationLog = "/dev/termination-log"
)

// Answer is what a probe got from one address.
type Answer struct {
	// Ever is whether any attempt connected, Last whether the last one did.
	Ever bool `json:"ever"`
	Last bool `json:"last"`
}

// Answers are those of a probe, by address.
type Answers map[string]Answer

// Probe connects to each address again and again for a few seconds, and leaves what it
// saw where the kubelet finds it.
func Probe(ctx context.Context, addresses []string) error {
	answers := Answers{}
	if len(addresses) > 0 {
		// An attempt that the end of the time cuts short would be taken for a refusal.
		_ = wait.PollUntilContextTimeout(ctx, probeInterval, probeFor, true, func(context.Context) (bool, error) {
			attempt(ctx, addresses, answers)
			return false, nil
		})
	}
	data, err := json.Marshal(answers)
	if err != nil {
		return fmt.Errorf("write down the answers: %w", err)
	}
	if err := os.WriteFile(terminationLog, data, 0o600); err != nil {
		return fmt.Errorf("leave the answers: %w", err)
	}
	return nil
}

// attempt tries every address once, all at the same time.
func attempt(ctx context.Context, addresses []string, answers Answers) {
	open := make([]chan bool, len(addresses))
	for i, address := range addresses {
		open[i] = make(chan bool, 1)
		go func() { open[i] <- connects(ctx, address) }()
	}
	for i, address := range addresses {
		got := <-open[i]
		answers[address] = Answer{Ever: answers[address].Ever || got, Last: got}
	}
}

func connects(ctx context.Context, address string) bool {
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close() // that it was there is all that counts
	return true
}

// Serve answers connections until the context ends.
func Serve(ctx context.Context, address string, out io.Writer) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if _, err := fmt.Fprintf(out, "serving %s\n", listener.Addr()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: dialTimeout}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); ctx.Err() == nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
