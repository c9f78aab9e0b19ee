// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// dial opens a TCP connection and closes it.
func dial(ctx context.Context, address string, opts options, out io.Writer) int {
	dialer := net.Dialer{Timeout: opts.timeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fail(out, address, err)
	}
	_, _ = fmt.Fprintf(out, "connected %s\n", conn.RemoteAddr())
	_ = conn.Close()
	return 0
}

// get fetches a URL and prints its status and the first line of its body.
func send(ctx context.Context, address string, opts options, out io.Writer) int {
	dialer := net.Dialer{Timeout: opts.timeout}
	conn, err := dialer.DialContext(ctx, "udp", address)
	if err != nil {
		return fail(out, address, err)
	}
	defer conn.Close() //nolint:errcheck // Nothing is lost with it.
	//nolint:forbidigo // The network keeps real time.
	if err := conn.SetDeadline(time.Now().Add(opts.timeout)); err != nil {
		return fail(out, address, err)
	}
	if _, err := io.WriteString(conn, "probe"); err != nil {
		return fail(out, address, err)
	}
	if _, err := conn.Read(make([]byte, 1024)); err != nil {
		return fail(out, address, err)
	}
	_, _ = fmt.Fprintf(out, "answered %s\n", conn.RemoteAddr())
	return 0
}

func get(ctx context.Context, url string, opts options, out io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, opts.timeout)
	defer cancel()
	//nolint:gosec // The URL is the question that the caller asks.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fail(out, url, err)
	}
	client := http.Client{Transport: &http.Transport{
		//nolint:gosec // A probe asks whether a port answers; -insecure is the caller's wish.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: opts.insecure},
	}}
	response, err := client.Do(request) //nolint:gosec // As above.
	if err != nil {
		return fail(out, url, err)
	}
	defer response.Body.Close() //nolint:errcheck // Read only.
	line, err := bufio.NewReader(io.LimitReader(response.Body, 1024)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fail(out, url, err)
	}
	_, _ = fmt.Fprintf(out, "answered %s %s\n", response.Status, strings.TrimSpace(line))
	if response.StatusCode >= http.StatusBadRequest {
		return exitNegative
	}
	return 0
}

// lookup resolves a name as the Pod's own resolver configuration says.
func lookup(ctx context.Context, name string, opts options, out io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, opts.timeout)
	defer cancel()
	resolver := net.Resolver{PreferGo: true}
	addresses, err := resolver.LookupHost(ctx, name)
	if missing, ok := errors.AsType[*net.DNSError](err); ok && missing.IsNotFound {
		_, _ = fmt.Fprintf(out, "not found %s: %v\n", name, err)
		return exitNegative
	}
	if err != nil {
		return fail(out, name, err)
	}
	_, _ = fmt.Fprintf(out, "resolved %s %s\n", name, strings.Join(addresses, " "))
	return 0
}

// fail prints why there was no answer and returns the code for it.
func fail(out io.Writer, target string, err error) int {
	word, code := "failed", exitOther
	netErr, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		word, code = "refused", exitRefused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), isNet && netErr.Timeout():
		word, code = "timeout", exitTimeout
	}
	_, _ = fmt.Fprintf(out, "%s %s: %v\n", word, target, err)
	return code
}
