// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

// arriving is a body that tells of its first read, and then waits until it may go on.
type arriving struct {
	io.Reader
	entered, leave chan struct{}
	begun          bool
}

func (a *arriving) Read(into []byte) (int, error) {
	if !a.begun {
		a.begun = true
		a.entered <- struct{}{}
		<-a.leave
	}
	return a.Reader.Read(into)
}

// held is an intake of so many bytes of short and of long bodies, whose next handler takes
// everything.
func held(short, long int64, wait time.Duration) (*intake, http.Handler) {
	i := newIntake(testclock.NewFakePassiveClock(time.Unix(0, 0)))
	i.short, i.long, i.wait = semaphore.NewWeighted(short), semaphore.NewWeighted(long), wait
	return i, i.bounded(nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

// post hands a body to a handler with the length that it announces.
func post(t *testing.T, handler http.Handler, body io.Reader, announced int64) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathValidate, body)
	request.ContentLength = announced
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

// Long bodies that come all at once are read a few at a time, and all of them in the end.
func TestLongBodiesNeverHoldMoreThanTheBudget(t *testing.T) {
	const long, atOnce, many = 1 << 20, 3, 24
	var holding, most atomic.Int64
	entered, leave := make(chan struct{}), make(chan struct{})
	i := newIntake(testclock.NewFakePassiveClock(time.Unix(0, 0)))
	i.long, i.wait = semaphore.NewWeighted(atOnce*long+long/2), time.Hour
	handler := i.bounded(nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || len(body) != long {
			t.Errorf("%d bytes are handed on, %v", len(body), err)
		}
		holding.Add(-long)
	}))
	codes := make(chan int, many)
	for range many {
		go func() {
			body := &arriving{Reader: strings.NewReader(`"` + strings.Repeat("x", long-2) + `"`), entered: entered, leave: leave}
			codes <- post(t, handler, body, long).Code
		}()
	}
	for done := range many {
		// As many as have a place begin before one of them goes on.
		for range min(atOnce, many-done) - int(holding.Load()/long) {
			<-entered
			most.Store(max(most.Load(), holding.Add(long)))
		}
		select {
		case <-entered:
			t.Fatalf("another body is read while %d bytes are held, of a budget of %d", holding.Load(), atOnce*long+long/2)
		default:
		}
		leave <- struct{}{}
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a body that waited gets %d, want 200", code)
		}
	}
	if most.Load() != atOnce*long {
		t.Errorf("at most %d bytes were held, want %d", most.Load(), atOnce*long)
	}
}

// Who announces much and sends nothing keeps out his like only, however many they are.
func TestSlowGiantsDoNotDelayASmallOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, handler := held(shortBodies, longBodies, waitForPlace)
		unsent, write := io.Pipe()
		for range 10 {
			go post(t, handler, unsent, maxBody-1)
		}
		synctest.Wait() // some have a place and read, the others wait for theirs
		c := clock.RealClock{}
		begin := c.Now()
		for _, announced := range []int64{2, shortBody} {
			if answer := post(t, handler, strings.NewReader("{}"), announced); answer.Code != http.StatusOK || c.Since(begin) > 0 {
				t.Errorf("one that announces %d bytes gets %d %s after %s, want 200 at once", announced, answer.Code, answer.Body, c.Since(begin))
			}
		}
		if answer := post(t, handler, strings.NewReader("{}"), shortBody+1); answer.Code != http.StatusTooManyRequests {
			t.Errorf("a long one gets %d %s while they hold all that there is for those, want 429", answer.Code, answer.Body)
		}
		_ = write.Close() // it never fails
	})
}

// Who finds no place in time is told so before a byte of him is read; one of unknown
// length needs the place of the longest.
func TestBodiesWithoutAPlaceAreAskedToComeAgain(t *testing.T) {
	const short = 100
	cases := map[string]struct {
		short, long, announced int64
		code                   int
	}{
		"a body that still fits":                       {2 * short, 0, short, 200},
		"one that does not":                            {2*short - 1, maxBody, short, 429},
		"one that does not say how long it is":         {maxBody, maxBody - 1, -1, 429},
		"the same where there is room for the longest": {short, maxBody, -1, 200},
		"one that is too long to be read":              {2 * short, maxBody, maxBody + 1, 413},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, handler := held(tc.short, tc.long, 20*time.Millisecond)
			first := &arriving{Reader: strings.NewReader(`"` + strings.Repeat("x", short-2) + `"`), entered: make(chan struct{}), leave: make(chan struct{})}
			answered := make(chan int)
			go func() { answered <- post(t, handler, first, short).Code }()
			<-first.entered
			second := strings.NewReader(`{}`)
			answer := post(t, handler, second, tc.announced)
			if answer.Code != tc.code || (second.Len() == 2) != (tc.code != http.StatusOK) {
				t.Errorf("answer %d %s with %d of 2 bytes unread, want %d", answer.Code, answer.Body, second.Len(), tc.code)
			}
			if tc.code == http.StatusTooManyRequests && (answer.Header().Get("Retry-After") != "1" ||
				!strings.Contains(answer.Body.String(), "too-many-requests") || !strings.Contains(answer.Body.String(), "nothing is wrong with this one")) {
				t.Errorf("answer %v %s, want it to say whose fault it is and when to come again", answer.Header(), answer.Body)
			}
			close(first.leave)
			if code := <-answered; code != http.StatusOK {
				t.Errorf("the first gets %d, want 200", code)
			}
		})
	}
}

