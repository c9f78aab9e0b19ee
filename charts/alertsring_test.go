// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// series are what Prometheus scraped last, by the text of a metric; a minute before all was zero. One that is "new" was as
// it is then, and not there before; one that is "old" has been so for long.
type series map[string]float64

// ringing is what an alert tells.
type ringing struct {
	alert   string
	scraped series
	// rings are the labels of what is told; none when all is in order.
	rings []string
}

// Prometheus itself says of each alert that it rings for what it is about, with the
// labels that tell which, and not for what is in order or of another release.
func TestAlertsRingForWhatTheyAreAbout(t *testing.T) {
	in := elsewhere
	in.set = []string{"metrics.prometheusRule.enabled=true", "metrics.prometheusRule.force=true"}
	expressions := map[string]string{}
	for _, o := range render(t, in).objects {
		if o.GetKind() == "PrometheusRule" {
			for _, one := range alerts(t, o.Unstructured) {
				expressions[one.name] = one.expression
			}
		}
	}
	const here, foreign = `{namespace="tools-west", pod="a"}`, `{namespace="tools-east", pod="a"}`
	cases := map[string]ringing{
		"every module loads": {"AgentSandboxPoliciesBroken", series{
			`agent_sandbox_policy_broken_modules` + here: 0, `agent_sandbox_policy_unknown_rules` + here: 0, `agent_sandbox_policy_broken_modules` + foreign: 1,
		}, nil},
		"a module does not load": {"AgentSandboxPoliciesBroken", series{
			`agent_sandbox_policy_broken_modules` + here: 2, `agent_sandbox_policy_unknown_rules` + here: 0,
		}, []string{`{}`}},
		"a rule that does not exist is configured": {"AgentSandboxPoliciesBroken", series{
			`agent_sandbox_policy_broken_modules` + here: 0, `agent_sandbox_policy_unknown_rules` + here: 1,
		}, []string{`{}`}},
		"every source is there":  {"AgentSandboxPolicySourceMissing", series{`agent_sandbox_policy_missing_sources` + here: 0}, nil},
		"a source has gone away": {"AgentSandboxPolicySourceMissing", series{`agent_sandbox_policy_missing_sources` + here: 1}, []string{`{}`}},
		"every rule ends in time": {"AgentSandboxPolicyQuarantined", series{
			`agent_sandbox_policy_quarantined{namespace="tools-east", rule="c"}`: 1,
		}, nil},
		"rules that do not end are told by name": {"AgentSandboxPolicyQuarantined", series{
			`agent_sandbox_policy_quarantined{namespace="tools-west", pod="a", rule="c"}`: 1, `agent_sandbox_policy_quarantined{namespace="tools-west", pod="b", rule="c"}`: 1,
			`agent_sandbox_policy_quarantined{namespace="tools-west", pod="a", rule="d"}`: 1,
		}, []string{`{rule="c"}`, `{rule="d"}`}},
		"every rule gives an answer": {"AgentSandboxPolicyGivesNoAnswer", series{
			`agent_sandbox_policy_failures_total{namespace="tools-west", pod="a", rule="c"}`: 0, `agent_sandbox_policy_failures_total{namespace="tools-east", rule="d"}`: 1,
			`old agent_sandbox_policy_failures_total{namespace="tools-west", pod="a", rule="e"}`: 7,
		}, nil},
		"a rule gave none before anybody looked": {"AgentSandboxPolicyGivesNoAnswer", series{
			`new agent_sandbox_policy_failures_total{namespace="tools-west", pod="a", rule="c"}`: 3,
		}, []string{`{rule="c"}`}},
		"rules that give none are told by name": {"AgentSandboxPolicyGivesNoAnswer", series{
			`agent_sandbox_policy_failures_total{namespace="tools-west", pod="a", rule="c"}`: 1, `agent_sandbox_policy_failures_total{namespace="tools-west", pod="b", rule="c"}`: 2,
			`agent_sandbox_policy_failures_total{namespace="tools-west", pod="a", rule="d"}`: 1,
		}, []string{`{rule="c"}`, `{rule="d"}`}},
		"exemptions have time left": {"AgentSandboxPolicyExemptionEnds", series{
			`agent_sandbox_policy_exemptions{namespace="tools-west", state="active"}`: 3, `agent_sandbox_policy_exemptions{namespace="tools-west", state="expired"}`: 0,
		}, nil},
		"an exemption ends and another has ended": {"AgentSandboxPolicyExemptionEnds", series{
			`agent_sandbox_policy_exemptions{namespace="tools-west", state="expiring"}`: 1, `agent_sandbox_policy_exemptions{namespace="tools-west", state="expired"}`: 1,
		}, []string{`{state="expired"}`, `{state="expiring"}`}},
	}
	for alert, metric := range map[string]string{
		"AgentSandboxPoliciesDiffer": "agent_sandbox_policy_info", "AgentSandboxConfigurationsDiffer": "agent_sandbox_config_info",
	} {
		for name, of := range map[string]struct{ programs, rings []string }{
			"all have the same": {[]string{"webhook a 1", "webhook b 1", "controller c 1", "controller d 1"}, nil},
			// One that did not load what the others did, or runs a rule no more that they run.
			"a webhook has another than the other":   {[]string{"webhook a 1", "webhook b 2", "controller c 1"}, []string{`{component="webhook"}`}},
			"the controller that leads has another":  {[]string{"webhook a 1", "webhook b 1", "controller c 2", "controller d 1"}, []string{`{component="controller"}`}},
			"replicas of both have another":          {[]string{"webhook a 1", "webhook b 2", "controller c 1", "controller d 2"}, []string{`{component="controller"}`, `{component="webhook"}`}},
			"all controllers have another than both": {[]string{"webhook a 1", "webhook b 1", "controller c 2", "controller d 2"}, []string{`{}`}},
			"there is no controller that judges":     {[]string{"webhook a 1", "webhook b 1"}, nil},
		} {
			cases[alert+": "+name] = ringing{alert, digests(metric, of.programs...), of.rings}
		}
	}
	rung := map[string]bool{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.scraped.answer(t, expressions[tc.alert])
			if len(got) != len(tc.rings) {
				t.Fatalf("%s tells %v, want %v", tc.alert, got, tc.rings)
			}
			for _, want := range tc.rings {
				if !got[want] {
					t.Errorf("%s tells %v, want %s", tc.alert, got, want)
				}
			}
			rung[tc.alert] = rung[tc.alert] || len(got) > 0
		})
	}
	for name := range expressions {
		if !rung[name] {
			t.Errorf("nothing here makes %s ring", name)
		}
	}
}

