// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command world stands in for what lies outside the cluster: on every address
// of its network namespace it answers HTTP at port 80 and says which of them
// was asked, so that a test can tell a connection that was blocked from one to
// nowhere.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	server := &http.Server{
		Addr:              ":80",
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "outside world at %s\n", r.Context().Value(http.LocalAddrContextKey))
		}),
	}
	fmt.Fprintln(os.Stderr, "world:", server.ListenAndServe())
	os.Exit(1)
}
