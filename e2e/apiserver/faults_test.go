// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// outcomes sends requests through faults and lists what came back, and how many
// requests the server saw.
func outcomes(t *testing.T, disturb func(http.RoundTripper) http.RoundTripper, requests int, target string) (answers []int, served int) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	defer server.Close()
	client := &http.Client{Transport: disturb(http.DefaultTransport)}
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
	answers, served := outcomes(t, NewFaults(7, 0.5).Wrap, requests, "/")
	again, _ := outcomes(t, NewFaults(7, 0.5).Wrap, requests, "/")
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

// A request that was on its way is carried out after somebody was told that it was not answered.
func TestWhatIsBelatedIsCarriedOutOnceAndNotAnswered(t *testing.T) {
	const requests = 100
	faults, plan := NewFaults(7, 1), NewFaults(7, 1)
	faults.Belate(time.Millisecond)
	plan.Belate(time.Millisecond)
	var mu sync.Mutex
	got, want, belated := map[string]int{}, map[string]int{}, 0
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body) // what is missing is seen below
		mu.Lock()
		defer mu.Unlock()
		got[string(body)]++
	}))
	defer server.Close()
	client := &http.Client{Transport: faults.Wrap(http.DefaultTransport)}
	for i := range requests {
		body := strconv.Itoa(i)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		planned, _ := plan.draw(http.MethodPost)
		if planned.belated > 0 {
			belated++
			if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
				t.Errorf("a belated request ended in %v, want a timeout", err)
			}
		}
		if planned.belated > 0 || planned.late {
			want[body]++
		}
	}
	faults.Settle()
	if diff := cmp.Diff(want, got); diff != "" || belated == 0 {
		t.Errorf("%d were belated; carried out, by their bodies (-want +got):\n%s", belated, diff)
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
			if answers, served := outcomes(t, tc.faults.Wrap, 3, tc.target); served != 3 || tc.faults.Count() != 0 {
				t.Errorf("answers %v, %d served, %d faults", answers, served, tc.faults.Count())
			}
		})
	}
}

func TestAnInterruptionDisturbsOneWriteOnly(t *testing.T) {
	const requests, nth = 4, 2
	cases := map[string]struct {
		answers []int
		served  int
	}{
		"somebody else was faster":   {[]int{200, 409, 200, 200}, 3},
		"too many requests":          {[]int{200, 429, 200, 200}, 3},
		"an error before it is done": {[]int{200, 500, 200, 200}, 3},
		"an error after it is done":  {[]int{200, 500, 200, 200}, 4},
		"no answer, and not done":    {[]int{200, 0, 200, 200}, 3},
		"no answer, and done":        {[]int{200, 0, 200, 200}, 4},
		"death before it":            {[]int{200, 0, 0, 0}, 1},
		"death after it":             {[]int{200, 0, 0, 0}, 2},
	}
	for name, interruption := range Interruptions(nth) {
		t.Run(name, func(t *testing.T) {
			answers, served := outcomes(t, interruption.Wrap, requests, "/pods")
			if diff := cmp.Diff(cases[name].answers, answers); diff != "" || served != cases[name].served {
				t.Errorf("%d were served, want %d; answers (-want +got):\n%s", served, cases[name].served, diff)
			}
			if interruption.Hit() != "POST /pods" || interruption.Heir() {
				t.Errorf("disturbed: %q, followed by another client: %t", interruption.Hit(), interruption.Heir())
			}
			if answers, _ := outcomes(t, interruption.Wrap, 1, "/pods"); answers[0] != http.StatusOK || interruption.Heir() != interruption.Dead() {
				t.Errorf("the next client is answered %v; it is an heir: %t", answers, interruption.Heir())
			}
		})
	}
	events := Interruptions(1)["too many requests"]
	if answers, _ := outcomes(t, events.Wrap, 1, "/apis/events.k8s.io/v1/events"); answers[0] != http.StatusOK {
		t.Errorf("an Event was disturbed: %v", answers)
	}
}