// digests are those that programs tell, each as "COMPONENT POD DIGEST"; another release has
// one of its own.
func digests(metric string, programs ...string) series {
	scraped := series{metric + `{namespace="tools-east", component="webhook", pod="a", digest="9"}`: 1}
	for _, program := range programs {
		part := strings.Fields(program)
		scraped[fmt.Sprintf(`%s{namespace="tools-west", component=%q, pod=%q, digest=%q}`, metric, part[0], part[1], part[2])] = 1
	}
	return scraped
}

// answer is what Prometheus makes of an expression: the labels of each result.
func (s series) answer(t *testing.T, expression string) map[string]bool {
	t.Helper()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	prometheus := promql.NewEngine(promql.EngineOpts{MaxSamples: 1000, Timeout: time.Minute})
	query, err := prometheus.NewInstantQuery(t.Context(), s.queryable(t, at), nil, expression, at)
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	results, err := query.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, r := range results {
		told[r.Metric.String()] = true
	}
	return told
}

// queryable holds the series as they were at a time.
func (s series) queryable(t *testing.T, at time.Time) storage.Queryable {
	t.Helper()
	var all []storage.Series
	for text, value := range s {
		points := []promql.FPoint{{T: at.Add(-time.Minute).UnixMilli()}, {T: at.UnixMilli(), F: value}}
		text, isNew := strings.CutPrefix(text, "new ")
		text, isOld := strings.CutPrefix(text, "old ")
		if isNew || isOld {
			points[0].F = value
		}
		if isOld {
			points = slices.Insert(points, 0, promql.FPoint{T: at.Add(-12 * time.Minute).UnixMilli(), F: value})
		}
		metric, err := parser.ParseMetric(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, promql.NewStorageSeries(promql.Series{Metric: metric, Floats: points}))
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			return &selection{left: slices.DeleteFunc(slices.Clone(all), func(one storage.Series) bool {
				return slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(one.Labels().Get(m.Name)) })
			})}
		},
	}}
}

// selection gives series one by one.
type selection struct {
	at   storage.Series
	left []storage.Series
}

// Next implements storage.SeriesSet.
func (s *selection) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.at, s.left = s.left[0], s.left[1:]
	return true
}

// At implements storage.SeriesSet.
func (s *selection) At() storage.Series { return s.at }

// Err implements storage.SeriesSet.
func (*selection) Err() error { return nil }

// Warnings implements storage.SeriesSet.
func (*selection) Warnings() annotations.Annotations { return nil }
