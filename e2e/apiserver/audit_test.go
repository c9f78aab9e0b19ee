// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

// What a write has done can be seen before the log has its answer.
func TestTheLogIsSettledOnceAllWritesThatHadBegunAreAnswered(t *testing.T) {
	const write = `{"stage":%q,"auditID":%q,"verb":"create","objectRef":{"resource":"pods"}}`
	log, err := os.Create(filepath.Join(t.TempDir(), "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }() // the test is over
	say := func(format string, args ...any) {
		if _, err := fmt.Fprintf(log, format+"\n", args...); err != nil {
			t.Error(err)
		}
	}
	apiserver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		say(`{"stage":"ResponseComplete","requestURI":%q}`, request.RequestURI)
	}))
	defer apiserver.Close()
	audit, config := &Audit{path: log.Name()}, &rest.Config{Host: apiserver.URL}
	say(write, "RequestReceived", "begun")
	hasty, cancel := context.WithTimeout(t.Context(), 10*pollInterval)
	defer cancel()
	if err := audit.Settle(hasty, config); err == nil {
		t.Error("Settle() did not wait for the answer of a write that had begun")
	}
	say(write, "ResponseComplete", "begun")
	if err := audit.Settle(t.Context(), config); err != nil {
		t.Errorf("Settle() waits for ever: %v", err)
	}
	if counts, err := audit.Writes(Filter{}); err != nil || counts.Total() != 1 {
		t.Errorf("Writes() = %v, %v, want the one write", counts, err)
	}
}
