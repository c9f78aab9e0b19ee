// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
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
	*PolicySource
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
	m, err := NewMetrics(registry, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	return loader{newSource(t, c, rules, m), c, registry}
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

func TestPolicySource(t *testing.T) {
	hostpath := func(enforcement string) map[string]string {
		return map[string]string{configurationKey: "rules: {hostpath: {enforcement: " + enforcement + "}}"}
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
			[]step{{"a", hostpath("Warn")}, {"a", map[string]string{configurationKey: "rules: {no: {}, hostpath: {enforcement: Audit}}"}}}, "hostpath", "Audit", ReasonPolicyLoadFailed,
		},
		"so it is at the first load, which must not wait for it": {
			[]step{{"a", map[string]string{configurationKey: "rules: {no: {}, hostpath: {enforcement: Audit}}"}}}, "hostpath", "Audit", ReasonPolicyLoadFailed,
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
			if unknown := counted(t, l.registry, "agent_sandbox_policy_unknown_rules"); (unknown > 0) != strings.Contains(tc.steps[len(tc.steps)-1].data[configurationKey], "no:") {
				t.Errorf("%v unknown rules counted", unknown)
			}
			if failures := counted(t, l.registry, "agent_sandbox_policy_load_failures_total"); (failures > 0) != (tc.told == ReasonPolicyLoadFailed) {
				t.Errorf("%v load failures counted, the last Event is %q", failures, tc.told)
			}
		})
	}
}

func TestValidatePolicy(t *testing.T) {
	cases := map[string]struct {
		data map[string]string
		// want are parts of the refusal: the place and the remedy. None means allowed.
		want []string
	}{
		"a good rule":          {map[string]string{"team.rego": teamRule}, nil},
		"a good configuration": {map[string]string{configurationKey: "rules: {hostpath: {enforcement: Warn}}"}, nil},
		"a rule that does not parse": {
			map[string]string{"team.rego": strings.Replace(teamRule, "contains finding if {", "contains finding if {{", 1)},
			[]string{"configmap/agent-sandbox-system/new/team.rego:13", "rego_parse_error"},
		},
		"a rule that calls out": {
			map[string]string{"team.rego": strings.Replace(teamRule, `container.name == "root"`, `http.send({"url": container.name, "method": "get"}).status_code == 1`, 1)},
			[]string{"team.rego:14", "http.send"},
		},
		"a rule that does not exist": {
			map[string]string{configurationKey: "rules: {hostpaths: {enforcement: Warn}}"}, []string{"rules.hostpaths", "there is no rule hostpaths; known are", "hostpath"},
		},
		"an enforcement that does not exist": {
			map[string]string{configurationKey: "rules: {hostpath: {enforcement: deny}}"}, []string{"rules.hostpath.enforcement", `"deny"`, "Deny"},
		},
		"a parameter of the wrong type": {
			map[string]string{configurationKey: "rules: {capabilities-add: {parameters: {allowed: CHOWN}}}"}, []string{"capabilities-add.parameters.allowed", "CHOWN"},
		},
		"a key that nobody reads": {map[string]string{"policies.yaml": "rules: {}"}, []string{`"policies.yaml"`, "policy.yaml", "rename or remove it"}},
		"a rule that another ConfigMap configures": {
			map[string]string{configurationKey: "rules: {no-latest: {enforcement: Warn}}"}, []string{"rules.no-latest", "new and old", "keep it in one of them"},
		},
	}
	l := newLoader(t)
	l.step(t, "old", map[string]string{configurationKey: "rules: {no-latest: {enforcement: Audit}}"})
	digest := l.Engine.Digest()
	handler := Handlers(&Judge{Clock: clock.RealClock{}}, l.PolicySource, l.Metrics, 100)[PathValidatePolicy]
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			response := ask(t, handler, applied(t, tc.data))
			if response.Allowed != (len(tc.want) == 0) {
				t.Fatalf("allowed %t, want %t: %s", response.Allowed, len(tc.want) == 0, response.Result.Message)
			}
			for _, part := range tc.want {
				if !strings.Contains(response.Result.Message, part) {
					t.Errorf("message %q, want it to name %q", response.Result.Message, part)
				}
			}
		})
	}
	if l.Engine.Digest() != digest {
		t.Error("asking changed the policies in force")
	}
}

// applied is the request to create a policy ConfigMap.
func applied(t *testing.T, data map[string]string) admissionv1.AdmissionRequest {
	t.Helper()
	raw, err := json.Marshal(policyConfigMap("new", data))
	if err != nil {
		t.Fatal(err)
	}
	return admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "agent-sandbox-system", Object: runtime.RawExtension{Raw: raw}}
}

// A rule that another ConfigMap configures may not go first: after the next restart nobody could tell which
// of the two was meant. Everything else about a deletion is no question of ours.
func TestARuleThatIsConfiguredElsewhereIsKept(t *testing.T) {
	configures := map[string]string{configurationKey: "rules: {no-root-name: {enforcement: Warn}}"}
	team := map[string]string{"team.rego": teamRule}
	both := map[string]string{"team.rego": teamRule, configurationKey: configures[configurationKey]}
	cases := map[string]struct {
		// team and other are the ConfigMaps before.
		team, other map[string]string
		operation   admissionv1.Operation
		user        string
		refused     bool
	}{
		"deleted under another's configuration":         {team, configures, admissionv1.Delete, "author", true},
		"changed so that it has the rule no more":       {team, configures, admissionv1.Update, "author", true},
		"deleted together with the namespace":           {team, configures, admissionv1.Delete, "system:serviceaccount:kube-system:namespace-controller", false},
		"deleted with its own configuration":            {both, map[string]string{}, admissionv1.Delete, "author", false},
		"deleted and nobody configures it":              {team, map[string]string{}, admissionv1.Delete, "author", false},
		"deleted and something else has no rule":        {map[string]string{}, configures, admissionv1.Delete, "author", false},
		"changed and something else has no rule either": {map[string]string{}, configures, admissionv1.Update, "author", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLoader(t)
			l.step(t, "team", tc.team)
			l.step(t, "other", tc.other)
			request := applied(t, map[string]string{})
			raw, err := json.Marshal(policyConfigMap("team", map[string]string{}))
			if err != nil {
				t.Fatal(err)
			}
			request.Operation, request.UserInfo = tc.operation, userInfo(tc.user)
			request.Object.Raw, request.OldObject.Raw = raw, raw
			if tc.operation == admissionv1.Delete {
				request.Object.Raw = nil
			}
			handler := Handlers(&Judge{Clock: clock.RealClock{}}, l.PolicySource, l.Metrics, 100)[PathValidatePolicy]
			response := ask(t, handler, request)
			if response.Allowed == tc.refused {
				t.Fatalf("allowed %t: %s", response.Allowed, response.Result.Message)
			}
			if want := "rule no-root-name goes and would still be configured, remove that first"; tc.refused && !strings.Contains(response.Result.Message, want) {
				t.Errorf("message %q, want %q", response.Result.Message, want)
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
			if missing := counted(t, l.registry, "agent_sandbox_policy_missing_sources"); (missing > 0) != (tc.want != "") {
				t.Errorf("%v missing sources counted", missing)
			}
		})
	}
}
