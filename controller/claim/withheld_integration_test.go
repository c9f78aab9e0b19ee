// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// withImage changes the image of the template.
func (s *stock) withImage(image string) {
	s.e.Helper()
	apiserver.Change(s.e.Environment, s.template.Name, &template{}, func(t *template) { t.Spec.PodTemplate.Spec.Containers[0].Image = image })
}

// takesStale lets the pool hand out its members as they are.
func (s *stock) takesStale() {
	s.e.Helper()
	apiserver.Change(s.e.Environment, s.pool.Name, &pool{}, func(p *pool) {
		p.Spec.UpdateStrategy = &extensionsv1beta1.UpdateStrategy{Type: extensionsv1beta1.UpdateStrategyOnReplenish}
	})
}

// inTier moves the namespace into a tier.
func (e *environment) inTier(tier string) {
	e.Helper()
	namespace := &corev1.Namespace{}
	if err := e.Client.Get(e.Context(), client.ObjectKey{Name: e.Namespace}, namespace); err != nil {
		e.Fatal(err)
	}
	before := namespace.DeepCopy()
	namespace.Labels[keys.Tier] = tier
	if err := e.Client.Patch(e.Context(), namespace, client.MergeFrom(before)); err != nil {
		e.Fatal(err)
	}
	e.Eventually("the controller has seen the tier", func() error {
		label, err := lookup.TierLabel(e.Context(), e.reconciler.client, e.reconciler.live, e.Namespace)
		if label != tier {
			return fmt.Errorf("it has %q, %w", label, err)
		}
		return nil
	})
}

// Members that are not for claims now are offered to none, and are offered again when what
// speaks against them is gone.
func TestMembersThatAreWithheldComeBack(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		strategy   extensionsv1beta1.UpdateStrategyType
		away, back func(*stock)
	}{
		"when the template describes them again": {
			extensionsv1beta1.UpdateStrategyRecreate,
			func(s *stock) { s.withImage(newImage) },
			func(s *stock) { s.withImage(makeTemplate().Spec.PodTemplate.Spec.Containers[0].Image) },
		},
		"when the strategy takes them as they are": {
			extensionsv1beta1.UpdateStrategyRollingUpdate,
			func(s *stock) { s.withImage(newImage) },
			func(s *stock) { s.takesStale() },
		},
		"when the tier takes their RuntimeClass again": {
			extensionsv1beta1.UpdateStrategyOnReplenish,
			func(s *stock) { s.e.inTier("guarded") },
			func(s *stock) { s.e.inTier("standard") },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t, func(e *environment) {
				guarded := e.setting.Current().Tiers["standard"]
				guarded.RuntimeClass.Floor = "gvisor"
				e.setting.Current().Tiers["guarded"], e.setting.Current().RuntimeClassOrder = guarded, []string{"gvisor", "runc"}
			})
			stock := e.pool(func(_ *template, p *pool) {
				p.Spec.UpdateStrategy = &extensionsv1beta1.UpdateStrategy{Type: tc.strategy}
			})
			for i := range 3 {
				stock.add(fmt.Sprintf("pool-%d", i))
			}
			stock.offers(3, 3)
			tc.away(stock)
			e.Create(makeClaim("claim"))
			e.Eventually("the claim waits", func() error { return waits(e) })
			stock.offers(0, 3)
			tc.back(stock)
			e.says(saysReady)
			stock.offers(2, 2)
		})
	}
}

// The cache never learns of the new template. Who changed it before he made the claim gets
// nothing of the old one all the same, unless the strategy takes that.
func TestAStaleMemberIsNotHandedOutWhateverTheCacheShows(t *testing.T) {
	t.Parallel()
	for strategy, waiting := range map[extensionsv1beta1.UpdateStrategyType]bool{
		extensionsv1beta1.UpdateStrategyRecreate: true, extensionsv1beta1.UpdateStrategyRollingUpdate: true,
		extensionsv1beta1.UpdateStrategyOnReplenish: false,
	} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			late := apiserver.NewLag(1, 10_000*time.Hour, 0).Of("sandboxtemplates")
			e := newEnvironment(t, func(e *environment) { e.Lag = late })
			stock := e.pool(func(_ *template, p *pool) { p.Spec.UpdateStrategy = &extensionsv1beta1.UpdateStrategy{Type: strategy} })
			stock.add("pool-1")
			stock.offers(1, 1)
			shown := &template{}
			e.Eventually("the first template is seen", func() error { return e.reconciler.client.Get(e.Context(), e.Key("template"), shown, lookup.Glance) })
			late.Begin()
			stock.withImage(newImage)
			e.Create(makeClaim("claim"))
			if waiting {
				e.Eventually("the claim waits", func() error { return waits(e) })
				stock.offers(0, 1)
			} else {
				e.says(saysReady)
			}
			if err := e.reconciler.client.Get(e.Context(), e.Key("template"), shown, lookup.Glance); err != nil || imageOf(shown) == newImage {
				t.Errorf("the cache shows %q, %v: the test proves nothing", imageOf(shown), err)
			}
		})
	}
}
