// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policysource

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/policies"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

const teamRule = `# METADATA
# title: No container named root
# description: A rule of a team.
# custom:
#   id: no-root-name
#   severity: low
#   enforcement: Deny
#   remediation: Choose another name.
#   kinds: [Sandbox]
package policies.team.no_root_name

deny contains finding if {
	some container in input.pod.spec.containers
	container.name == "root"
	finding := {"message": "the container is called root"}
}
`

// loader is a policy source with the ConfigMaps that it sees.
type loader struct {
	*Source
	client   client.Client
	registry *prometheus.Registry
}

func newLoader(t *testing.T) loader {
	t.Helper()
	c := fake.NewClientBuilder().Build()
	rules, err := engine.New()
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, config.ComponentWebhook)
	if err != nil {
		t.Fatal(err)
	}
	library, err := policies.Library()
	if err != nil {
		t.Fatal(err)
	}
	source := New(Options{
		Reader: c, Namespace: release, Engine: rules, Library: library, Events: events.NewFakeRecorder(100), Metrics: m,
	})
	return loader{source, c, registry}
}

// release is the namespace of the release.
const release = "agent-sandbox-system"

// policyConfigMap is a policy ConfigMap of the release namespace.
func policyConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: release, Labels: map[string]string{keys.PolicySource: "true"}},
		Data:       data,
	}
}