// A sender who is gone, and one whose body is refused, leave no place behind.
func TestPlacesAreGivenBack(t *testing.T) {
	i, handler := held(shortBody, maxBody, time.Hour)
	for _, announced := range []int64{-1, shortBody} {
		for name, body := range map[string]io.Reader{
			"a body that breaks off": io.MultiReader(strings.NewReader("{"), failing{}), "no JSON": strings.NewReader("no"),
			"lists without an end": strings.NewReader(strings.Repeat("[", 2*maxNesting)), "more than is read": &endless{}, "a review": strings.NewReader("{}"),
		} {
			post(t, handler, body, announced)
			if !i.long.TryAcquire(maxBody) || !i.short.TryAcquire(shortBody) {
				t.Fatalf("after %s that announces %d bytes the place is not free", name, announced)
			}
			i.long.Release(maxBody)
			i.short.Release(shortBody)
		}
	}
	i.short = semaphore.NewWeighted(0)
	ended, end := context.WithCancel(t.Context())
	end()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(ended, http.MethodPost, PathValidate, strings.NewReader("{}")))
	if recorder.Code != http.StatusTooManyRequests {
		t.Errorf("one who is gone gets %d while he waits, want 429", recorder.Code)
	}
}

// failing is a connection that breaks.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the connection broke") }

// A sender that announces a body and does not send it is cut off and its place is free
// again, through all that stands around the handler in the program.
func TestASlowSenderIsCutOff(t *testing.T) {
	for name, version2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			i := newIntake(clock.RealClock{})
			i.patience, i.wait = 50*time.Millisecond, time.Minute
			i.long = semaphore.NewWeighted(maxBody)
			d := &drain{clock: clock.RealClock{}}
			registered := ctrlwebhook.NewServer(ctrlwebhook.Options{})
			registered.Register(PathValidate, d.farewell(i.bounded(nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))))
			server := httptest.NewUnstartedServer(registered.WebhookMux())
			server.EnableHTTP2 = version2
			server.StartTLS()
			defer server.Close()
			defer server.CloseClientConnections() // whoever is not cut off is now

			unsent, write := io.Pipe()
			// A client that gives up waits for its body.
			late, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			context.AfterFunc(late, func() { _ = write.Close() }) // it never fails
			if code, text := call(t, server, unsent, maxBody); code != http.StatusRequestTimeout || !strings.Contains(text, "did not arrive within 50ms") {
				t.Errorf("the slow one gets %d %s, want 408", code, text)
			}
			// It takes the whole budget, and waits if the slow one still has his place.
			if code, text := call(t, server, strings.NewReader(`{}`), -1); code != http.StatusOK {
				t.Errorf("the next one gets %d %s, want 200", code, text)
			}
		})
	}
}

func call(t *testing.T, server *httptest.Server, body io.Reader, announced int64) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+PathValidate, body)
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = announced
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it is read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// deadlines notes the deadlines of a connection.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// Once a body is there the connection has no deadline any more: it would end the judging,
// and the next request.
func TestTheDeadlineOfABodyEndsWithIt(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	i := newIntake(testclock.NewFakePassiveClock(now))
	connection := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	handler := i.bounded(nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if n := len(connection.set); n != 2 || !connection.set[0].Equal(now.Add(timeToArrive)) || !connection.set[1].IsZero() {
			t.Errorf("deadlines %v, want one after %s, and then none", connection.set, timeToArrive)
		}
	}))
	handler.ServeHTTP(connection, httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathValidate, strings.NewReader("{}")))
	if connection.Code != http.StatusOK {
		t.Errorf("answer %d", connection.Code)
	}
}

// The client of the apiserver follows Retry-After: who asked it hears of no crowd that is
// gone in a second.
func TestAnApiserverComesAgainByItself(t *testing.T) {
	i := newIntake(clock.RealClock{})
	i.wait = time.Millisecond
	if !i.short.TryAcquire(shortBodies) {
		t.Fatal("the budget is not free")
	}
	bounded := i.bounded(nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "judged") }))
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bounded.ServeHTTP(w, r)
		if asked.Add(1) == 1 {
			i.short.Release(shortBodies)
		}
	}))
	defer server.Close()
	client, err := rest.UnversionedRESTClientFor(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()}})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Post().AbsPath(PathValidate).Body([]byte("{}")).Do(t.Context()).Raw()
	if err != nil || string(answer) != "judged" || asked.Load() != 2 {
		t.Errorf("after %d requests the answer is %q, %v, want it judged at the second", asked.Load(), answer, err)
	}
}
