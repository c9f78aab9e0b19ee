// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/series"
)

func TestTroublesAreCountedByTheirReasons(t *testing.T) {
	gaveUp := func(s *scope) { s.bindDeadline = noon() }
	cases := map[string]struct {
		change func(*scope)
		// reason is that of the Ready condition that is written.
		reason string
		want   map[string]float64
	}{
		"what a user must mend":                    {func(*scope) {}, ReasonInvalidMetadata, map[string]float64{"InvalidMetadata": 1}},
		"not again while it stays so":              {func(s *scope) { ready(s.claim, "False", ReasonInvalidMetadata) }, ReasonInvalidMetadata, nil},
		"one that never got a Sandbox and gave up": {gaveUp, ReasonClaimExpired, map[string]float64{"BindTimeout": 1}},
		"not again while that stays so": {
			func(s *scope) { gaveUp(s); ready(s.claim, "False", ReasonClaimExpired) }, ReasonClaimExpired, nil,
		},
		"one whose time was up":                  {func(s *scope) { gaveUp(s); s.owned["box"] = makeSandbox() }, ReasonClaimExpired, nil},
		"one whose own time was up before it":    {func(s *scope) { s.bindDeadline = noon().Add(time.Second) }, ReasonClaimExpired, nil},
		"one that would wait for ever otherwise": {func(*scope) {}, ReasonClaimExpired, nil},
		"one that only waits for its Sandbox":    {func(*scope) {}, ReasonSandboxNotReady, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(nil, nil, nil, clocktesting.NewFakePassiveClock(noon()), Settings{})
			registry := prometheus.NewPedanticRegistry()
			if err := r.metrics.register(registry); err != nil {
				t.Fatal(err)
			}
			s := makeScope()
			tc.change(s)
			r.measure(s, extensionsv1beta1.SandboxClaimStatus{Conditions: []metav1.Condition{
				{Type: agentsv1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: tc.reason},
			}})
			if diff := cmp.Diff(tc.want, troublesIn(t, registry), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
		})
	}
}

// The first time that a claim is Ready is measured, from each beginning that is known, and no
// other: neither a second time, nor one that an earlier process may have measured.
func TestTheFirstReadyOfAClaimIsMeasuredFromEachBeginning(t *testing.T) {
	const webhook, controller, client = "agent_sandbox_claim_startup_latency_ms",
		"agent_sandbox_claim_controller_startup_latency_ms", "agent_sandbox_client_claim_startup_latency_ms"
	began := func(key string, earlier time.Duration) func(*scope) {
		return func(s *scope) {
			s.claim.Annotations = map[string]string{key: noon().Add(-earlier).Format(time.RFC3339Nano)}
		}
	}
	cases := map[string]struct {
		change func(*scope)
		// want are the sums of milliseconds of what was measured.
		want map[string]float64
	}{
		"nobody says when it began":          {func(*scope) {}, map[string]float64{controller: 40}},
		"the client says when he asked":      {began(keys.ClientFirstRequestedAt, time.Second), map[string]float64{client: 1040, controller: 40}},
		"a webhook says when it came":        {began(keys.WebhookFirstObservedAt, 7*time.Millisecond), map[string]float64{webhook: 47, controller: 40}},
		"ours says it":                       {began(keys.ControllerFirstObservedAt, 5*time.Millisecond), map[string]float64{controller: 45}},
		"a clock that is ahead is left out":  {began(keys.ClientFirstRequestedAt, -time.Second), map[string]float64{controller: 40}},
		"one that was Ready before":          {func(s *scope) { ready(s.claim, "True", "DependenciesReady") }, nil},
		"one that was given its time before": {began(keys.ClaimFirstReadyAt, 0), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(nil, nil, nil, clocktesting.NewFakePassiveClock(noon().Add(40*time.Millisecond)), Settings{})
			registry := prometheus.NewPedanticRegistry()
			if err := r.metrics.register(registry); err != nil {
				t.Fatal(err)
			}
			s := makeScope()
			s.sandbox = makeSandbox()
			tc.change(s)
			for range 2 {
				r.measure(s, desiredStatus(s))
			}
			if diff := cmp.Diff(tc.want, latenciesIn(t, registry), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("milliseconds measured (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClaimsThatGotASandboxAreCountedByWhatTheyGot(t *testing.T) {
	cases := map[string]struct {
		launch string
		edit   func(*agentsv1beta1.Sandbox)
		want   string
	}{
		"a warm one that is Ready": {
			"warm", func(s *agentsv1beta1.Sandbox) { s.Labels[keys.CreatedBy] = "client" },
			"created_by=client launch_type=warm namespace=team-a pod_condition=ready sandbox_template=template warmpool_name=pool: 1",
		},
		"a cold one of a client that does not say who it is": {
			"cold", func(s *agentsv1beta1.Sandbox) { s.Status.Conditions = nil; delete(s.Labels, keys.CreatedBy) },
			"created_by=unknown launch_type=cold namespace=team-a pod_condition=not_ready sandbox_template=template warmpool_name=pool: 1",
		},
		"one that names no template": {
			"warm", func(s *agentsv1beta1.Sandbox) { delete(s.Annotations, keys.SandboxTemplateRef) },
			"created_by=controller launch_type=warm namespace=team-a pod_condition=ready sandbox_template=__unknown__ warmpool_name=pool: 1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(nil, nil, events.NewFakeRecorder(1), clocktesting.NewFakePassiveClock(noon()), Settings{})
			registry := prometheus.NewPedanticRegistry()
			if err := r.metrics.register(registry); err != nil {
				t.Fatal(err)
			}
			r.bind(makeScope(), makeSandbox(tc.edit), tc.launch)
			if diff := cmp.Diff([]string{tc.want}, launchesIn(t, registry)); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
		})
	}
}

// launchesIn are the counted launches with their labels.
func launchesIn(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var launches []string
	for _, family := range families {
		if family.GetName() != "agent_sandbox_claim_creation_total" {
			continue
		}
		for _, series := range family.GetMetric() {
			var labels []string
			for _, label := range series.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			launches = append(launches, fmt.Sprintf("%s: %v", strings.Join(labels, " "), series.GetCounter().GetValue()))
		}
	}
	return launches
}

// latenciesIn are the sums of the histograms that hold one measurement each, by their names.
func latenciesIn(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if histogram := series.GetHistogram(); histogram != nil {
				sums[family.GetName()] = histogram.GetSampleSum()
				if count := histogram.GetSampleCount(); count != 1 {
					t.Errorf("%s was measured %d times, want once", family.GetName(), count)
				}
			}
		}
	}
	return sums
}

// troublesIn are the counted troubles by their reasons.
func troublesIn(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "agent_sandbox_claim_failures_total" {
			continue
		}
		for _, series := range family.GetMetric() {
			counted[series.GetLabel()[0].GetValue()] = series.GetCounter().GetValue()
		}
	}
	return counted
}

