// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/util/wait"
)

// asServer is set in the environment of a process of this test that serves, to the path of its
// keeper; it prints its address once its socket is kept.
const asServer = "SOCKET_TEST_SERVE"

func TestMain(m *testing.M) {
	if path := os.Getenv(asServer); path != "" {
		serveUntilKilled(path)
	}
	os.Exit(m.Run())
}

func TestAConnectionToAServerThatWasKilledIsAnsweredByTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keeper")
	keep(t, path)
	first, address := startServer(t, path)
	if got := ask(t, dial(t, address)); got != "answer" {
		t.Errorf("the first server says %q", got)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed

	waiting := dial(t, address)
	listener, err := Listen(t.Context(), path, "127.0.0.1:0", logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if got := listener.Addr().String(); got != address {
		t.Errorf("the next server listens on %s, want %s", got, address)
	}
	go serve(listener)
	t.Cleanup(func() { _ = listener.Close() })
	if got := ask(t, waiting); got != "answer" {
		t.Errorf("the next server says %q", got)
	}
}

func TestAKeeperThatWasAwayGetsTheSocketAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keeper")
	said := make(chan string, 10)
	log := funcr.New(func(_, line string) { said <- line }, funcr.Options{})
	listener, err := Listen(t.Context(), path, "127.0.0.1:0", log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	await(t, said, "connections are refused should this process be killed")
	for range 2 {
		stop := keep(t, path)
		await(t, said, "the keeper has the socket")
		stop()
		await(t, said, "the keeper of the socket is away")
	}
	stop := keep(t, path)
	await(t, said, "the keeper has the socket")
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dial(t, listener.Addr().String())
	stop()
	await(t, said, "the keeper of the socket is away")
}

func TestWhatCannotListenSaysWhere(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	path := filepath.Join(t.TempDir(), "keeper")
	keep(t, path)
	want := "listen on " + taken.Addr().String()
	if _, err := Listen(t.Context(), path, taken.Addr().String(), logr.Discard()); err == nil || err.Error()[:len(want)] != want {
		t.Errorf("error %v, want one that begins with %q", err, want)
	}
}

func TestAPathWhereNoKeeperCanBeIsAnError(t *testing.T) {
	if err := Keep(t.Context(), filepath.Join(t.TempDir(), "absent", "keeper")); err == nil {
		t.Error("no error")
	}
}

// keep runs a keeper until the test ends or it is told to stop. It is there at the return.
func keep(t *testing.T, path string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Keep(ctx, path) }()
	err := wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, err := os.Stat(path)
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("the keeper does not listen: %v", err)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the keeper: %v", err)
		}
	}
}

// startServer starts another process that serves, and gives its address once its socket is kept.
func startServer(t *testing.T, path string) (*exec.Cmd, string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), asServer+"="+path)
	command.Stderr = t.Output()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server does not say where it listens: %v", err)
	}
	return command, strings.TrimSpace(address)
}

// serveUntilKilled is what that process does.
func serveUntilKilled(path string) {
	kept := make(chan struct{})
	log := funcr.New(func(_, line string) {
		if strings.Contains(line, "the keeper has the socket") {
			close(kept)
		}
	}, funcr.Options{})
	listener, err := Listen(context.Background(), path, "127.0.0.1:0", log)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-kept
	_, _ = fmt.Fprintln(os.Stdout, listener.Addr()) // the test says that it does not come
	serve(listener)
}

// serve answers each connection until the listener is closed.
func serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "answer") // the client says what it did not get
		_ = conn.Close()
	}
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// await reads what was logged until a line contains what is wanted.
func await(t *testing.T, said <-chan string, want string) {
	t.Helper()
	for {
		select {
		case line := <-said:
			if strings.Contains(line, want) {
				return
			}
		case <-time.After(time.Minute): //nolint:forbidigo // only a failure takes as long
			t.Fatalf("nobody says %q", want)
		}
	}
}

func ask(t *testing.T, conn net.Conn) string {
	t.Helper()
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
