// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// drain lets a server stop without losing a request. From the signal on it takes leave
// of every connection with the next answer on it, which tells the apiserver to open
// another one, by then to another replica: a connection that is merely closed loses the
// request that is just being written to it. Only after the delay the server stops.
type drain struct {
	clock clock.WithTicker
	delay time.Duration
	begun atomic.Bool
}

// late is a context that ends the delay after ctx does.
func (d *drain) late(ctx context.Context) context.Context {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer cancel()
		<-ctx.Done()
		d.begun.Store(true)
		<-d.clock.After(d.delay)
	}()
	return late
}

// farewell answers on a connection for the last time once the drain has begun. HTTP/2
// turns the header into a GOAWAY, after which requests that were not taken up are sent
// again elsewhere.
func (d *drain) farewell(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.begun.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
