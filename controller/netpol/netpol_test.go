// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package netpol

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

func TestMend(t *testing.T) {
	cases := map[string]struct {
		edit func(*networkingv1.NetworkPolicy)
		want bool
	}{
		"untouched":             {func(*networkingv1.NetworkPolicy) {}, false},
		"somebody's annotation": {func(p *networkingv1.NetworkPolicy) { p.Annotations = map[string]string{"note": "x"} }, false},
		"an egress rule":        {func(p *networkingv1.NetworkPolicy) { p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}} }, true},
		"a narrower selector":   {func(p *networkingv1.NetworkPolicy) { p.Spec.PodSelector.MatchLabels["app"] = "x" }, true},
		"one type fewer":        {func(p *networkingv1.NetworkPolicy) { p.Spec.PolicyTypes = p.Spec.PolicyTypes[:1] }, true},
		"our mark taken off":    {func(p *networkingv1.NetworkPolicy) { p.Labels = nil }, true},
		"another's choice":      {func(p *networkingv1.NetworkPolicy) { p.Labels[keys.EgressProfile] = "public" }, true},
		"an owner to die with":  {func(p *networkingv1.NetworkPolicy) { p.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := isolation.Floor("team-a")
			tc.edit(got)
			given := got.DeepCopy()
			if held := holds(got, isolation.Floor("team-a")); held == tc.want {
				t.Errorf("holds() = %t, want %t", held, !tc.want)
			}
			want := isolation.Floor("team-a")
			want.Annotations = got.Annotations
			if diff := cmp.Diff(want, mend(got, isolation.Floor("team-a"))); diff != "" {
				t.Errorf("mended policy (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(given, got); diff != "" {
				t.Errorf("what is the cache's has changed (-given +now):\n%s", diff)
			}
		})
	}
}

func makeTemplate() *extensionsv1beta1.SandboxTemplate {
	return &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "python", UID: "template-uid"}}
}

func TestCheckHolder(t *testing.T) {
	template := makeTemplate()
	floor := isolation.Floor("team-a")
	cases := map[string]struct {
		edit func(*networkingv1.NetworkPolicy)
		ours bool
	}{
		"as it was made":                        {func(*networkingv1.NetworkPolicy) {}, true},
		"left by its template":                  {func(p *networkingv1.NetworkPolicy) { p.OwnerReferences = nil }, true},
		"left with the floor as its owner":      {func(p *networkingv1.NetworkPolicy) { p.OwnerReferences = p.OwnerReferences[1:] }, true},
		"of an earlier template of that name":   {func(p *networkingv1.NetworkPolicy) { p.OwnerReferences[0].UID = "old" }, true},
		"made by another release of the API":    {func(p *networkingv1.NetworkPolicy) { p.Labels = nil }, true},
		"somebody's":                            {func(p *networkingv1.NetworkPolicy) { p.OwnerReferences, p.Labels = nil, nil }, false},
		"controlled by another template":        {func(p *networkingv1.NetworkPolicy) { p.OwnerReferences[0].Name = "go" }, false},
		"controlled by another kind":            {func(p *networkingv1.NetworkPolicy) { p.OwnerReferences[0].Kind = "SandboxClaim" }, false},
		"controlled by a like kind of a group":  {func(p *networkingv1.NetworkPolicy) { p.OwnerReferences[0].APIVersion = "example.com/v1" }, false},
		"ours, left by a template of that hash": {func(p *networkingv1.NetworkPolicy) { p.OwnerReferences = nil; p.Labels[keys.Template] = "other" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := isolation.Template(template, isolation.Choice{}, &config.Platform{})
			got.OwnerReferences = owners(template, floor)
			tc.edit(got)
			err := checkHolder(got, template.Name)
			if taken := (*TakenError)(nil); (err == nil) != tc.ours || (err != nil && !errors.As(err, &taken)) {
				t.Errorf("checkHolder() = %v, want ours: %t", err, tc.ours)
			}
		})
	}
}
