// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
)

func class(name string, selector map[string]string) nodev1.RuntimeClass {
	made := nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if selector != nil {
		made.Scheduling = &nodev1.Scheduling{NodeSelector: selector}
	}
	return made
}

func TestAClassThatSelectsNodesNeedsOne(t *testing.T) {
	classes := []nodev1.RuntimeClass{
		class("everywhere", nil), class("unselective", map[string]string{}), class("here", map[string]string{"vm": "yes"}),
		class("cordoned", map[string]string{"vm": "later"}), class("nowhere", map[string]string{"gpu": "yes"}),
	}
	got, err := judge.RuntimeClassesOf(classes, func(labels map[string]string, now bool) (bool, error) {
		return labels["vm"] == "yes" || labels["vm"] == "later" && !now, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := judge.RuntimeClasses{
		Existing: sets.New("everywhere", "unselective", "here", "cordoned", "nowhere"),
		Usable:   sets.New("everywhere", "unselective", "here", "cordoned"),
		Free:     sets.New("everywhere", "unselective", "here"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("RuntimeClassesOf() (-want +got):\n%s", diff)
	}
	unknown := errors.New("the nodes cannot be read")
	for _, fails := range []bool{false, true} {
		_, err := judge.RuntimeClassesOf(classes, func(_ map[string]string, now bool) (bool, error) {
			if now == fails {
				return false, unknown
			}
			return true, nil
		})
		if !errors.Is(err, unknown) {
			t.Errorf("RuntimeClassesOf() = %v, want %v", err, unknown)
		}
	}
}

func TestANodeTakesPodsWhenItIsReadyAndNotCordoned(t *testing.T) {
	node := func(ready corev1.ConditionStatus, cordoned bool) *corev1.Node {
		n := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: cordoned}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: ready}}
		return n
	}
	cases := map[string]struct {
		node *corev1.Node
		want bool
	}{
		"ready":               {node(corev1.ConditionTrue, false), true},
		"ready, and cordoned": {node(corev1.ConditionTrue, true), false},
		"not ready":           {node(corev1.ConditionFalse, false), false},
		"not heard of":        {node(corev1.ConditionUnknown, false), false},
		"new":                 {&corev1.Node{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := judge.TakesPods(tc.node); got != tc.want {
				t.Errorf("TakesPods() = %t, want %t", got, tc.want)
			}
		})
	}
}
