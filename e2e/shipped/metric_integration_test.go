// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package shipped

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	metricsGroup = "external.metrics.k8s.io"
	// metricName is what the autoscaler asks for: claims that are expected, say.
	metricName = "expected_claims"
)

// metric is a number for autoscalers, which they read through the apiserver as they read
// those of a monitoring system.
type metric struct{ value atomic.Int64 }

// serve serves the metric until the test ends.
func (m *metric) serve(e *environment) {
	e.Helper()
	monitoring := httptest.NewTLSServer(http.HandlerFunc(m.answer))
	e.Cleanup(monitoring.Close)
	host, port, err := net.SplitHostPort(monitoring.Listener.Addr().String())
	if err != nil {
		e.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		e.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "monitoring"}}
	service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, host
	e.Create(service)
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1beta1." + metricsGroup},
		"spec": map[string]any{
			"group": metricsGroup, "version": "v1beta1", "insecureSkipTLSVerify": true,
			"groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"service": map[string]any{"namespace": e.Namespace, "name": service.Name, "port": number},
		},
	}}
	if err := e.Client.Create(e.Context(), api); err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() {
		if err := e.Client.Delete(context.Background(), api); err != nil {
			e.Error(err)
		}
	})
}

// answer is the API of external metrics with one metric.
func (m *metric) answer(response http.ResponseWriter, request *http.Request) {
	version := map[string]any{"apiVersion": metricsGroup + "/v1beta1", "kind": "ExternalMetricValueList", "metadata": map[string]any{}}
	switch path := request.URL.Path; {
	case strings.HasSuffix(path, "/"+metricName):
		version["items"] = []any{map[string]any{
			"metricName": metricName, "metricLabels": map[string]string{},
			"timestamp": metav1.Now(), "value": strconv.FormatInt(m.value.Load(), 10),
		}}
	case path == "/apis/"+metricsGroup+"/v1beta1":
		version = map[string]any{"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": metricsGroup + "/v1beta1", "resources": []any{}}
	default:
		response.WriteHeader(http.StatusNotFound)
		return
	}
	response.Header().Set("Content-Type", "application/json")
	answer, err := json.Marshal(version)
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = response.Write(answer) // whoever asked may be gone
}
