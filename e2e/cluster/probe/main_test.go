// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProbe(t *testing.T) {
	open := listen(t)
	closed := listen(t)
	closedAddress := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	silent, err := net.ListenPacket("udp", "127.0.0.1:0") //nolint:noctx // It is closed below.
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // Nothing is lost with it.
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = io.WriteString(w, "hello\nmore\n")
	}))
	defer web.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()

	for name, test := range map[string]struct {
		args []string
		code int
		line string
	}{
		"an open port":              {[]string{"tcp", open.Addr().String()}, 0, "connected 127.0.0.1:"},
		"flags after the target":    {[]string{"tcp", open.Addr().String(), "-timeout", "9s"}, 0, "connected"},
		"flags before the target":   {[]string{"tcp", "-timeout", "9s", open.Addr().String()}, 0, "connected"},
		"a closed port":             {[]string{"tcp", closedAddress}, exitRefused, "refused " + closedAddress},
		"no time to connect":        {[]string{"tcp", open.Addr().String(), "-timeout", "1ns"}, exitTimeout, "timeout"},
		"an address without a port": {[]string{"tcp", "127.0.0.1"}, exitOther, "failed 127.0.0.1"},
		"a web page":                {[]string{"http", web.URL + "/"}, 0, "answered 200 OK hello"},
		"a forbidden page":          {[]string{"http", web.URL + "/no"}, exitNegative, "answered 403 Forbidden hello"},
		"a web server that is away": {[]string{"http", "http://" + closedAddress}, exitRefused, "refused"},
		"no time for the page":      {[]string{"http", web.URL, "-timeout", "1ns"}, exitTimeout, "timeout"},
		"an unknown certificate":    {[]string{"http", secure.URL}, exitOther, "failed"},
		"any certificate":           {[]string{"http", secure.URL, "-insecure"}, exitNegative, "answered 404"},
		"a name in the hosts file":  {[]string{"dns", "localhost"}, 0, "resolved localhost 127.0.0.1"},
		"no time for the name":      {[]string{"dns", "name.invalid", "-timeout", "1ns"}, exitTimeout, "timeout"},
		"a port that is taken":      {[]string{"serve", open.Addr().String()}, exitOther, "failed"},
		"no command":                {nil, exitUsage, "no command given"},
		"a datagram that is lost":   {[]string{"udp", silent.LocalAddr().String(), "-timeout", "50ms"}, exitTimeout, "timeout"},
		"nobody for the datagram":   {[]string{"udp", closedAddress}, exitRefused, "refused"},
		"an unknown command":        {[]string{"sctp", "x"}, exitUsage, `unknown command "sctp"`},
		"no target":                 {[]string{"tcp"}, exitUsage, "tcp: wrong number of arguments"},
		"two targets":               {[]string{"dns", "a", "b"}, exitUsage, "dns: wrong number of arguments"},
		"a target for sleep":        {[]string{"sleep", "5"}, exitUsage, "sleep: wrong number of arguments"},
		"an unknown flag":           {[]string{"tcp", "a:1", "-wait"}, exitUsage, "tcp: flag provided but not defined: -wait"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(t.Context(), test.args, &out); code != test.code {
				t.Errorf("exit code is %d, want %d", code, test.code)
			}
			line, rest, _ := strings.Cut(out.String(), "\n")
			if !strings.HasPrefix(line, test.line) {
				t.Errorf("printed %q, want a line that starts with %q", line, test.line)
			}
			if test.code != exitUsage && rest != "" {
				t.Errorf("printed more than a line: %q", rest)
			}
		})
	}
}

func TestServeAnswersUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"serve", "127.0.0.1:0"}, writer) }()
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, found := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if !found {
		t.Fatalf("printed %q, want the address it serves", line)
	}
	var out bytes.Buffer
	if got := run(t.Context(), []string{"http", "http://" + address}, &out); got != 0 || !strings.Contains(out.String(), "answers 127.0.0.1:") {
		t.Errorf("the server answers %q (exit code %d)", out.String(), got)
	}
	if got := run(t.Context(), []string{"udp", address}, &out); got != 0 {
		t.Errorf("the server does not answer a datagram: %q (exit code %d)", out.String(), got)
	}
	stop()
	if got := <-code; got != 0 {
		t.Errorf("exit code after a stop is %d, want 0", got)
	}
}

func TestSleepEndsWhenItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if code := run(ctx, []string{"sleep"}, io.Discard); code != 0 {
		t.Errorf("exit code is %d, want 0", code)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func TestLoopSaysWhatItReachedAndWhatItOnlyTried(t *testing.T) {
	open, closed := listen(t), listen(t)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"loop", open.Addr().String(), closed.Addr().String()}, writer)
		_ = writer.Close()
	}()
	lines := bufio.NewReader(reader)
	got := map[string]bool{}
	for range 2 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		word, rest, _ := strings.Cut(line, " ")
		target, _, _ := strings.Cut(rest, " ")
		got[word+" "+strings.TrimSuffix(target, ":")] = true
	}
	if !got["reached "+open.Addr().String()] || !got["tried "+closed.Addr().String()] {
		t.Errorf("printed %v, want the open port reached and the closed one tried", got)
	}
	stop()
	if got := <-code; got != 0 {
		t.Errorf("exit code is %d, want 0", got)
	}
}
