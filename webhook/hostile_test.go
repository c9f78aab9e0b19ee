// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A review that no apiserver writes is never admitted by validation, and never the end of
// the replica.
func TestNoMalformedReviewIsAdmitted(t *testing.T) {
	const head, kind = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"7d1f",`, `"kind":{"group":"agents.x-k8s.io","version":"v1beta1","kind":"Sandbox"},"namespace":"tenant","userInfo":{"username":"jane"},`
	bad := sandbox(hostPath)
	spec := func(change, with string) string { return strings.Replace(bad, change, with, 1) }
	bodies := map[string]string{
		"no request":                             `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`,
		"a request that is null":                 `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}`,
		"one in capitals":                        `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","Request":{"uid":"7d1f","operation":"DELETE"}}`,
		"an object of another kind":              bad,
		"a version that there is not":            strings.Replace(head, "/v1", "/v9", 1) + kind + `"operation":"CREATE","object":` + bad + `}}`,
		"an operation in small letters":          head + kind + `"operation":"delete","object":` + bad + `}}`,
		"an operation that is a list":            head + kind + `"operation":["DELETE"],"object":` + bad + `}}`,
		"one that is repeated in capitals":       head + kind + `"operation":"CREATE","OPERATION":"DELETE","object":` + bad + `}}`,
		"a creation with an old object":          head + kind + `"operation":"CREATE","oldObject":` + bad + `,"object":` + bad + `}}`,
		"an update with no old object":           head + kind + `"operation":"UPDATE","object":` + bad + `}}`,
		"an update with an old one that is null": head + kind + `"operation":"UPDATE","oldObject":null,"object":` + bad + `}}`,
		"an update with an old one that is text": head + kind + `"operation":"UPDATE","oldObject":"x","object":` + bad + `}}`,
		"an update of another's status":          head + kind + `"operation":"UPDATE","subResource":"status","oldObject":{},"object":` + bad + `}}`,
		"an update whose old one says nothing":   head + kind + `"operation":"UPDATE","oldObject":{"metadata":[],"spec":3},"object":` + bad + `}}`,
		"an object whose spec is repeated":       head + kind + `"operation":"CREATE","object":` + spec(`"spec": {"operatingMode"`, `"SPEC": {}, "spec": {"operatingMode"`) + `}}`,
		"a number beyond all":                    head + kind + `"operation":"CREATE","object":` + spec(`"volumes"`, `"terminationGracePeriodSeconds": 99999999999999999999999, "volumes"`) + `}}`,
		"one beyond floats":                      head + kind + `"operation":"CREATE","object":` + spec(`"volumes"`, `"priority": 1e999, "volumes"`) + `}}`,
		"text that is none":                      head + kind + `"operation":"CREATE","object":` + spec(`"main"`, "\"ma\xff\xfein\"") + `}}`,
		"half a surrogate":                       head + kind + `"operation":"CREATE","object":` + spec(`"main"`, `"\ud800"`) + `}}`,
		"a user who calls himself one of ours":   head + strings.Replace(kind, "jane", "system:serviceaccount:tenant:agent-sandbox-controller", 1) + `"operation":"CREATE","object":` + bad + `}}`,
		"a dry run with options that are odd":    head + kind + `"operation":"CREATE","dryRun":true,"options":{"kind":"x","apiVersion":"y/z"},"object":` + bad + `}}`,
		"a name that is to be made up":           head + kind + `"operation":"CREATE","object":` + spec(`"name": "box"`, `"generateName": "b-"`) + `}}`,
		"annotations of a megabyte":              head + kind + `"operation":"CREATE","object":` + spec(`"name": "box"`, `"name": "box", "annotations": {"agents.x-k8s.io/`+strings.Repeat("k", 1<<20)+`": ""}`) + `}}`,
	}
	handlers := world{}.start(t)
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			for path, handler := range handlers {
				call := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
				call.Header.Set("Content-Type", "application/json")
				recorder := httptest.NewRecorder()
				handler.ServeHTTP(recorder, call)
				answer := recorder.Body.String()
				if len(answer) > 64<<10 {
					t.Errorf("%s answers with %d bytes", path, len(answer))
				}
				if path == PathValidate && (strings.Contains(answer, `"allowed":true`) || strings.Contains(answer, "panic")) {
					t.Errorf("%s answers %.600s", path, answer)
				}
			}
		})
	}
}
