// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hooks are the webhooks of a release, by name.
type hooks struct {
	mutate                       admissionregistrationv1.MutatingWebhook
	validate, policies           admissionregistrationv1.ValidatingWebhook
	mutateObject, validateObject object
}

func webhooks(t *testing.T, r rendered) hooks {
	t.Helper()
	var h hooks
	for _, o := range r.objects {
		switch typed := o.typed.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			h.mutate, h.mutateObject = typed.Webhooks[0], o
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			h.validate, h.policies, h.validateObject = typed.Webhooks[0], typed.Webhooks[1], o
			if len(typed.Webhooks) != 2 {
				t.Fatalf("%d validating webhooks, want 2", len(typed.Webhooks))
			}
		}
	}
	return h
}

// A caBundle that the chart renders, even an empty one, is reset by each upgrade or
// conflicts with whoever filled it.
func TestNobodyRendersACABundle(t *testing.T) {
	for _, provider := range []string{"self", "cert-manager"} {
		h := webhooks(t, render(t, install{set: []string{"certificates.provider=" + provider}}))
		for _, o := range []object{h.mutateObject, h.validateObject} {
			list, _, err := unstructured.NestedSlice(o.Object, "webhooks")
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range list {
				client, found, err := unstructured.NestedMap(entry.(map[string]any), "clientConfig")
				if err != nil || !found {
					t.Fatalf("%s: no clientConfig: %v", o, err)
				}
				if _, there := client["caBundle"]; there {
					t.Errorf("%s of provider %s renders a caBundle", o, provider)
				}
			}
		}
	}
	for _, o := range render(t, install{}).objects {
		if _, data := o.Object["data"]; o.GetKind() == "Secret" && data {
			t.Errorf("%s renders data", o)
		}
	}
}

// What the apiserver would default is rendered, so that GitOps tools see no difference.
func TestEveryDefaultedFieldIsRendered(t *testing.T) {
	h := webhooks(t, render(t, install{}))
	for _, o := range []object{h.mutateObject, h.validateObject} {
		list, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range list {
			webhook := entry.(map[string]any)
			fields := []string{
				"admissionReviewVersions", "clientConfig", "failurePolicy", "matchPolicy", "namespaceSelector", "objectSelector",
				"rules", "sideEffects", "timeoutSeconds", "matchConditions",
			}
			if o.GetKind() == "MutatingWebhookConfiguration" {
				fields = append(fields, "reinvocationPolicy")
			}
			for _, field := range fields {
				if _, there := webhook[field]; !there {
					t.Errorf("%s: webhook %s leaves %s to the apiserver", o, webhook["name"], field)
				}
			}
			rules, _, _ := unstructured.NestedSlice(webhook, "rules")
			for _, rule := range rules {
				if _, there := rule.(map[string]any)["scope"]; !there {
					t.Errorf("%s: a rule of %s leaves its scope to the apiserver", o, webhook["name"])
				}
			}
			if port, _, _ := unstructured.NestedFieldNoCopy(webhook, "clientConfig", "service", "port"); port == nil {
				t.Errorf("%s: webhook %s leaves its port to the apiserver", o, webhook["name"])
			}
		}
	}
}

// The apiserver takes 64 conditions of a webhook; the schema leaves to others what is not used.
func TestAsManyConditionsAsTheApiserverTakes(t *testing.T) {
	const most = 64
	h := webhooks(t, render(t, install{}))
	ours := max(len(h.mutate.MatchConditions), len(h.validate.MatchConditions))
	with := func(more int) install {
		var in install
		for i := range more {
			in.setString = append(in.setString, fmt.Sprintf("webhook.matchConditions[%[1]d].name=c%[1]d,webhook.matchConditions[%[1]d].expression=true", i))
		}
		return in
	}
	if got := len(webhooks(t, render(t, with(most-ours))).validate.MatchConditions); got != most {
		t.Errorf("%d conditions, want %d", got, most)
	}
	wantFailure(t, with(most-ours+1), "/webhook/matchConditions")
}

func TestWebhooksMatchOnlyWhatIsOurs(t *testing.T) {
	h := webhooks(t, render(t, elsewhere))
	changes := []admissionregistrationv1.OperationType{"CREATE", "UPDATE"}
	scope := admissionregistrationv1.NamespacedScope
	rule := func(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{Operations: changes, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: &scope,
		}}
	}
	configMaps := rule("", "v1", "configmaps")
	configMaps.Operations = append(slices.Clone(changes), admissionregistrationv1.Delete)
	sandboxes := rule("agents.x-k8s.io", "v1beta1", "sandboxes")
	cases := map[string]struct {
		got, want []admissionregistrationv1.RuleWithOperations
	}{
		"mutate": {h.mutate.Rules, []admissionregistrationv1.RuleWithOperations{
			sandboxes, rule("extensions.agents.x-k8s.io", "v1beta1", "sandboxtemplates", "sandboxclaims"),
		}},
		"validate": {h.validate.Rules, []admissionregistrationv1.RuleWithOperations{
			sandboxes, rule("extensions.agents.x-k8s.io", "v1beta1", "sandboxtemplates", "sandboxwarmpools", "sandboxwarmpools/scale", "sandboxclaims"),
		}},
		"policies": {h.policies.Rules, []admissionregistrationv1.RuleWithOperations{configMaps}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("rules of %s (-want +got):\n%s", name, diff)
		}
	}
	if *h.mutate.FailurePolicy != "Ignore" || *h.validate.FailurePolicy != "Fail" || *h.policies.FailurePolicy != "Ignore" {
		t.Errorf("failure policies %s, %s, %s, want Ignore, Fail, Ignore", *h.mutate.FailurePolicy, *h.validate.FailurePolicy, *h.policies.FailurePolicy)
	}
}

func TestNamespacesThatAreJudged(t *testing.T) {
	in := elsewhere
	in.set = []string{
		"webhook.exemptNamespaces={legacy,kube-system}",
		"webhook.namespaceMatchExpressions[0].key=team", "webhook.namespaceMatchExpressions[0].operator=Exists",
	}
	h := webhooks(t, render(t, in))
	cases := map[string]struct {
		labels           map[string]string
		judged, policies bool
	}{
		"a tenant's":                  {map[string]string{"kubernetes.io/metadata.name": "a", "team": "a"}, true, false},
		"one that an option excludes": {map[string]string{"kubernetes.io/metadata.name": "a"}, false, false},
		"one that values exempt":      {map[string]string{"kubernetes.io/metadata.name": "legacy", "team": "a"}, false, false},
		"kube-system":                 {map[string]string{"kubernetes.io/metadata.name": "kube-system", "team": "a"}, false, false},
		"kube-node-lease":             {map[string]string{"kubernetes.io/metadata.name": "kube-node-lease", "team": "a"}, false, false},
		"the release's own":           {map[string]string{"kubernetes.io/metadata.name": "tools-west", "team": "a"}, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, w := range []struct {
				name string
				got  bool
				want bool
			}{
				{"mutate", matches(t, h.mutate.NamespaceSelector, tc.labels), tc.judged},
				{"validate", matches(t, h.validate.NamespaceSelector, tc.labels), tc.judged},
				{"policies", matches(t, h.policies.NamespaceSelector, tc.labels), tc.policies},
			} {
				if w.got != w.want {
					t.Errorf("%s is called: %t, want %t", w.name, w.got, w.want)
				}
			}
		})
	}
	values := h.validate.NamespaceSelector.MatchExpressions[0].Values
	if slices.Sort(values); len(slices.Compact(values)) != 4 {
		t.Errorf("exempt namespaces %v, want each once", values)
	}
}
