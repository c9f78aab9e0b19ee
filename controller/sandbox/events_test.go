// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

func TestEventsComeOnceATransition(t *testing.T) {
	twins := multiplePodsError{count: 2}
	quota := errors.New(`pods "box" is forbidden: exceeded quota: q`)
	refusedPod := func(s *scope) { s.podRefused = true }
	stored := func(reason, message string) func(*agentsv1beta1.Sandbox) {
		return withCondition(agentsv1beta1.ConditionReady, metav1.ConditionFalse, reason, message, noon())
	}
	cases := map[string]struct {
		scope *scope
		want  []notice
	}{
		"a Sandbox in order": {scope: makeScope(makeSandbox(), having(makePod("box", ready)))},
		"more Pods than one, at first": {
			makeScope(makeSandbox(), failing(twins)), []notice{{"MultiplePods", "Reconciling", twins.Error()}},
		},
		"more Pods than one, still":        {scope: makeScope(makeSandbox(stored("MultiplePods", twins.Error())), failing(twins))},
		"more Pods than one, another one":  {scope: makeScope(makeSandbox(stored("MultiplePods", "multiple Pods (3)")), failing(twins))},
		"an error that is no Pod's":        {scope: makeScope(makeSandbox(), failing(errors.New("no service")))},
		"a refused Pod that is known of":   {scope: makeScope(makeSandbox(stored("ReconcilerError", "Error seen: "+quota.Error())), failing(quota), refusedPod)},
		"a Pod for which there is no room": {makeScope(makeSandbox(), failing(quota), refusedPod), []notice{{"QuotaExceeded", "CreatingPod", "Error seen: " + quota.Error()}}},
		"a Pod that is refused": {
			makeScope(makeSandbox(), failing(errors.New("violates PodSecurity")), refusedPod),
			[]notice{{"PodRefused", "CreatingPod", "Error seen: violates PodSecurity"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := eventsOf(tc.scope, desiredStatus(tc.scope, "cluster.local"))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(notice{})); diff != "" {
				t.Errorf("eventsOf() (-want +got):\n%s", diff)
			}
		})
	}
}
