// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// everything switches on all that the chart can render.
var everything = []string{
	"certificates.provider=cert-manager", "networkPolicy.enabled=true", "webhook.autoscaling.enabled=true",
	"controller.replicas=2", "metrics.serviceMonitor.enabled=true", "metrics.serviceMonitor.force=true",
	"metrics.prometheusRule.enabled=true", "metrics.prometheusRule.force=true", "webhook.decisionLog.destination=stdout",
	"webhook.decisionLog.mask=package system.log",
}

// namespaced are the kinds of the chart that live in a namespace.
var namespaced = map[string]bool{
	"Certificate": true, "ConfigMap": true, "Deployment": true, "HorizontalPodAutoscaler": true, "Issuer": true, "Job": true, "Pod": true,
	"NetworkPolicy": true, "PodDisruptionBudget": true, "Role": true, "RoleBinding": true, "Secret": true, "Service": true,
	"ServiceAccount": true, "ServiceMonitor": true, "PrometheusRule": true,
}

func TestDefaultNames(t *testing.T) {
	r := render(t, install{})
	for _, name := range []string{"agent-sandbox-controller", "agent-sandbox-webhook"} {
		d := named[*appsv1.Deployment](t, r, name)
		for where, labels := range map[string]map[string]string{"Deployment": d.Labels, "Pod": d.Spec.Template.Labels} {
			if labels["app"] != name {
				t.Errorf("%s of %s has the label app=%q, want its name: clients look for it", where, name, labels["app"])
			}
		}
	}
	named[*corev1.Service](t, r, "agent-sandbox-webhook")
	named[*corev1.ConfigMap](t, r, "agent-sandbox-config")
	named[*corev1.ConfigMap](t, r, "agent-sandbox-policies")
	named[*corev1.Secret](t, r, "agent-sandbox-webhook-cert")
}

func TestNamesOfUnusualReleases(t *testing.T) {
	longest := strings.Repeat("a", 52) + "z"
	cases := map[string]install{
		"the longest release name":                 {release: longest},
		"the longest of both":                      {release: longest, namespace: strings.Repeat("n", 63)},
		"a release name with dots":                 {release: "team.a.sandbox"},
		"a release name that begins with a digit":  {release: "7-of-9"},
		"a release and a namespace that are words": {release: "true", namespace: "null"},
		"a release and a namespace that are counts": {
			release: "123", namespace: "456",
		},
		"a name of one's own": {set: []string{"fullnameOverride=sandboxes"}},
	}
	for name, in := range cases {
		for variant, set := range map[string][]string{"": nil, ", everything on": everything} {
			in := in
			in.set = append(append([]string{}, in.set...), set...)
			t.Run(name+variant, func(t *testing.T) {
				checkNames(t, in, render(t, in))
			})
		}
	}
}

func checkNames(t *testing.T, in install, r rendered) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range r.objects {
		key := o.GetAPIVersion() + " " + o.String()
		if seen[key] {
			t.Errorf("two objects are %s", key)
		}
		seen[key] = true
		if len(o.GetName()) > 63 {
			t.Errorf("%s: the name has %d characters", o, len(o.GetName()))
		}
		if problems := validation.IsDNS1123Subdomain(o.GetName()); len(problems) > 0 {
			t.Errorf("%s: %v", o, problems)
		}
		if problems := validation.IsDNS1035Label(o.GetName()); o.GetKind() == "Service" && len(problems) > 0 {
			t.Errorf("%s: %v", o, problems)
		}
		for key, value := range o.GetLabels() {
			if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
				t.Errorf("%s: label %s=%q: %v", o, key, value, problems)
			}
		}
		want := ""
		if namespaced[o.GetKind()] {
			want = or(in.namespace, defaultNamespace)
		}
		if o.GetNamespace() != want {
			t.Errorf("%s: namespace %q, want %q", o, o.GetNamespace(), want)
		}
	}
}

// Names that are cut must not become one: neither within a release nor with a neighbour.
func TestReleasesDoNotShareNames(t *testing.T) {
	long := strings.Repeat("a", 52)
	cases := map[string][2]install{
		"one release name in two namespaces": {{namespace: "one"}, {namespace: "two"}},
		"two releases in one namespace":      {{release: "one"}, {release: "two"}},
		"long names that differ at the end":  {{release: long + "x"}, {release: long + "y"}},
		"dashes that could stand anywhere":   {{release: "a-b", namespace: "c"}, {release: "a", namespace: "b-c"}},
		"long namespaces that differ at the end": {
			{namespace: strings.Repeat("n", 62) + "x"}, {namespace: strings.Repeat("n", 62) + "y"},
		},
	}
	for name, pair := range cases {
		t.Run(name, func(t *testing.T) {
			owners := map[string]int{}
			for i, in := range pair {
				in.set = everything
				for _, o := range render(t, in).objects {
					key := fmt.Sprintf("%s in %q", o, o.GetNamespace())
					if other, taken := owners[key]; taken && other != i {
						t.Errorf("both have %s", key)
					}
					owners[key] = i
				}
			}
		})
	}
}

// A Namespace of ours would make uninstalling delete what tenants put there.
func TestKindsThatAreNeverRendered(t *testing.T) {
	for _, env := range environments {
		r := render(t, install{withCRDs: true, set: everything}.with(env))
		for _, o := range r.objects {
			if o.GetKind() == "Namespace" || strings.Contains(o.GetAPIVersion(), "agents.x-k8s.io/") {
				t.Errorf("values of %s render %s", or(env, "defaults"), o)
			}
		}
	}
}
