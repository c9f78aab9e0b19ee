// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
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
	names := nameServer(t)
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
		"a server that is named":    {[]string{"dns", "known.test@" + names}, 0, "resolved known.test 192.0.2.1"},
		"the same over TCP":         {[]string{"dnstcp", "known.test@" + names}, 0, "resolved known.test 192.0.2.1"},
		"a name that is not known":  {[]string{"dns", "unknown.test@" + names}, exitNegative, "not found unknown.test"},
		"a server that is away":     {[]string{"dnstcp", "known.test@" + closedAddress}, exitOther, "failed known.test"},
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

// nameServer knows one name, over UDP and TCP, and returns its address.
func nameServer(t *testing.T) string {
	t.Helper()
	stream := listen(t)
	datagrams, err := net.ListenPacket("udp", stream.Addr().String()) //nolint:noctx // It is closed below.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = datagrams.Close() })
	go func() {
		buffer := make([]byte, 1024)
		for {
			n, from, err := datagrams.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply := answerName(buffer[:n]); reply != nil {
				_, _ = datagrams.WriteTo(reply, from)
			}
		}
	}()
	go func() {
		for {
			conn, err := stream.Accept()
			if err != nil {
				return
			}
			go serveNames(conn)
		}
	}()
	return stream.Addr().String()
}

// serveNames answers queries over TCP, each behind its length.
func serveNames(conn net.Conn) {
	defer conn.Close() //nolint:errcheck // Nothing is lost with it.
	for {
		var length uint16
		if err := binary.Read(conn, binary.BigEndian, &length); err != nil {
			return
		}
		query := make([]byte, length)
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply := answerName(query)
		_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	}
}

// answerName answers a query: known.test has one address, and no other name exists. What
// is no query has no answer.
func answerName(query []byte) []byte {
	const header, typeA = 12, 1
	if len(query) < header {
		return nil
	}
	question := header
	for query[question] != 0 {
		question += int(query[question]) + 1
	}
	name, end := query[header:question+1], question+5
	reply := append([]byte{query[0], query[1], 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0}, query[header:end]...)
	switch {
	case string(name) != "\x05known\x04test\x00":
		reply[3] = 3 // there is no such name
	case binary.BigEndian.Uint16(query[question+1:]) == typeA:
		reply[7] = 1
		reply = append(reply, 0xc0, header, 0, typeA, 0, 1, 0, 0, 0, 1, 0, 4, 192, 0, 2, 1)
	}
	return reply
}

// A datagram that is lost is sent again.
func TestALostDatagramIsNoAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		command, target string
		reply           func([]byte) []byte
	}{
		"udp": {"udp", "", func(sent []byte) []byte { return sent }},
		"dns": {"dns", "known.test@", answerName},
	} {
		t.Run(name, func(t *testing.T) {
			var config net.ListenConfig
			lossy, err := config.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = lossy.Close() })
			go func() {
				buffer := make([]byte, 512)
				for received := 1; ; received++ {
					n, from, err := lossy.ReadFrom(buffer)
					if err != nil {
						return
					}
					if received > 1 {
						_, _ = lossy.WriteTo(tc.reply(buffer[:n]), from)
					}
				}
			}()
			var out strings.Builder
			if code := run(t.Context(), []string{tc.command, tc.target + lossy.LocalAddr().String(), "-timeout", "30s"}, &out); code != 0 {
				t.Errorf("it ended with %d: %s", code, &out)
			}
		})
	}
}

// Many questions are asked at once, and each has its own answer.
func TestAskTellsOfEachTarget(t *testing.T) {
	open, closed, names := listen(t).Addr().String(), listen(t), nameServer(t)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"ask", open, "tcp:" + closed.Addr().String(), "udp:" + names, "dns:known.test@" + names, "dnstcp:unknown.test@" + names, "-timeout", "300ms"}
	if code := run(t.Context(), args, &out); code != 0 {
		t.Fatalf("exit code is %d: %s", code, out.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(lines)
	want := []string{
		"0 " + open + " connected", "0 dns:known.test@" + names + " resolved", "10 tcp:" + closed.Addr().String() + " refused",
		"11 udp:" + names + " timeout", "13 dnstcp:unknown.test@" + names + " not found",
	}
	if len(lines) != len(want) {
		t.Fatalf("printed %q, want a line for each target", lines)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("printed %q, want a line that begins with %q", line, want[i])
		}
	}
}

// A target that answers is told once, until it is lost; one that never does is told too.
func TestALineForEachChangeOfATarget(t *testing.T) {
	down := errors.New("down")
	cases := map[string]struct {
		errs []error
		want []string
	}{
		"it answers at once, and again": {[]error{nil, nil}, []string{"reached a:1 at attempt 1"}},
		"it never answers":              {[]error{down, down, down, down, down, down}, []string{"tried a:1: 5 attempts failed"}},
		"it answers after a while": {
			[]error{down, down, down, down, down, nil}, []string{"tried a:1: 5 attempts failed", "reached a:1 at attempt 6"},
		},
		"an answer that is missing": {[]error{nil, down, down, down, down, nil}, []string{"reached a:1 at attempt 1"}},
		"it is lost, and comes back": {
			[]error{nil, nil, down, down, down, down, down, nil},
			[]string{"reached a:1 at attempt 1", "lost a:1 at attempt 7 after 2 answers", "reached a:1 at attempt 8"},
		},
		"it is lost twice, and each time's answers are counted": {
			[]error{nil, nil, down, down, down, down, down, nil, down, down, down, down, down},
			[]string{
				"reached a:1 at attempt 1", "lost a:1 at attempt 7 after 2 answers",
				"reached a:1 at attempt 8", "lost a:1 at attempt 13 after 1 answers",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			known := hammered{target: "a:1"}
			for _, err := range tc.errs {
				if line := known.after(err); line != "" {
					got = append(got, line)
				}
			}
			if !slices.Equal(got, tc.want) || known.attempts != len(tc.errs) {
				t.Errorf("%d attempts gave %q, want %q", known.attempts, got, tc.want)
			}
		})
	}
}

func TestLoopSaysWhatItReachedAndWhatItOnlyTried(t *testing.T) {
	open, closed, names := listen(t), listen(t), nameServer(t)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"loop", open.Addr().String(), closed.Addr().String(), "udp:" + names, "dns:known.test@" + names, "dnstcp:known.test@" + closed.Addr().String()}, writer)
		_ = writer.Close()
	}()
	lines := bufio.NewReader(reader)
	got := map[string]bool{}
	for range 5 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		word, rest, _ := strings.Cut(line, " ")
		target, _, _ := strings.Cut(rest, " ")
		got[word+" "+strings.TrimSuffix(target, ":")] = true
	}
	for _, want := range []string{
		"reached " + open.Addr().String(), "tried " + closed.Addr().String(), "tried udp:" + names,
		"reached dns:known.test@" + names, "tried dnstcp:known.test@" + closed.Addr().String(),
	} {
		if !got[want] {
			t.Errorf("printed %v, want %q among it", got, want)
		}
	}
	stop()
	if got := <-code; got != 0 {
		t.Errorf("exit code is %d, want 0", got)
	}
}
