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

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
// reaches the port makes the decoder work for him. Apiservers send no such body; to one
// that does, the answer is a review of its own, since an apiserver takes any other for a
// webhook that is away. Refusing is for those who validate. The body has its place until
// the request is answered.
func (i *intake) bounded(path string, next http.Handler) http.Handler {
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
			refuseNesting(w, body, path)
			return
		case !json.Valid(body):
			// The decoder would take it for YAML, of which aliases make much of little.
			http.Error(w, us+": the request is no JSON", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
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

// refuseNesting answers a review whose object nests too deep.
func refuseNesting(w http.ResponseWriter, body []byte, path string) {
	uid := uidOfReview.FindSubmatch(body)
	if uid == nil {
		http.Error(w, fmt.Sprintf("%s: %s: the request nests more than %d levels", us, ruleLimits, maxNesting), http.StatusBadRequest)
		return
	}
	response := &admissionv1.AdmissionResponse{UID: types.UID(uid[1]), Allowed: path == PathMutate}
	if !response.Allowed {
		response.Result = &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: fmt.Sprintf("%s: the object nests more than %d levels: make it flatter", ruleLimits, maxDepth),
		}
	}
	answer, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Response: response,
	})
	if err != nil {
		http.Error(w, fmt.Sprintf("%s: write the answer: %v", us, err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // an apiserver that is gone needs no answer
}

// uidOfReview finds the uid of a review as apiservers write it: before the object, which
// so need not be looked into.
var uidOfReview = regexp.MustCompile(`^\s*\{(?:\s*"(?:kind|apiVersion)"\s*:\s*"[^"\\]*"\s*,)*\s*"request"\s*:\s*\{\s*"uid"\s*:\s*"([^"\\]+)"`)