// A tenant chooses the names of templates and pools, and a platform may have a namespace for each task.
func TestWhatIsCountedIsBoundedAndGoesWithItsNamespace(t *testing.T) {
	r := New(nil, nil, nil, clocktesting.NewFakePassiveClock(noon()), Settings{})
	serve := func(namespace, template, pool string) {
		s := makeScope()
		s.claim.Namespace, s.claim.Spec.WarmPoolRef.Name, s.launched = namespace, pool, "warm"
		s.claim.Annotations = map[string]string{}
		for _, key := range []string{keys.WebhookFirstObservedAt, keys.ControllerFirstObservedAt, keys.ClientFirstRequestedAt} {
			s.claim.Annotations[key] = noon().Format(time.RFC3339Nano)
		}
		s.sandbox = makeSandbox(func(s *agentsv1beta1.Sandbox) { s.Annotations[keys.SandboxTemplateRef] = template })
		r.countLaunch(s)
		r.measureLatency(s, noon())
	}
	expect := func(after string, launches, latencies int) {
		t.Helper()
		got := []int{seriesOf(r.metrics.launches)}
		for _, histogram := range []*prometheus.HistogramVec{r.metrics.fromWebhook, r.metrics.fromController, r.metrics.fromClient} {
			got = append(got, seriesOf(histogram))
		}
		if diff := cmp.Diff([]int{launches, latencies, latencies, latencies}, got); diff != "" {
			t.Errorf("series %s (-want +got):\n%s", after, diff)
		}
	}
	for n := range 1000 {
		serve("team-a", fmt.Sprintf("template-%d", n), fmt.Sprintf("pool-%d", n))
	}
	serve("team-b", "template-0", "pool-0")
	expect("of a thousand names, and of one of another namespace", series.Most+2, series.Most+1)

	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team-a", Name: name} }
	r.metrics.forgetPool(&extensionsv1beta1.SandboxWarmPool{ObjectMeta: named("pool-1")})
	expect("without a pool", series.Most+1, series.Most+1)
	r.templateEvents().Delete(t.Context(), event.DeleteEvent{Object: &extensionsv1beta1.SandboxTemplate{ObjectMeta: named("template-2")}}, nil)
	expect("without a template", series.Most, series.Most)

	r.namespaceEvents().Delete(t.Context(), event.DeleteEvent{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}}, nil)
	expect("without the namespace", 1, 1)
}

// seriesOf counts the series of a metric.
func seriesOf(metric prometheus.Collector) int {
	collected := make(chan prometheus.Metric, 2000)
	metric.Collect(collected)
	return len(collected)
}
