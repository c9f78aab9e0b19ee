// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
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

// policyWorld is a policy source with the ConfigMaps that it sees.
type policyWorld struct {
	source *policysource.Source
	engine *engine.Engine
	client client.Client
}

func newPolicies(t *testing.T) policyWorld {
	t.Helper()
	c := fake.NewClientBuilder().Build()
	rules, err := engine.New()
	if err != nil {
		t.Fatal(err)
	}
	return policyWorld{newSource(t, c, rules), rules, c}
}

func (w policyWorld) metrics(t *testing.T) *Metrics {
	t.Helper()
	m, err := NewMetrics(prometheus.NewRegistry(), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// step creates a policy ConfigMap and loads.
func (w policyWorld) step(t *testing.T, name string, data map[string]string) {
	t.Helper()
	err := w.client.Create(t.Context(), policyConfigMap(name, data))
	if err == nil {
		_, err = w.source.Reconcile(t.Context(), reconcile.Request{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestValidatePolicy(t *testing.T) {
	cases := map[string]struct {
		data map[string]string
		// want are parts of the refusal: the place and the remedy. None means allowed.
		want []string
	}{
		"a good rule":          {map[string]string{"team.rego": teamRule}, nil},
		"a good configuration": {map[string]string{policysource.ConfigurationKey: "rules: {hostpath: {enforcement: Warn}}"}, nil},
		"a rule that does not parse": {
			map[string]string{"team.rego": strings.Replace(teamRule, "contains finding if {", "contains finding if {{", 1)},
			[]string{"configmap/agent-sandbox-system/new/team.rego:13", "rego_parse_error"},
		},
		"a rule that calls out": {
			map[string]string{"team.rego": strings.Replace(teamRule, `container.name == "root"`, `http.send({"url": container.name, "method": "get"}).status_code == 1`, 1)},
			[]string{"team.rego:14", "http.send"},
		},
		"a rule that does not exist": {
			map[string]string{policysource.ConfigurationKey: "rules: {hostpaths: {enforcement: Warn}}"}, []string{"rules.hostpaths", "there is no rule hostpaths; known are", "hostpath"},
		},
		"an enforcement that does not exist": {
			map[string]string{policysource.ConfigurationKey: "rules: {hostpath: {enforcement: deny}}"}, []string{"rules.hostpath.enforcement", `"deny"`, "Deny"},
		},
		"a parameter of the wrong type": {
			map[string]string{policysource.ConfigurationKey: "rules: {capabilities-add: {parameters: {allowed: CHOWN}}}"}, []string{"capabilities-add.parameters.allowed", "CHOWN"},
		},
		"a test, which nobody runs": {map[string]string{"team_test.rego": "package policies.extra.team_test"}, []string{"team_test.rego", "keep tests in a folder"}},
		"a key that nobody reads":   {map[string]string{"policies.yaml": "rules: {}"}, []string{`"policies.yaml"`, "policy.yaml", "rename or remove it"}},
		"a rule that another ConfigMap configures": {
			map[string]string{policysource.ConfigurationKey: "rules: {no-latest: {enforcement: Warn}}"}, []string{"rules.no-latest", "new and old", "keep it in one of them"},
		},
	}
	l := newPolicies(t)
	l.step(t, "old", map[string]string{policysource.ConfigurationKey: "rules: {no-latest: {enforcement: Audit}}"})
	digest := l.engine.Digest()
	handler := Handlers(&Judge{}, l.source, l.metrics(t), 100)[PathValidatePolicy]
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
	if l.engine.Digest() != digest {
		t.Error("asking changed the policies in force")
	}
}

// A file that is not UTF-8 becomes binaryData without a word, and its rule would judge nothing.
func TestAPolicyThatIsNoTextIsRefused(t *testing.T) {
	l := newPolicies(t)
	configMap := policyConfigMap("new", nil)
	configMap.BinaryData = map[string][]byte{"team.rego": append([]byte(teamRule), 0xff)}
	raw, err := json.Marshal(configMap)
	if err != nil {
		t.Fatal(err)
	}
	request := applied(t, nil)
	request.Object.Raw = raw
	response := ask(t, Handlers(&Judge{}, l.source, l.metrics(t), 100)[PathValidatePolicy], request)
	if response.Allowed || !strings.Contains(response.Result.Message, `key "team.rego" is binaryData`) {
		t.Errorf("allowed %t: %+v", response.Allowed, response.Result)
	}
}

// Whoever may write a ConfigMap may put a megabyte of faults in it: he hears of some, and how
// many there are.
func TestTheRefusalOfAPolicyIsBounded(t *testing.T) {
	const many = 5000
	data := map[string]string{}
	for i := range many {
		data[fmt.Sprintf("key-%d-%s", i, strings.Repeat("x", 150))] = ""
	}
	l := newPolicies(t)
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	response := ask(t, Handlers(&Judge{}, l.source, m, 100)[PathValidatePolicy], applied(t, data))
	if response.Allowed || response.Result.Details == nil {
		t.Fatalf("allowed %t, %.300s, want it refused with causes", response.Allowed, response.Result.Message)
	}
	causes := response.Result.Details.Causes
	if len(causes) != maxCauses || causes[0].Type != rulePolicies || !strings.Contains(causes[0].Message, `key "key-0-`) {
		t.Errorf("%d causes, the first %+v, want %d about keys", len(causes), causes[0], maxCauses)
	}
	if text := response.Result.Message; len(text) > maxListed*(maxText+100) || !strings.HasPrefix(text, fmt.Sprintf("%d findings:", many)) {
		t.Errorf("%d bytes that begin with %.100s", len(text), text)
	}
	if response.AuditAnnotations["denied"] != rulePolicies {
		t.Errorf("audit annotations %v, want the rule", response.AuditAnnotations)
	}
	if n := counted(t, registry)["agent_sandbox_admission_findings_total"]; n != many {
		t.Errorf("%v findings are counted, want %d", n, many)
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
	configures := map[string]string{policysource.ConfigurationKey: "rules: {no-root-name: {enforcement: Warn}}"}
	team := map[string]string{"team.rego": teamRule}
	both := map[string]string{"team.rego": teamRule, policysource.ConfigurationKey: configures[policysource.ConfigurationKey]}
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
			l := newPolicies(t)
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
			handler := Handlers(&Judge{}, l.source, l.metrics(t), 100)[PathValidatePolicy]
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
