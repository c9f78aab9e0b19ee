// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outcomes sends requests through faults and lists what came back, and how many
// requests the server saw.
func outcomes(t *testing.T, faults *Faults, requests int, target string) (answers []int, served int) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	defer server.Close()
	client := &http.Client{Transport: faults.Wrap(http.DefaultTransport)}
	for range requests {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+target, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			answers = append(answers, 0)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, response.StatusCode)
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return answers, served
}

func TestFaultsComeByTheirSeedBeforeAndAfterARequestIsServed(t *testing.T) {
	const requests = 200
	answers, served := outcomes(t, NewFaults(7, 0.5), requests, "/")
	again, _ := outcomes(t, NewFaults(7, 0.5), requests, "/")
	if diff := cmp.Diff(answers, again); diff != "" {
		t.Errorf("one seed gave two plans (-first +second):\n%s", diff)
	}
	count := map[int]int{}
	for _, code := range answers {
		count[code]++
	}
	for _, code := range []int{0, http.StatusOK, http.StatusConflict, http.StatusTooManyRequests, http.StatusInternalServerError} {
		if count[code] == 0 {
			t.Errorf("no answer was %d: %v", code, count)
		}
	}
	if served <= count[http.StatusOK] || served >= requests {
		t.Errorf("%d of %d requests were served and %d answered well: some faults must come after, some before", served, requests, count[http.StatusOK])
	}
}

func TestFaultsThatAreStoppedAndWatchesLetEverythingThrough(t *testing.T) {
	stopped := NewFaults(7, 1)
	stopped.Stop()
	watching := NewFaults(7, 1)
	for name, tc := range map[string]struct {
		faults *Faults
		target string
	}{"stopped": {stopped, "/"}, "a watch": {watching, "/?watch=true"}, "discovery": {watching, "/apis/apps/v1"}} {
		t.Run(name, func(t *testing.T) {
			if answers, served := outcomes(t, tc.faults, 3, tc.target); served != 3 || tc.faults.Count() != 0 {
				t.Errorf("answers %v, %d served, %d faults", answers, served, tc.faults.Count())
			}
		})
	}
}
