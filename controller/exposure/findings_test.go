// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// theirs opens everything for Pods with a label; with none, for all.
func theirs(name string, selects map[string]string) networkingv1.NetworkPolicy {
	policy := networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.PodSelector.MatchLabels = selects
	policy.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}
	policy.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	return policy
}

func pod(name, app string) corev1.Pod {
	labels := isolation.Choice{Profile: "none"}.PodLabels()
	labels["app"] = app
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func TestFindingsCountPodsAndNamePolicies(t *testing.T) {
	floor := *isolation.Floor("team-a")
	profile := *isolation.Profile("team-a", "none", &config.Platform{})
	pods := []corev1.Pod{pod("one", "a"), pod("two", "a"), pod("three", "b")}
	cases := map[string]struct {
		policies []networkingv1.NetworkPolicy
		// want are the notes of the Events.
		want []string
	}{
		"ours alone": {[]networkingv1.NetworkPolicy{floor, profile}, nil},
		"one for all Pods": {
			[]networkingv1.NetworkPolicy{floor, profile, theirs("all", nil)},
			[]string{"lets 3 Pods of Sandboxes, such as one, connect to everything, which their egress profile or template does not: " +
				"change its podSelector, or delete it"},
		},
		"two, for some of them": {
			[]networkingv1.NetworkPolicy{theirs("b", map[string]string{"app": "b"}), theirs("a", map[string]string{"app": "a"}), floor},
			[]string{
				"lets 2 Pods of Sandboxes, such as one, connect to everything, which their egress profile or template does not: " +
					"change its podSelector, or delete it",
				"lets 1 Pods of Sandboxes, such as three, connect to everything, which their egress profile or template does not: " +
					"change its podSelector, or delete it",
			},
		},
		"one for other Pods": {[]networkingv1.NetworkPolicy{floor, theirs("others", map[string]string{"app": "c"})}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var notes []string
			for _, f := range Find(pods, tc.policies) {
				notes = append(notes, f.Note())
			}
			if diff := cmp.Diff(tc.want, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// The apiserver refuses an Event whose note is longer than a KiB, and whoever makes a hole
// chooses what there is to tell.
func TestANoteIsNeverTooLongToBeTold(t *testing.T) {
	finding := Finding{Policy: "p", Direction: networkingv1.PolicyTypeEgress, Pods: []string{strings.Repeat("p", 253)}}
	for range 500 {
		finding.Peers = append(finding.Peers, "Pods with "+strings.Repeat("label=value,", 50))
	}
	note := finding.Note()
	if len(note) > 1<<10 || !strings.Contains(note, " and 495 more, which") || !strings.HasSuffix(note, "change its podSelector, or delete it") {
		t.Errorf("a note of %d bytes: %s", len(note), note)
	}
}
