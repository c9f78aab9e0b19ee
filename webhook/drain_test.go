// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// Once the signal to stop came, the client of a connection is sent elsewhere with the
// answer that it gets, while requests are served until the delay is over.
func TestADrainTakesLeaveOfEveryConnection(t *testing.T) {
	for name, version2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			fake := testclock.NewFakeClock(time.Unix(0, 0))
			d := &drain{clock: fake, delay: 5 * time.Second}
			signalled, signal := context.WithCancel(t.Context())
			late := d.late(signalled)
			var connections atomic.Int64
			server := httptest.NewUnstartedServer(d.farewell(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "yes") // the client says what it did not get
			})))
			server.EnableHTTP2 = version2
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			}
			server.StartTLS()
			defer server.Close()

			const asked = 5
			for range asked {
				callOnce(t, server)
			}
			if got := connections.Load(); got != 1 {
				t.Errorf("%d requests before the signal took %d connections, want 1", asked, got)
			}
			signal()
			for !fake.HasWaiters() { // until the drain has begun
				callOnce(t, server)
			}
			before := connections.Load()
			for range asked {
				callOnce(t, server)
			}
			if got := connections.Load() - before; got < asked-1 {
				t.Errorf("%d requests after the signal took %d connections, want one each", asked, got)
			}
			if late.Err() != nil {
				t.Error("the server stops before the delay is over")
			}
			fake.Step(d.delay)
			<-late.Done()
		})
	}
}

// callOnce sends one request and reads its answer to the end.
func callOnce(t *testing.T, server *httptest.Server) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it is read
	if body, err := io.ReadAll(response.Body); err != nil || string(body) != "yes" {
		t.Fatalf("the answer is %q, %v", body, err)
	}
}
