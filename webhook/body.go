// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
)

const (
	// maxBody is how long a request may be, in bytes: the old and the new object, each
	// as long as an apiserver takes one, and what it says about them.
	maxBody = 7 << 20
	// maxNesting is how deep the JSON of a request may nest. Objects that nest less are
	// decoded, and told what is too deep in them.
	maxNesting = 1000
)

// bounded looks at the body of a request before anything decodes it, so that nobody who
// reaches the port makes the decoder work for him. Of a review that nests too deep only the
// beginning is handed on, to deep, so that it is answered as a review: an apiserver takes any
// other answer for a webhook that is away. The body has its place until the request is
// answered.
func (i *intake) bounded(deep, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := placeOf(r)
		if size > maxBody {
			refuseLength(w)
			return
		}
		leave, err := i.enter(r.Context(), size)
		if err != nil {
			refuseCrowd(w)
			return
		}
		defer leave()
		body, err := i.receive(w, r, size)
		handler := next
		var tooLong *http.MaxBytesError
		switch {
		case errors.As(err, &tooLong):
			refuseLength(w)
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			http.Error(w, fmt.Sprintf("%s: %s: the request did not arrive within %s", us, ruleLimits, i.patience), http.StatusRequestTimeout)
			return
		case err != nil:
			http.Error(w, fmt.Sprintf("%s: read the request: %v", us, err), http.StatusBadRequest)
			return
		case nests(body, maxNesting):
			head := headOfReview.Find(body)
			if head == nil {
				http.Error(w, fmt.Sprintf("%s: %s: the request nests more than %d levels", us, ruleLimits, maxNesting), http.StatusBadRequest)
				return
			}
			body, handler = slices.Concat(head, []byte("}}")), deep
		case !json.Valid(body):
			// The decoder would take it for YAML, of which aliases make much of little.
			http.Error(w, us+": the request is no JSON", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	})
}

func refuseLength(w http.ResponseWriter) {
	http.Error(w, fmt.Sprintf("%s: %s: the request has more than %d bytes", us, ruleLimits, maxBody), http.StatusRequestEntityTooLarge)
}

// nests reports whether JSON nests deeper than a limit. It is no parser.
func nests(body []byte, limit int) bool {
	depth, inText, escaped := 0, false, false
	for _, b := range body {
		switch {
		case escaped:
			escaped = false
		case inText:
			escaped = b == '\\'
			inText = b != '"'
		case b == '"':
			inText = true
		case b == '{' || b == '[':
			if depth++; depth > limit {
				return true
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return false
}

// headOfReview finds a review up to its uid, which apiservers write before the object: that
// so need not be looked into.
var headOfReview = regexp.MustCompile(`^\s*\{(?:\s*"(?:kind|apiVersion)"\s*:\s*"[^"\\]*"\s*,)*\s*"request"\s*:\s*\{\s*"uid"\s*:\s*"[^"\\]+"`)
