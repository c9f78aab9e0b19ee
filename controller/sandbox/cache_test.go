// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// full gives a Pod with everything that may be stripped.
func full(edits ...func(*corev1.Pod)) *corev1.Pod {
	return makePod("box", append([]func(*corev1.Pod){ready, onNode, func(p *corev1.Pod) {
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		p.Annotations = map[string]string{"note": "hello"}
		p.Spec.Containers = []corev1.Container{{Name: "w"}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "w"}}
	}}, edits...)...)
}

func TestStripPod(t *testing.T) {
	cases := map[string]struct {
		edit func(*corev1.Pod)
		want *corev1.Pod
	}{
		"a Sandbox's Pod keeps what conditions rest on": {
			ownedByBox,
			makePod("box", ready, onNode, ownedByBox, func(p *corev1.Pod) { p.Annotations = map[string]string{"note": "hello"} }),
		},
		"any other Pod keeps who and where it is": {ownedByAnother, makePod("box", onNode, ownedByAnother)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := stripPod(full(tc.edit))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("stripPod() (-want +got):\n%s", diff)
			}
		})
	}
}

// A patch of a stripped Pod must hold what was changed and nothing of what was
// stripped.
func TestPatchOfAStrippedPodTouchesMetadataOnly(t *testing.T) {
	object, err := stripPod(full(ownedByBox))
	if err != nil {
		t.Fatal(err)
	}
	stripped, isPod := object.(*corev1.Pod)
	if !isPod {
		t.Fatalf("stripPod() gave a %T", object)
	}
	changed := stripped.DeepCopy()
	changed.Labels = map[string]string{"team": "blue"}
	patch, err := client.MergeFrom(stripped).Data(changed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"metadata":{"labels":{"team":"blue"}}}`, string(patch)); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}

func TestIndexes(t *testing.T) {
	boxPod := makePod("box", ownedByBox, labelled(keys.Sandbox, "true"))
	cases := map[string]struct {
		index  client.IndexerFunc
		object client.Object
		want   []string
	}{
		"a Sandbox's Pod by the Sandbox":           {podSandbox, boxPod, []string{"box-uid"}},
		"another's Pod by no Sandbox":              {podSandbox, makePod("web", ownedByAnother), nil},
		"a Sandbox's Pod by its policies":          {podPolicies, boxPod, []string{isolation.FloorName}},
		"a Pod on its way out, which still runs":   {podPolicies, makePod("box", ownedByBox, labelled(keys.Sandbox, "true"), deletedAt(noon())), []string{isolation.FloorName}},
		"a Sandbox's Pod by its Sandbox's name":    {podOwner, makePod("box-2", ownedByBox), []string{"box"}},
		"a Pod of another kind by no name":         {podOwner, makePod("web", ownedByAnother), nil},
		"a Pod that copies our label by no policy": {podPolicies, makePod("web", ownedByAnother, labelled(keys.Sandbox, "true")), nil},
		"a Sandbox by a Pod of another name":       {sandboxPod, makeSandbox(trackingPod("mine")), []string{"mine"}},
		"a Sandbox by no Pod of its own name":      {sandboxPod, makeSandbox(trackingPod("box")), nil},
		"a Sandbox by its volume claims":           {sandboxClaims, makeSandbox(withVolume("work", "cache")), []string{"work-box", "cache-box"}},
		"a Sandbox of another group by no Sandbox UID": {podSandbox, makePod("x", func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Sandbox", UID: "x", Controller: new(true)}}
		}), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.index(tc.object)); diff != "" {
				t.Errorf("index (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMoreThanStatusLetsThroughWhatMatters(t *testing.T) {
	versioned := func(version string, edits ...func(*agentsv1beta1.Sandbox)) *agentsv1beta1.Sandbox {
		return makeSandbox(append(edits, func(s *agentsv1beta1.Sandbox) { s.ResourceVersion = version })...)
	}
	cases := map[string]struct {
		after *agentsv1beta1.Sandbox
		want  bool
	}{
		"the status":       {versioned("2", withCondition("Ready", "True", "", "", noon())), false},
		"a resync":         {versioned("1"), true},
		"the spec":         {versioned("2", func(s *agentsv1beta1.Sandbox) { s.Generation++ }), true},
		"a label":          {versioned("2", withLabels(map[string]string{keys.CreatedBy: "go-client"})), true},
		"an annotation":    {versioned("2", trackingPod("box")), true},
		"a new controller": {versioned("2", controlledBy("SandboxClaim")), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := moreThanStatus().Update(event.UpdateEvent{ObjectOld: versioned("1"), ObjectNew: tc.after}); got != tc.want {
				t.Errorf("moreThanStatus() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestOnlyAClaimThatTakesASandboxOfAPoolLetsItWait(t *testing.T) {
	pooled, claimed := makeSandbox(controlledBy("SandboxWarmPool")), makeSandbox(controlledBy("SandboxClaim"))
	cases := map[string]struct {
		before, after *agentsv1beta1.Sandbox
		want          bool
	}{
		"taken by a claim":       {pooled, claimed, true},
		"changed in its pool":    {pooled, pooled, false},
		"changed by its claim":   {claimed, claimed, false},
		"left by its pool":       {pooled, makeSandbox(), false},
		"one of nobody, adopted": {makeSandbox(), claimed, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := handedOver().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("handedOver() = %t, want %t", got, tc.want)
			}
		})
	}
	if handedOver().Create(event.CreateEvent{Object: claimed}) {
		t.Error("a Sandbox that appears waits, although nobody has just taken it")
	}
}
