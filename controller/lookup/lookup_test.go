// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

func TestTierLabel(t *testing.T) {
	reader := func(objects ...client.Object) client.Reader {
		return fake.NewClientBuilder().WithObjects(objects...).Build()
	}
	namespace := func(labels map[string]string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: labels}}
	}
	restricted := namespace(map[string]string{keys.Tier: "restricted"})
	cases := map[string]struct {
		cached, live client.Reader
		want         string
		fails        bool
	}{
		"the label in the cache":                      {cached: reader(restricted), live: reader(), want: "restricted"},
		"a namespace that the cache does not know":    {cached: reader(), live: reader(restricted), want: "restricted"},
		"a namespace without the label":               {cached: reader(namespace(nil)), live: reader()},
		"no namespace, which is no reason to default": {cached: reader(), live: reader(), fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := lookup.TierLabel(t.Context(), tc.cached, tc.live, "team-a")
			if got != tc.want || (err != nil) != tc.fails || tc.fails && !errors.Is(err, lookup.ErrNoNamespace) {
				t.Errorf("TierLabel() = %q, %v, want %q and an error: %t", got, err, tc.want, tc.fails)
			}
		})
	}
}

func TestWhatIsBeingDeletedIsNotFoundAmongWhatStays(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizers []string
		deleted    *metav1.Time
		want       bool
	}{
		"what stays": {want: true},
		"what a finalizer of others holds though it was deleted": {finalizers: []string{"example.com/hold"}, deleted: new(metav1.Now())},
	} {
		t.Run(name, func(t *testing.T) {
			stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "team-a", Name: "object", Finalizers: tc.finalizers, DeletionTimestamp: tc.deleted,
			}}
			reader := fake.NewClientBuilder().WithObjects(stored).Build()
			found, err := lookup.Staying(t.Context(), reader, "team-a", "object", &corev1.ConfigMap{})
			if err != nil || (found != nil) != tc.want {
				t.Errorf("Staying() = %v, %v, want one: %t", found, err, tc.want)
			}
			absent, err := lookup.Staying(t.Context(), reader, "team-a", "other", &corev1.ConfigMap{})
			if err != nil || absent != nil {
				t.Errorf("of what does not exist: Staying() = %v, %v, want none", absent, err)
			}
		})
	}
}
