// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

func TestBuildClaim(t *testing.T) {
	template := &agentsv1beta1.PersistentVolumeClaimTemplate{
		EmbeddedObjectMetadata: agentsv1beta1.EmbeddedObjectMetadata{
			Name:        "work",
			Labels:      map[string]string{"team": "blue", keys.SandboxNameHash: "forged"},
			Annotations: map[string]string{"note": "hello", keys.PodName: "forged"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	want := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "work-box",
			Labels:          map[string]string{"team": "blue", keys.SandboxNameHash: keys.NameHash("box")},
			Annotations:     map[string]string{"note": "hello"},
			OwnerReferences: []metav1.OwnerReference{controllerRef(makeSandbox())},
		},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	if diff := cmp.Diff(want, buildClaim(makeSandbox(), template)); diff != "" {
		t.Errorf("buildClaim() (-want +got):\n%s", diff)
	}
}

func TestClaimGoing(t *testing.T) {
	going := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "work-box", DeletionTimestamp: &metav1.Time{Time: noon()}}}
	cases := map[string]struct {
		scope *scope
		claim *corev1.PersistentVolumeClaim
		want  string
	}{
		"a claim that stays":                        {makeScope(makeSandbox()), &corev1.PersistentVolumeClaim{}, ""},
		"a claim that goes under a Pod that has it": {makeScope(makeSandbox(), having(makePod("box"))), going, ""},
		"a claim that goes before there is a Pod":   {makeScope(makeSandbox()), going, `persistentvolumeclaim "work-box" is being deleted since 2026-11-29T12:00:00`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := textOf(claimGoing(tc.scope, tc.claim))
			if !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("claimGoing() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMayInherit(t *testing.T) {
	left := func(by, creator string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "work-box", Labels: map[string]string{
			keys.SandboxNameHash: keys.NameHash("box"), keys.RetainedBy: by, keys.RetainedFor: keys.CreatorKey(creator),
		}}}
	}
	handedOver := left("earlier", "bob")
	handedOver.Labels[keys.Adoptable] = "true"
	cases := map[string]struct {
		claim   *corev1.PersistentVolumeClaim
		creator string
		tier    config.Adoption
		may     bool
	}{
		"what the same creator left behind":                       {left("earlier", "ann"), "ann", "", true},
		"what the same creator left behind, without adoption":     {left("earlier", "ann"), "ann", config.AdoptionRefuse, true},
		"what somebody else left behind":                          {left("earlier", "bob"), "ann", "", false},
		"what nobody knows who left behind":                       {left("earlier", ""), "ann", "", false},
		"somebody's, for a creator whom nobody knows":             {left("earlier", "ann"), "", "", false},
		"nobody's, for nobody":                                    {left("earlier", ""), "", "", false},
		"what somebody else hands over":                           {handedOver, "ann", "", true},
		"what somebody else hands over in a tier that allows it":  {handedOver, "ann", config.AdoptionAllow, true},
		"what somebody else hands over in a tier that refuses it": {handedOver, "ann", config.AdoptionRefuse, false},
		"a claim that was never retained":                         {left("", ""), "ann", "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := makeScope(makeSandbox(func(s *agentsv1beta1.Sandbox) { s.Annotations = map[string]string{keys.Creator: tc.creator} }))
			s.tier.Adoption = tc.tier
			if err := s.mayInherit(tc.claim); (err == nil) != tc.may {
				t.Errorf("mayInherit() = %v, want allowed: %t", err, tc.may)
			}
		})
	}
}
