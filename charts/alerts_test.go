// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
	"github.com/agent-sandbox-platform/agent-sandbox/webhook"
)

// names collects the names of the metrics that are registered.
type names map[string]bool

// Register implements prometheus.Registerer.
func (n names) Register(c prometheus.Collector) error {
	described := make(chan *prometheus.Desc, 16)
	c.Describe(described)
	close(described)
	for d := range described {
		n[regexp.MustCompile(`fqName: "([^"]*)"`).FindStringSubmatch(d.String())[1]] = true
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (n names) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		_ = n.Register(c) // it never fails
	}
}

// Unregister implements prometheus.Registerer.
func (names) Unregister(prometheus.Collector) bool { return false }

// Every alert asks, in Prometheus's language, for metrics that the webhook serves, and
// only for those of its release.
func TestAlertsAskForMetricsThatThereAre(t *testing.T) {
	served := names{}
	if _, err := policysource.NewMetrics(served, config.ComponentWebhook); err != nil {
		t.Fatal(err)
	}
	if _, err := webhook.NewMetrics(served, clock.RealClock{}); err != nil {
		t.Fatal(err)
	}
	if err := config.Publish(served, config.ComponentWebhook, &config.Platform{}); err != nil {
		t.Fatal(err)
	}
	in := elsewhere
	in.set = []string{"metrics.prometheusRule.enabled=true", "metrics.prometheusRule.force=true", "metrics.prometheusRule.labels.release=p"}
	found := map[string]string{}
	for _, o := range render(t, in).objects {
		if o.GetKind() != "PrometheusRule" {
			continue
		}
		if o.GetLabels()["release"] != "p" {
			t.Errorf("the labels are %v, want those of the values too", o.GetLabels())
		}
		for _, alert := range alerts(t, o.Unstructured) {
			found[alert.name] = alert.lasting
			mustAskFor(t, alert, served)
		}
	}
	want := map[string]string{
		"AgentSandboxPoliciesDiffer": "1m", "AgentSandboxConfigurationsDiffer": "1m", "AgentSandboxPoliciesBroken": "5m", "AgentSandboxPolicySourceMissing": "5m",
		"AgentSandboxPolicyQuarantined": "", "AgentSandboxPolicyGivesNoAnswer": "5m", "AgentSandboxPolicyExemptionEnds": "1h",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("alerts and how long it takes them (-want +got):\n%s", diff)
	}
	if kinds(render(t, elsewhere))["PrometheusRule"] != 0 {
		t.Error("there are alerts although nobody asked for them")
	}
}

// What an alert tells to look at exists: other alerts, Events, and lines of the logs.
func TestAlertsNameWhatThereIs(t *testing.T) {
	in := elsewhere
	in.set = []string{"metrics.prometheusRule.enabled=true", "metrics.prometheusRule.force=true"}
	known := map[string]bool{
		policysource.ReasonPolicyLoadFailed: true, policysource.ReasonPolicyMissing: true, policysource.ReasonRuleQuarantined: true,
		policysource.ReasonExemptionExpiring: true, policysource.ReasonExemptionExpired: true,
	}
	logs, err := os.ReadFile("../controller/policysource/source.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, o := range render(t, in).objects {
		if o.GetKind() == "PrometheusRule" {
			all = alerts(t, o.Unstructured)
		}
	}
	for _, one := range all {
		known[one.name] = true
	}
	named := map[string][]string{}
	for _, one := range all {
		for _, name := range regexp.MustCompile(`\b(Policy|AgentSandbox)[A-Z]\w+`).FindAllString(one.text, -1) {
			named[one.name] = append(named[one.name], name)
			if !known[name] {
				t.Errorf("%s names %s, which there is not", one.name, name)
			}
		}
		for _, line := range regexp.MustCompile(`"[^"]+"`).FindAllString(one.text, -1) {
			if !strings.Contains(string(logs), `log.Error(loadErr, `+strings.TrimSuffix(line, `"`)) {
				t.Errorf("%s names the line %s of a log, which nobody writes", one.name, line)
			}
		}
	}
	// A rule in quarantine is one of the reasons why replicas differ.
	if diff := cmp.Diff([]string{"AgentSandboxPolicyQuarantined"}, named["AgentSandboxPoliciesDiffer"]); diff != "" {
		t.Errorf("AgentSandboxPoliciesDiffer names (-want +got):\n%s", diff)
	}
}

type alert struct{ name, expression, lasting, text string }

func alerts(t *testing.T, rule *unstructured.Unstructured) []alert {
	t.Helper()
	groups, _, err := unstructured.NestedSlice(rule.Object, "spec", "groups")
	if err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, group := range groups {
		rules, _, err := unstructured.NestedSlice(group.(map[string]any), "rules") //nolint:forcetypeassert // A test may panic.
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range rules {
			text := func(field string) string {
				value, _, _ := unstructured.NestedString(one.(map[string]any), field) //nolint:forcetypeassert // A test may panic.
				return value
			}
			description, _, _ := unstructured.NestedString(one.(map[string]any), "annotations", "description") //nolint:forcetypeassert // A test may panic.
			all = append(all, alert{text("alert"), text("expr"), text("for"), description})
		}
	}
	return all
}

func mustAskFor(t *testing.T, a alert, served names) {
	t.Helper()
	expression, err := parser.ParseExpr(a.expression)
	if err != nil {
		t.Fatalf("%s: %v", a.name, err)
	}
	selectors := parser.ExtractSelectors(expression)
	if len(selectors) == 0 {
		t.Errorf("%s asks for nothing: %s", a.name, a.expression)
	}
	for _, matchers := range selectors {
		here := false
		for _, m := range matchers {
			if m.Name == model.MetricNameLabel && !served[m.Value] {
				t.Errorf("%s asks for %s, which the webhook does not serve", a.name, m.Value)
			}
			here = here || m.Name == "namespace" && m.Type == labels.MatchEqual && m.Value == "tools-west"
		}
		if !here {
			t.Errorf("%s asks for other releases too: %v", a.name, matchers)
		}
	}
}
