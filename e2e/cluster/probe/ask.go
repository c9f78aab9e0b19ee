// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// asking asks one question and says what came back.
type asking func(ctx context.Context, target string, timeout time.Duration) (answer string, err error)

// askings are the commands that ask a question of the network.
func askings() map[string]asking {
	return map[string]asking{"tcp": dial, "udp": send, "dns": lookup, "dnstcp": lookupByTCP}
}

// askingOf is how a target of several is asked, and the target itself: over TCP where
// none of the other commands is before it.
func askingOf(target string) (ask asking, address string) {
	for command, ask := range askings() {
		if rest, named := strings.CutPrefix(target, command+":"); named {
			return ask, rest
		}
	}
	return dial, target
}

// askAll asks all targets at the same time and prints a line for each, with the code of
// its answer at the beginning and the target behind it.
func askAll(ctx context.Context, targets []string, opts options, out io.Writer) int {
	lines := &lineWriter{out: out}
	var all sync.WaitGroup
	for _, target := range targets {
		all.Go(func() {
			ask, address := askingOf(target)
			var answer strings.Builder
			code := once(ctx, ask, address, opts, &answer)
			_, _ = fmt.Fprintf(lines, "%d %s %s", code, target, answer.String())
		})
	}
	all.Wait()
	return 0
}

// once asks one question, prints the answer and returns the code for it.
func once(ctx context.Context, ask asking, target string, opts options, out io.Writer) int {
	answer, err := ask(ctx, target, opts.timeout)
	if err != nil {
		return fail(out, target, err)
	}
	_, _ = fmt.Fprintln(out, answer)
	return 0
}

// dial opens a TCP connection and closes it.
func dial(ctx context.Context, address string, timeout time.Duration) (string, error) {
	dialer := net.Dialer{Timeout: timeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	_ = conn.Close()
	return fmt.Sprintf("connected %s", conn.RemoteAddr()), nil
}

// again is how long a datagram may be without an answer before it is sent once more: it may
// have been lost.
const again = time.Second

// send sends a UDP datagram, again and again, and waits for the answer.
func send(ctx context.Context, address string, timeout time.Duration) (string, error) {
	dialer := net.Dialer{Timeout: timeout}
	conn, err := dialer.DialContext(ctx, "udp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // Nothing is lost with it.
	for left := timeout; ; left -= again {
		err := sendOnce(conn, min(again, left))
		if err == nil {
			return fmt.Sprintf("answered %s", conn.RemoteAddr()), nil
		}
		if left <= again || !errors.Is(err, os.ErrDeadlineExceeded) {
			return "", err
		}
	}
}

func sendOnce(conn net.Conn, timeout time.Duration) error {
	//nolint:forbidigo // The network keeps real time.
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "probe"); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1024))
	return err
}

// get fetches a URL and prints its status and the first line of its body.
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

// lookup resolves a name as the Pod's own resolver configuration says, or as the server
// does that follows the name after an @.
func lookup(ctx context.Context, target string, timeout time.Duration) (string, error) {
	return resolve(ctx, target, timeout, "")
}

// lookupByTCP is lookup over TCP instead of UDP.
func lookupByTCP(ctx context.Context, target string, timeout time.Duration) (string, error) {
	return resolve(ctx, target, timeout, "tcp")
}

// resolve looks a name up over a network, or over that which resolvers prefer if it is
// empty.
func resolve(ctx context.Context, target string, timeout time.Duration, over string) (string, error) {
	name, server, _ := strings.Cut(target, "@")
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, cmp.Or(over, network), cmp.Or(server, address))
	}}
	for left := timeout; ; left -= again {
		attempt, cancel := context.WithTimeout(ctx, min(again, left))
		addresses, err := resolver.LookupHost(attempt, name)
		ended := attempt.Err() != nil
		cancel()
		if err == nil {
			return fmt.Sprintf("resolved %s %s", name, strings.Join(addresses, " ")), nil
		}
		if left <= again || !ended || ctx.Err() != nil {
			return "", err
		}
	}
}

// fail prints why there was no answer and returns the code for it.
func fail(out io.Writer, target string, err error) int {
	word, code := "failed", exitOther
	missing, isDNS := errors.AsType[*net.DNSError](err)
	netErr, isNet := errors.AsType[net.Error](err)
	switch {
	case isDNS && missing.IsNotFound:
		word, code = "not found", exitNegative
	case errors.Is(err, syscall.ECONNREFUSED):
		word, code = "refused", exitRefused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), isNet && netErr.Timeout():
		word, code = "timeout", exitTimeout
	}
	_, _ = fmt.Fprintf(out, "%s %s: %v\n", word, target, err)
	return code
}
