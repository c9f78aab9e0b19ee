// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/cmd/agent-sandbox-controller/app"
)

func TestTheControllerSendsTracesWhereTheValuesSay(t *testing.T) {
	cases := map[string]struct {
		endpoint string
		port     int
	}{
		"nowhere by default": {"", 0},
		"to a port":          {"http://collector.tracing:14317", 14317},
		"to a port by TLS":   {"https://collector.tracing:443/", 443},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := elsewhere
			in.set = []string{"networkPolicy.enabled=true", "tracing.endpoint=" + tc.endpoint}
			r := render(t, in)
			var options app.Options
			parseArgs(t, r, "q7-blue-controller", options.Bind)
			var sent []string
			for _, variable := range named[*appsv1.Deployment](t, r, "q7-blue-controller").Spec.Template.Spec.Containers[0].Env {
				if variable.Name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
					sent = append(sent, variable.Value)
				}
			}
			var want []string
			if tc.endpoint != "" {
				want = []string{tc.endpoint}
			}
			if diff := cmp.Diff(want, sent); diff != "" || options.Tracing != (tc.endpoint != "") {
				t.Errorf("tracing is %t, endpoint (-want +got):\n%s", options.Tracing, diff)
			}
			open := slices.ContainsFunc(named[*networkingv1.NetworkPolicy](t, r, "q7-blue-controller").Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
				return len(rule.Ports) == 1 && *rule.Ports[0].Protocol == corev1.ProtocolTCP && rule.Ports[0].Port.IntValue() == tc.port
			})
			if open != (tc.port != 0) {
				t.Errorf("port %d is open: %t", tc.port, open)
			}
		})
	}
	// Without a port the exporter dials that of the scheme, which nobody reads as one to open.
	for _, refused := range []string{"collector:4317", "https://collector.tracing", "http://collector.tracing/"} {
		wantFailure(t, install{set: []string{"tracing.endpoint=" + refused}}, "/tracing/endpoint", refused)
	}
}