// counted is the value of a metric.
func (l loader) counted(t *testing.T, name string) float64 {
	t.Helper()
	families, err := l.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetCounter().GetValue() + family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// step puts a ConfigMap, or deletes it when it has no data, and loads.
func (l loader) step(t *testing.T, name string, data map[string]string) {
	t.Helper()
	configMap := policyConfigMap(name, data)
	err := l.client.Delete(t.Context(), configMap.DeepCopy())
	if err = client.IgnoreNotFound(err); err == nil && data != nil {
		err = l.client.Create(t.Context(), configMap)
	}
	if err == nil {
		_, err = l.Reconcile(t.Context(), reconcile.Request{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// enforcement is that of a rule in force; empty when there is no such rule.
func (l loader) enforcement(rule string) engine.Enforcement {
	catalogue := l.Engine.Catalogue()
	i := slices.IndexFunc(catalogue, func(info engine.RuleInfo) bool { return info.ID == rule })
	if i < 0 {
		return ""
	}
	return catalogue[i].Enforcement
}

// told returns the reasons of the Events since the last call.
func (l loader) told(t *testing.T) []string {
	t.Helper()
	recorder, ok := l.Events.(*events.FakeRecorder)
	if !ok {
		t.Fatalf("the recorder is a %T", l.Events)
	}
	var reasons []string
	for len(recorder.Events) > 0 {
		reasons = append(reasons, strings.Fields(<-recorder.Events)[1])
	}
	return reasons
}

func TestWhatIsInForceAfterEachChange(t *testing.T) {
	hostpath := func(enforcement string) map[string]string {
		return map[string]string{ConfigurationKey: "rules: {hostpath: {enforcement: " + enforcement + "}}"}
	}
	team := map[string]string{"team.rego": teamRule}
	type step struct {
		name string
		data map[string]string
	}
	cases := map[string]struct {
		steps []step
		rule  string
		want  engine.Enforcement
		// told is the last step's Event; empty for none.
		told string
	}{
		"without a ConfigMap the library is in force": {[]step{{"none", nil}}, "hostpath", "Deny", ""},
		"a ConfigMap configures":                      {[]step{{"a", hostpath("Warn")}}, "hostpath", "Warn", ReasonPolicyLoaded},
		"a change is in force at once":                {[]step{{"a", hostpath("Warn")}, {"a", hostpath("Audit")}}, "hostpath", "Audit", ReasonPolicyLoaded},
		"a configuration that cannot be read changes nothing": {
			[]step{{"a", hostpath("Warn")}, {"a", hostpath("Wran")}}, "hostpath", "Warn", ReasonPolicyLoadFailed,
		},
		"a configuration of a rule that does not exist is told, and the rest of it counts": {
			[]step{{"a", hostpath("Warn")}, {"a", map[string]string{ConfigurationKey: "rules: {no: {}, hostpath: {enforcement: Audit}}"}}}, "hostpath", "Audit", ReasonPolicyLoadFailed,
		},
		"so it is at the first load, which must not wait for it": {
			[]step{{"a", map[string]string{ConfigurationKey: "rules: {no: {}, hostpath: {enforcement: Audit}}"}}}, "hostpath", "Audit", ReasonPolicyLoadFailed,
		},
		"another ConfigMap still changes beside one that cannot be read": {
			[]step{{"a", hostpath("Warn")}, {"a", hostpath("Wran")}, {"b", team}}, "no-root-name", "Deny", ReasonPolicyLoadFailed,
		},
		"a second ConfigMap brings rules":                  {[]step{{"a", hostpath("Warn")}, {"b", team}}, "no-root-name", "Deny", ReasonPolicyLoaded},
		"a ConfigMap that is gone stays in force":          {[]step{{"a", hostpath("Warn")}, {"a", nil}}, "hostpath", "Warn", ReasonPolicyMissing},
		"one that is emptied does not":                     {[]step{{"b", team}, {"b", map[string]string{}}}, "no-root-name", "", ReasonPolicyLoaded},
		"a rule that no longer compiles stays as it was":   {[]step{{"b", team}, {"b", map[string]string{"team.rego": teamRule + "deny {"}}}, "no-root-name", "Deny", ReasonPolicyLoadFailed},
		"a rule can be configured in one ConfigMap only":   {[]step{{"a", hostpath("Warn")}, {"b", hostpath("Deny")}}, "hostpath", "Warn", ReasonPolicyLoadFailed},
		"a first configuration that cannot be read is bad": {[]step{{"a", hostpath("Wran")}}, "hostpath", "", ReasonPolicyLoadFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLoader(t)
			for _, s := range tc.steps {
				l.told(t)
				l.step(t, s.name, s.data)
			}
			if got := l.enforcement(tc.rule); got != tc.want {
				t.Errorf("%s is %q, want %q", tc.rule, got, tc.want)
			}
			told := l.told(t)
			if tc.told == "" && len(told) > 0 || tc.told != "" && !slices.Contains(told, tc.told) {
				t.Errorf("Events %v, want %q", told, tc.told)
			}
			if unknown := l.counted(t, "agent_sandbox_policy_unknown_rules"); (unknown > 0) != strings.Contains(tc.steps[len(tc.steps)-1].data[ConfigurationKey], "no:") {
				t.Errorf("%v unknown rules counted", unknown)
			}
			if failures := l.counted(t, "agent_sandbox_policy_load_failures_total"); (failures > 0) != (tc.told == ReasonPolicyLoadFailed) {
				t.Errorf("%v load failures counted, the last Event is %q", failures, tc.told)
			}
		})
	}
}

// Taking rules away by accident must not open the cluster; taking them away on
// purpose must work without a restart.
func TestTheRemovalOfAPolicyConfigMapIsConfirmedByAnAnnotation(t *testing.T) {
	cases := map[string]struct {
		annotation string
		want       engine.Enforcement
		told       []string
	}{
		"without a word":        {"", "Deny", []string{ReasonPolicyMissing}},
		"with another value":    {"yes", "Deny", []string{ReasonPolicyMissing}},
		"with the confirmation": {"true", "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLoader(t)
			l.step(t, "team", map[string]string{"team.rego": teamRule})
			l.told(t)
			last := policyConfigMap("team", nil)
			if tc.annotation != "" {
				last.Annotations = map[string]string{keys.RemovalConfirmed: tc.annotation}
			}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			l.Watch().Delete(t.Context(), event.DeleteEvent{Object: last}, queue)
			if queue.Len() != 1 {
				t.Errorf("%d requests are queued by a deletion, want 1", queue.Len())
			}
			l.step(t, "team", nil)
			if got := l.enforcement("no-root-name"); got != tc.want {
				t.Errorf("the rule is %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(tc.told, l.told(t)); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
			if missing := l.counted(t, "agent_sandbox_policy_missing_sources"); (missing > 0) != (tc.want != "") {
				t.Errorf("%v missing sources counted", missing)
			}
		})
	}
}
