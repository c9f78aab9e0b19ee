// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

func TestOutcome(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	invalid := fmt.Errorf("create pod: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "box", nil))
	quota := apierrors.NewForbidden(pods, "box", errors.New("exceeded quota"))
	ending := apierrors.NewForbidden(pods, "box", errors.New("the namespace ends"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	const (
		fine = iota
		retried
		final
	)
	cases := map[string]struct {
		problems problems
		want     int
	}{
		"nothing":                                 {nil, fine},
		"more Pods than one are a state":          {problems{multiplePodsError{count: 2}}, fine},
		"a user's mistake":                        {problems{userErrorf("bad")}, final},
		"what the apiserver calls invalid":        {problems{invalid}, final},
		"a namespace that ends":                   {problems{ending}, final},
		"a full quota":                            {problems{quota}, retried},
		"a fault of the network":                  {problems{errors.New("timeout")}, retried},
		"a mistake beside a fault of the network": {problems{userErrorf("bad"), errors.New("timeout")}, retried},
		"both, joined by one phase":               {problems{}.with(errors.Join(userErrorf("bad"), errors.New("timeout"))), retried},
		"both, joined again by the whole pass":    {problems{}.with(errors.Join(errors.Join(userErrorf("bad"), errors.New("timeout")), nil)), retried},
		"a mistake beside more Pods than one":     {problems{multiplePodsError{count: 2}, userErrorf("bad")}, final},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fine
			if err := tc.problems.outcome(); errors.Is(err, reconcile.TerminalError(nil)) {
				got = final
			} else if err != nil {
				got = retried
			}
			if got != tc.want {
				t.Errorf("outcome() = %v, which is %d, want %d", tc.problems.outcome(), got, tc.want)
			}
		})
	}
}

func TestOnlyRaces(t *testing.T) {
	conflict := fmt.Errorf("adopt: %w", apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "box", errors.New("changed")))
	cases := map[string]struct {
		problems problems
		want     bool
	}{
		"nothing":                     {nil, false},
		"a conflict":                  {problems{conflict}, true},
		"something that went":         {problems{fmt.Errorf("patch: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "box"))}, true},
		"an object that was replaced": {problems{fmt.Errorf("patch: %w", patch.ErrReplaced)}, true},
		"a conflict and worse":        {problems{conflict, errors.New("timeout")}, false},
		"something that is no clash":  {problems{errors.New("timeout")}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.problems.onlyRaces(); got != tc.want {
				t.Errorf("onlyRaces() = %t, want %t", got, tc.want)
			}
		})
	}
}
