// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package relations_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

func TestPoolTakesOnlyAControllerOfThatGroupAndKind(t *testing.T) {
	cases := map[string]struct {
		version, kind string
		controller    bool
		want          bool
	}{
		"a pool":                       {"extensions.agents.x-k8s.io/v1beta1", "SandboxWarmPool", true, true},
		"a pool of an earlier version": {"extensions.agents.x-k8s.io/v1alpha1", "SandboxWarmPool", true, true},
		"a pool that only owns":        {"extensions.agents.x-k8s.io/v1beta1", "SandboxWarmPool", false, false},
		"a like kind of another group": {"example.com/v1", "SandboxWarmPool", true, false},
		"another kind of the group":    {"extensions.agents.x-k8s.io/v1beta1", "SandboxClaim", true, false},
		"a version that is none":       {"a/b/c", "SandboxWarmPool", true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := &metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
				{APIVersion: tc.version, Kind: tc.kind, Name: "pool", Controller: &tc.controller},
			}}
			if got := relations.Pool(object); (got != nil) != tc.want {
				t.Errorf("Pool() = %v, want one: %t", got, tc.want)
			}
		})
	}
}

// What a template may be used for hangs on more than its spec; what it was before it was
// looked at first is no news.
func TestUsabilityChanged(t *testing.T) {
	of := func(status metav1.ConditionStatus) *extensionsv1beta1.SandboxTemplate {
		template := &extensionsv1beta1.SandboxTemplate{}
		if status != "" {
			template.Status.Conditions = []metav1.Condition{{Type: extensionsv1beta1.TemplateConditionReady, Status: status}}
		}
		return template
	}
	cases := map[string]struct {
		before, after metav1.ConditionStatus
		want          bool
	}{
		"usable from the start":   {"", metav1.ConditionTrue, false},
		"unusable from the start": {"", metav1.ConditionFalse, true},
		"usable again":            {metav1.ConditionFalse, metav1.ConditionTrue, true},
		"no longer usable":        {metav1.ConditionTrue, metav1.ConditionFalse, true},
		"still unusable":          {metav1.ConditionFalse, metav1.ConditionFalse, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := relations.UsabilityChanged(of(tc.before), of(tc.after)); got != tc.want {
				t.Errorf("UsabilityChanged() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestSameCondition(t *testing.T) {
	one := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Waiting", Message: "for a node"}
	later := one
	later.LastTransitionTime = metav1.Now()
	said := one
	said.Message = "for a volume"
	cases := map[string]struct {
		before, after []metav1.Condition
		want          bool
	}{
		"neither has it":   {nil, nil, true},
		"it came":          {nil, []metav1.Condition{one}, false},
		"it went":          {[]metav1.Condition{one}, nil, false},
		"it began later":   {[]metav1.Condition{one}, []metav1.Condition{later}, true},
		"it says more now": {[]metav1.Condition{one}, []metav1.Condition{said}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := relations.SameCondition(tc.before, tc.after, "Ready"); got != tc.want {
				t.Errorf("SameCondition() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestTierChangedLetsOnlyTheTierThrough(t *testing.T) {
	namespace := func(labels map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	cases := map[string]struct {
		after map[string]string
		want  bool
	}{
		"another label": {map[string]string{"team": "blue"}, false},
		"the tier":      {map[string]string{keys.Tier: "restricted"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := relations.TierChanged().Update(event.UpdateEvent{ObjectOld: namespace(nil), ObjectNew: namespace(tc.after)})
			if got != tc.want {
				t.Errorf("TierChanged() = %t, want %t", got, tc.want)
			}
		})
	}
}

// An index that is declared twice costs twice, and a cache does not take one name of a kind
// twice.
func TestSharedIndexesFindWhatTheyAreFor(t *testing.T) {
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: "box", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxClaim", Name: "claim", UID: "claim-uid", Controller: new(true)},
	}}}
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: "python"}}
	pool := &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	pool.Spec.TemplateRef.Name = "python"
	claim := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}}
	claim.Spec.WarmPoolRef.Name = "pool"
	got := map[string]string{}
	for _, index := range slices.Concat(relations.OfSandboxes(), relations.OfExtensions()) {
		for _, object := range []client.Object{sandbox, template, pool, claim} {
			if key := fmt.Sprintf("%T by %s", object, index.Name); reflect.TypeOf(object) == reflect.TypeOf(index.Object) {
				if _, twice := got[key]; twice {
					t.Errorf("%s is declared twice", key)
				}
				got[key] = index.Value(object)
			}
		}
	}
	want := map[string]string{
		"*v1beta1.Sandbox by " + relations.ByNameHash:             keys.NameHash("box"),
		"*v1beta1.Sandbox by " + relations.SandboxByClaim:         "claim-uid",
		"*v1beta1.SandboxTemplate by " + relations.ByNameHash:     keys.NameHash("python"),
		"*v1beta1.SandboxWarmPool by " + relations.ByNameHash:     keys.NameHash("pool"),
		"*v1beta1.SandboxWarmPool by " + relations.PoolByTemplate: "python",
		"*v1beta1.SandboxClaim by " + relations.ClaimByPool:       "pool",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("indexes (-want +got):\n%s", diff)
	}
}
