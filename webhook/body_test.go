// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

// endless is a body that never ends.
type endless struct{ read int }

func (e *endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = ' '
	}
	e.read += len(into)
	return len(into), nil
}

// deepReview is a review whose object nests so many levels, with what stands before it.
func deepReview(head string, levels int) string {
	return head + `"object": ` + strings.Repeat(`{"a":[`, levels/2) + strings.Repeat(`]}`, levels/2) + `}}`
}

func TestHostileBodiesAreNotDecoded(t *testing.T) {
	const head = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"7d1f",`
	const undecoded = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"7d1f"}}`
	cases := map[string]struct {
		body string
		code int
		// answer is a part of the answer, or of what is handed on in place of an object that is
		// too deep; empty when the body is handed on.
		answer string
	}{
		"a review":                                {head + `"operation":"CREATE"}}`, 200, ""},
		"nothing":                                 {``, 400, "no JSON"},
		"YAML":                                    {"request:\n  uid: 7d1f\n", 400, "no JSON"},
		"YAML that grows with every alias":        {"a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", 400, "no JSON"},
		"a second document":                       {head + `"operation":"CREATE"}} {}`, 400, "no JSON"},
		"as deep as is handed on":                 {deepReview(head, 998), 200, ""},
		"brackets in a text":                      {head + `"name":"\\\"` + strings.Repeat("[", 2000) + `"}}`, 200, ""},
		"brackets that end the text before":       {head + `"name":"\\",` + deepReview("", 1000), 200, undecoded},
		"a deep object":                           {deepReview(head, 1000), 200, undecoded},
		"one as deep as no decoder goes":          {deepReview(head, 200_000), 200, undecoded},
		"lists without an end":                    {head + `"object": ` + strings.Repeat("[", 1<<20), 200, undecoded},
		"with spaces, as no apiserver writes it":  {deepReview(` { "request" : { "uid" : "7d1f", `, 2000), 200, ` { "request" : { "uid" : "7d1f"}}`},
		"a deep body that is no review":           {strings.Repeat("[", 2000), 400, "nests more than 1000 levels"},
		"a uid that only the object has":          {`{"request":{"object":{"uid":"7d1f",` + strings.Repeat(`"a":{`, 2000), 400, "nests more than 1000 levels"},
		"as long as is handed on":                 {`{}` + strings.Repeat(" ", maxBody-2), 200, ""},
		"longer by a byte, whatever is in it":     {strings.Repeat(" ", maxBody+1), 413, "more than 7340032 bytes"},
		"long and deep, of which the length wins": {strings.Repeat("[", maxBody+1), 413, "more than 7340032 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var handed []byte
			called := false
			deep := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.Copy(w, r.Body); err != nil {
					t.Error(err)
				}
			})
			handler := newIntake(testclock.NewFakePassiveClock(time.Unix(0, 0))).bounded(deep, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				called = true
				var err error
				if handed, err = io.ReadAll(r.Body); err != nil {
					t.Error(err)
				}
			}))
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathValidate, strings.NewReader(tc.body)))
			if called != (tc.answer == "") || called && string(handed) != tc.body {
				t.Errorf("handed on: %t with %d of %d bytes", called, len(handed), len(tc.body))
			}
			if recorder.Code != tc.code || !strings.Contains(recorder.Body.String(), tc.answer) {
				t.Errorf("answer %d %.300s, want %d with %q", recorder.Code, recorder.Body, tc.code, tc.answer)
			}
		})
	}
}

// A body without an end is read up to the limit and no further.
func TestABodyWithoutEndIsNotReadOn(t *testing.T) {
	body := &endless{}
	recorder := httptest.NewRecorder()
	handler := newIntake(testclock.NewFakePassiveClock(time.Unix(0, 0))).bounded(nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was handed on") }))
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathValidate, body))
	if recorder.Code != http.StatusRequestEntityTooLarge || body.read > 2*maxBody {
		t.Errorf("answer %d after %d bytes, want 413 after %d", recorder.Code, body.read, maxBody)
	}
}
