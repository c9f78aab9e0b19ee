// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// FuzzBody sends any bytes to every path, as whoever reaches the port can. Nothing may
// panic; whatever is a review gets the answer to that review, and
// what is none is not admitted.
func FuzzBody(f *testing.F) {
	paths := []string{PathMutate, PathValidate, PathValidatePolicy}
	const head = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"7d1f",`
	for i := range paths {
		for _, body := range []string{
			``, `{}`, `null`, `[`, `{"request": null}`, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"1"}}`,
			head + `"operation":"CREATE"}}`, head + `"operation":"UPDATE","object":null,"oldObject":7}}`, deepReview(head, 100), deepReview(head, 2000),
			head + `"name":"\ud800","object":{"spec":1e999}}}`, head + `"kind":{"kind":"Sandbox"},"object":"text"}}`, "\xff\xfe" + head,
			head + `"uid":"8","operation":"CREATE","operation":"DELETE"}}`,
		} {
			f.Add(uint8(i), []byte(body))
		}
		for _, kind := range []string{"Sandbox", "SandboxClaim", "ConfigMap"} {
			request := creation("tenant", kind, sandbox(hostPath))
			review, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: reviewType, Request: &request})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), review)
		}
	}
	handlers := world{}.start(f)
	f.Fuzz(func(t *testing.T, path uint8, body []byte) {
		at := paths[int(path)%len(paths)]
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, at, strings.NewReader(string(body)))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		handlers[at].ServeHTTP(recorder, request)
		requireAnswer(t, body, recorder)
	})
}

var reviewType = metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}

// requireAnswer fails the test unless a body got an answer that an apiserver understands.
func requireAnswer(t *testing.T, body []byte, recorder *httptest.ResponseRecorder) {
	t.Helper()
	if slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge}, recorder.Code) {
		return // no review, and an apiserver reads no verdict from it
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || recorder.Code != http.StatusOK || answer.Response == nil {
		t.Fatalf("answer %d %.300s: %v", recorder.Code, recorder.Body, err)
	}
	result := answer.Response.Result
	if result != nil && strings.Contains(result.Message, "panic") {
		t.Errorf("a fault of our own: %s", result.Message)
	}
	if nests(body, maxNesting) || (result != nil && result.Code == http.StatusBadRequest && !answer.Response.Allowed) {
		return // refused without being decoded, or by the decoder
	}
	var review admissionv1.AdmissionReview
	if err := utiljson.Unmarshal(body, &review); err != nil {
		if answer.Response.Allowed {
			t.Errorf("what is no review (%v) was admitted: %s", err, recorder.Body)
		}
		return
	}
	if review.Request != nil && answer.Response.UID != review.Request.UID {
		t.Errorf("the answer is to %q, want %q", answer.Response.UID, review.Request.UID)
	}
}
