// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// ConnectionOptions are what the command line says of the connections to the apiserver. An
// HTTP/2 connection carries many requests at once, and each waits for the frames of the
// others.
type ConnectionOptions struct {
	// Requests is how many connections take turns with what is no watch.
	Requests int
	// SeparateWatches gives the watches a connection of their own; else they share the first
	// of those.
	SeparateWatches bool
}

// Bind declares the flags.
func (o *ConnectionOptions) Bind(flags *flag.FlagSet) {
	flags.IntVar(&o.Requests, "api-connections", 1, "Connections to the apiserver that take turns with requests other than watches.")
	flags.BoolVar(&o.SeparateWatches, "separate-watch-connection", false,
		"Give watches a connection to the apiserver of their own, so that news does not wait behind requests.")
}

// validate refuses what cannot be used.
func (o *ConnectionOptions) validate(refuse func(name string, value any, remedy string)) {
	if o.Requests < 1 {
		refuse("api-connections", o.Requests, "give at least 1")
	}
}

// apply lets every client of a configuration use the same connections.
func (o *ConnectionOptions) apply(config *rest.Config) error {
	if o.Requests == 1 && !o.SeparateWatches {
		return nil // clients of one configuration share one
	}
	var turns connections
	for range o.Requests {
		transport, err := connection(config)
		if err != nil {
			return err
		}
		turns.requests = append(turns.requests, transport)
	}
	turns.watches = turns.requests[0]
	if o.SeparateWatches {
		transport, err := connection(config)
		if err != nil {
			return err
		}
		turns.watches = transport
	}
	config.WrapTransport = func(http.RoundTripper) http.RoundTripper { return &turns }
	return nil
}

// connection makes a transport that shares its connection with no other: client-go shares
// those of configurations that dial in the same way.
func connection(config *rest.Config) (http.RoundTripper, error) {
	const patience = 30 * time.Second // as that of client-go
	own := rest.CopyConfig(config)
	own.Dial = (&net.Dialer{Timeout: patience, KeepAlive: patience}).DialContext
	transport, err := rest.TransportFor(own)
	if err != nil {
		return nil, fmt.Errorf("make a connection to the apiserver: %w", err)
	}
	return transport, nil
}

// connections spread requests.
type connections struct {
	watches  http.RoundTripper
	requests []http.RoundTripper
	// turn counts the requests.
	turn atomic.Uint64
}

var _ http.RoundTripper = (*connections)(nil)

// RoundTrip sends a request on the connection whose turn it is.
func (c *connections) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "true" {
		return c.watches.RoundTrip(request)
	}
	return c.requests[c.turn.Add(1)%uint64(len(c.requests))].RoundTrip(request)
}
