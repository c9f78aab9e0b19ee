// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
)

// A budget for a single replica blocks the drain of its node for ever.
func TestDisruptionBudgets(t *testing.T) {
	cases := map[string]struct {
		set  []string
		want []string
	}{
		"one replica each":               {nil, nil},
		"two controllers":                {[]string{"controller.replicas=2"}, []string{"agent-sandbox-controller"}},
		"two of both":                    {[]string{"controller.replicas=2", "webhook.replicas=2"}, []string{"agent-sandbox-controller", "agent-sandbox-webhook"}},
		"two webhooks, switched off":     {[]string{"webhook.replicas=2", "webhook.podDisruptionBudget.enabled=false"}, nil},
		"a webhook that scales from two": {[]string{"webhook.autoscaling.enabled=true"}, []string{"agent-sandbox-webhook"}},
		"a webhook that scales from one": {[]string{"webhook.autoscaling.enabled=true", "webhook.autoscaling.minReplicas=1", "webhook.replicas=3"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := render(t, install{set: tc.set})
			if got := len(all[*policyv1.PodDisruptionBudget](r)); got != len(tc.want) {
				t.Errorf("%d budgets, want %v", got, tc.want)
			}
			for _, name := range tc.want {
				spec := named[*policyv1.PodDisruptionBudget](t, r, name).Spec
				if spec.MinAvailable != nil || spec.MaxUnavailable == nil || spec.MaxUnavailable.IntValue() != 1 {
					t.Errorf("budget %s: minAvailable %v, maxUnavailable %v, want only maxUnavailable 1", name, spec.MinAvailable, spec.MaxUnavailable)
				}
			}
		})
	}
}

// Two writers of one field: the autoscaler's replicas would be reset by each upgrade.
func TestAutoscalingOwnsTheReplicas(t *testing.T) {
	r := render(t, install{set: []string{"webhook.autoscaling.enabled=true", "webhook.replicas=4"}})
	if replicas := named[*appsv1.Deployment](t, r, "agent-sandbox-webhook").Spec.Replicas; replicas != nil {
		t.Errorf("replicas %d are rendered beside the autoscaler", *replicas)
	}
	spec := named[*autoscalingv2.HorizontalPodAutoscaler](t, r, "agent-sandbox-webhook").Spec
	if *spec.MinReplicas != 2 || spec.MaxReplicas != 5 {
		t.Errorf("scales from %d to %d, want from 2 to 5", *spec.MinReplicas, spec.MaxReplicas)
	}
	r = render(t, install{set: []string{"webhook.replicas=4"}})
	if replicas := named[*appsv1.Deployment](t, r, "agent-sandbox-webhook").Spec.Replicas; replicas == nil || *replicas != 4 {
		t.Errorf("replicas %v without an autoscaler, want 4", replicas)
	}
	if kinds(r)["HorizontalPodAutoscaler"] != 0 {
		t.Error("an autoscaler is rendered though it is off")
	}
}

func TestProductionSurvivesANode(t *testing.T) {
	for _, env := range []string{"staging", "prod"} {
		r := render(t, install{}.with(env))
		for _, d := range all[*appsv1.Deployment](r) {
			if d.Spec.Replicas == nil || *d.Spec.Replicas < 2 {
				t.Errorf("%s: %s has less than two replicas", env, d.Name)
			}
			if rolling := d.Spec.Strategy.RollingUpdate; rolling.MaxUnavailable.IntValue() != 0 {
				t.Errorf("%s: an upgrade of %s may stop %s Pods first", env, d.Name, rolling.MaxUnavailable)
			}
			if len(d.Spec.Template.Spec.TopologySpreadConstraints) == 0 {
				t.Errorf("%s: %s may run on one node alone", env, d.Name)
			}
			named[*policyv1.PodDisruptionBudget](t, r, d.Name)
		}
		if strings.Contains(r.Info.Notes, "WARNING: one webhook") {
			t.Errorf("%s: the notes warn of a single webhook", env)
		}
	}
}

func TestNotesWarn(t *testing.T) {
	const open = "webhook.validating.failurePolicy=Ignore"
	cases := map[string]struct {
		set  []string
		want string
	}{
		"of a single webhook":              {nil, "set webhook.replicas to 2 or more"},
		"of a webhook that scales to one":  {[]string{"webhook.autoscaling.enabled=true", "webhook.autoscaling.minReplicas=1"}, "set webhook.autoscaling.minReplicas to 2 or more"},
		"of an open failure policy":        {[]string{open}, "is Ignore. While the webhook is away, the apiserver holds the rules of the backstop"},
		"of one without a backstop":        {[]string{open, "backstop.enabled=false"}, "only the floor that the controller checks holds"},
		"of one whose backstop only warns": {[]string{open, "backstop.validationActions={Warn}"}, "only the floor that the controller checks holds"},
		"of unknown ranges":                {nil, "platform.cluster.cidrs is empty"},
		"of definitions that go":           {[]string{"crds.install=true", "crds.keep=false"}, "deletes every Sandbox"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if notes := render(t, install{set: tc.set}).Info.Notes; !strings.Contains(notes, tc.want) {
				t.Errorf("the notes do not say %q:\n%s", tc.want, notes)
			}
		})
	}
	quiet := render(t, install{set: []string{"webhook.replicas=2", "platform.cluster.cidrs={10.0.0.0/8}"}}).Info.Notes
	if strings.Contains(quiet, "WARNING") {
		t.Errorf("the notes warn of nothing:\n%s", quiet)
	}
}
