// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/agent-sandbox-platform/agent-sandbox/webhook/socket"
)

// A request that comes while nobody serves waits for the process that comes next.
func TestARequestWaitsForTheNextServer(t *testing.T) {
	keeper := filepath.Join(t.TempDir(), "keeper")
	go func() { _ = socket.Keep(t.Context(), keeper) }() // what follows fails without it
	certificate := httptest.NewTLSServer(nil)
	t.Cleanup(certificate.Close)
	options := []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate.TLS.Certificates[0], nil }
	}}
	await(t, "the keeper listens", func() bool { _, err := os.Stat(keeper); return err == nil })
	o := Options{Port: freePort(t), SocketKeeper: keeper}
	client := certificate.Client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port))
	ask := func() (answer, protocol string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+"/judge", http.NoBody)
		if err != nil {
			return err.Error(), ""
		}
		response, err := client.Do(request)
		if err != nil {
			return err.Error(), ""
		}
		defer func() { _ = response.Body.Close() }() // it is read
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err.Error(), ""
		}
		return string(body), response.Proto
	}

	stop := start(t, newListening(&o, options), "first")
	if answer, protocol := ask(); answer != "first" || protocol != "HTTP/2.0" {
		t.Errorf("%q answers over %s, want the first server over HTTP/2.0", answer, protocol)
	}
	stop()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("nobody takes connections meanwhile: %v", err)
	}
	_ = conn.Close() // that it was made is enough
	waiting := make(chan string)
	go func() {
		answer, _ := ask()
		waiting <- answer
	}()
	second := newListening(&o, options)
	var asked atomic.Int64
	second.judges = func() bool { return asked.Add(1) > 3 }
	start(t, second, "second")
	if answer := <-waiting; answer != "second" {
		t.Errorf("who asked meanwhile hears %q", answer)
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("the server asks %d times whether it can judge, want until it can", n)
	}
}

// start serves one word, until the test ends or it is told to stop.
func start(t *testing.T, l *listening, word string) (stop func()) {
	t.Helper()
	l.Register("/judge", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, word) // the client says what it did not get
	}))
	if l.StartedChecker()(nil) == nil {
		t.Error("a server that was not started says that it was")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Start(ctx) }()
	await(t, "the server listens", func() bool { return l.StartedChecker()(nil) == nil })
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the %s server: %v", word, err)
		}
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return done(), nil
	})
	if err != nil {
		t.Fatalf("gave up waiting until %s: %v", what, err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // the port is wanted, not the listener
	address, _ := listener.Addr().(*net.TCPAddr)
	return address.Port
}
