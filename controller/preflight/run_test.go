// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A cluster may have any number of RuntimeClasses for which it has no node now. Whoever waited
// for one after the other would be ended before he could report.
func TestRuntimeClassesWithoutNodesHaveTheTimeOfOne(t *testing.T) {
	const classes = 7
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientBuilder().Build()
		for i := range classes {
			class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", i)}, Handler: "h"}
			if err := c.Create(t.Context(), class); err != nil {
				t.Fatal(err)
			}
		}
		r := runner{client: c, options: Options{Namespace: "release", Image: "webhook"}}
		found := Findings{RuntimeClasses: map[string]string{}, FromZero: sets.New[string]()}
		pods, err := r.startClasses(t.Context(), found.RuntimeClasses)
		if err != nil {
			t.Fatal(err)
		}
		watch := clock.RealClock{}
		begun := watch.Now()
		if err := r.awaitClasses(t.Context(), pods, found); err != nil {
			t.Fatal(err)
		}
		if took := watch.Since(begun); took != patience {
			t.Errorf("it took %s, want %s", took, patience)
		}
		for i := range classes {
			if why := found.RuntimeClasses[fmt.Sprintf("class-%d", i)]; !strings.Contains(why, "its Pod is still") {
				t.Errorf("class %d: %q", i, why)
			}
		}
	})
}

// Nobody waits for a class whose nodes come when a Pod waits for one, and no node is made for
// the question. One that has a node is tried like the others.
func TestAClassThatStartsFromZeroIsNotWaitedFor(t *testing.T) {
	cases := map[string]struct {
		fromZero []string
		status   corev1.PodStatus
		// coming says that the class is told to start from zero; why is what it is told
		// otherwise, in part. waits says that it has the time of a Pod.
		coming, waits bool
		why           string
	}{
		"without a node":               {[]string{"kata"}, waiting(corev1.PodReasonUnschedulable), true, false, ""},
		"with a node":                  {[]string{"kata"}, corev1.PodStatus{Phase: corev1.PodSucceeded}, false, false, ""},
		"whose Pod fails":              {[]string{"kata"}, corev1.PodStatus{Phase: corev1.PodFailed, Message: "no handler"}, false, false, "no handler"},
		"that nobody has looked at":    {[]string{"kata"}, corev1.PodStatus{}, false, true, "its Pod is still"},
		"whose Pod is held back":       {[]string{"kata"}, waiting(corev1.PodReasonSchedulingGated), false, true, "no node"},
		"another, without a node":      {[]string{"gvisor"}, waiting(corev1.PodReasonUnschedulable), false, true, "no node"},
		"where none starts from there": {nil, waiting(corev1.PodReasonUnschedulable), false, true, "no node"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "release", Name: "p"}, Status: tc.status}
				c := fake.NewClientBuilder().WithObjects(pod).Build()
				r := runner{client: c, fromZero: sets.New(tc.fromZero...)}
				found := Findings{RuntimeClasses: map[string]string{}, FromZero: sets.New[string]()}
				watch := clock.RealClock{}
				begun := watch.Now()
				if err := r.awaitClasses(t.Context(), map[string]*corev1.Pod{"kata": pod.DeepCopy()}, found); err != nil {
					t.Fatal(err)
				}
				if waited := watch.Since(begun) > 0; waited != tc.waits {
					t.Errorf("it waited: %t, want %t", waited, tc.waits)
				}
				why, tried := found.RuntimeClasses["kata"]
				if found.FromZero.Has("kata") != tc.coming || tried == tc.coming || !strings.Contains(why, tc.why) || (why == "") != (tc.why == "") {
					t.Errorf("it found %+v, want %q, or one that starts from zero: %t", found, tc.why, tc.coming)
				}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{}); apierrors.IsNotFound(err) != tc.coming {
					t.Errorf("its Pod: %v, want it gone: %t", err, tc.coming)
				}
			})
		})
	}
}

// waiting is the status of a Pod that is on no node, for that reason.
func waiting(reason string) corev1.PodStatus {
	return corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: "no node takes it"},
	}}
}

// The Pod that both probes ask must be there until the last of them has asked.
func TestTheServerOutlivesThoseThatAskIt(t *testing.T) {
	life := func(role string) int64 { return *Options{}.pod(role, "").Spec.ActiveDeadlineSeconds }
	for _, role := range []string{roleOpen, roleDenied, roleAgain, roleClass} {
		if asks := life(role); life(roleServer) < 3*asks {
			t.Errorf("the server lives %d seconds, a Pod %s %d", life(roleServer), role, asks)
		}
	}
}
