// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/randfill"
)

// What a check reads and nobody decodes would pass it: on Pods with anything in any field each version of each check says
// of what is decoded what it says of the Pod.
func TestChecksSeeAllThatTheyReadOfAPod(t *testing.T) {
	const pods = 3000
	fill := randfill.NewWithSeed(1).NilChance(0.5).NumElements(0, 3).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewQuantity(int64(c.Intn(100)), resource.DecimalSI)
		},
		func(v *intstr.IntOrString, c randfill.Continue) { *v = intstr.FromInt32(int32(c.Intn(100))) },
		func(at *metav1.Time, c randfill.Continue) { *at = metav1.Unix(int64(c.Intn(1e9)), 0) },
		func(n *int64, c randfill.Continue) { *n = int64(c.Intn(3)) }, // 0 is the user root
	)
	failed := map[policy.CheckID]bool{}
	for range pods {
		whole := corev1.Pod{}
		fill.Fill(&whole.Spec)
		fill.Fill(&whole.Annotations)
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&whole)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := decodePod(Input{Pod: raw})
		if err != nil {
			t.Fatalf("decode %v: %v", raw, err)
		}
		whole.Spec.HostUsers, whole.Spec.OS = nil, nil
		for _, check := range policy.DefaultChecks() {
			for _, version := range check.Versions {
				want := version.CheckPod(&whole.ObjectMeta, &whole.Spec)
				failed[check.ID] = failed[check.ID] || !want.Allowed
				got := version.CheckPod(&decoded.metadata, &decoded.spec)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s from %s on %v (-whole +decoded):\n%s", check.ID, version.MinimumVersion, raw, diff)
				}
			}
		}
	}
	for _, check := range policy.DefaultChecks() {
		if !failed[check.ID] {
			t.Errorf("no Pod failed %s: the test proves nothing of it", check.ID)
		}
	}
}
