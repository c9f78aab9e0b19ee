// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lifetime"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

// gatherTier finds the tier of the claim's namespace where it can end the claim.
func (r *Reconciler) gatherTier(ctx context.Context, s *scope) error {
	if !boundsLives(r.settings.Current()) {
		return nil
	}
	label, err := lookup.TierLabel(ctx, r.client, r.live, s.claim.Namespace)
	if err != nil {
		return err
	}
	_, s.tier, _ = r.settings.Current().TierOf(label)
	return nil
}

func boundsLives(platform *config.Platform) bool {
	for _, tier := range platform.Tiers {
		if tier.MaxLifetime.Duration > 0 {
			return true
		}
	}
	return false
}

// tierEnd is when the tier ends the claim; the zero time for never.
func (s *scope) tierEnd() time.Time {
	serving := make([]metav1.Object, 0, len(s.owned))
	for _, sandbox := range s.owned {
		serving = append(serving, sandbox)
	}
	return lifetime.End(s.claim.CreationTimestamp.Time, s.tier, serving...)
}

// curtailed says whether the tier ends the claim before its own shutdownTime does.
func (s *scope) curtailed() bool {
	var chosen *metav1.Time
	if lifecycle := s.claim.Spec.Lifecycle; lifecycle != nil {
		chosen = lifecycle.ShutdownTime
	}
	return lifetime.Curtails(s.tierEnd(), chosen)
}

// outlived says whether the time is up that the tier gives, and the claim's own is not.
func (s *scope) outlived() bool {
	end, own := s.tierEnd(), expiry(s.claim, s.finished())
	return !end.IsZero() && !s.now.Before(end) && (own.IsZero() || s.now.Before(own))
}
