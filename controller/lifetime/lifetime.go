// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifetime says when a tier ends what a tenant began, for the controllers: they
// hold the tier's longest life whatever admission said when the object was stored.
//
// 2026-11-30: The life that the tier gave is noted on what was started, at no write of
// its own: on the Pod of a Sandbox, and on the Sandbox that serves a claim. Without that
// note nobody could tell an object that evaded admission, which must end, from one that
// started before the tier became stricter, which must not: a longer life that was given
// stands, and what was started under no bound has none. The note is a label, since the
// backstop keeps everybody else from reserved labels of Pods.
//
// 2026-11-30: What waits in a pool ends as well. Its Pod runs the template of whoever wrote that, and he may get into it
// without any claim. A claim's own time begins with the claim.
//
// 2026-11-30: The shutdownTime is never written for the tenant. It is his word, and the
// tier's is said beside it: by a Warning at the start, and by Ready at the end.
package lifetime

import (
	"hash/fnv"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// Bounded says whether a tier gives a longest life.
func Bounded(tier config.Tier) bool { return tier.MaxLifetime.Duration > 0 }

// Note puts into the labels of what is about to be started the longest life that the
// tier gives now, or takes an earlier note away where it gives any.
func Note(started metav1.Object, tier config.Tier) {
	labels := started.GetLabels()
	if tier.MaxLifetime.Duration <= 0 {
		delete(labels, keys.MaxLifetime)
		return
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[keys.MaxLifetime] = tier.MaxLifetime.Duration.String()
	started.SetLabels(labels)
}

// End is when the tier ends what began at that time; the zero time for never. Running
// is what was started for it: unless something was, today's tier decides alone.
func End(began time.Time, tier config.Tier, running ...metav1.Object) time.Time {
	most := tier.MaxLifetime.Duration
	if most <= 0 {
		return time.Time{}
	}
	given := time.Duration(0)
	for _, object := range running {
		if noted, err := time.ParseDuration(object.GetLabels()[keys.MaxLifetime]); err == nil {
			given = max(given, noted)
		}
	}
	if len(running) > 0 && given <= 0 {
		return time.Time{}
	}
	return began.Add(max(most, given))
}

// Spread is an earlier end for one of several that began together, within the last tenth of their life: they do not all
// end at once.
func Spread(of metav1.Object, end time.Time) time.Time {
	tenth := end.Sub(of.GetCreationTimestamp().Time) / 10
	if end.IsZero() || tenth <= 0 {
		return end
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(of.GetUID())) // a hash takes everything
	return end.Add(-time.Duration(float64(tenth) * float64(hash.Sum32()) / math.MaxUint32))
}

// Curtails says whether the tier's end comes before the one that the tenant chose, which
// is nil when he chose none.
func Curtails(end time.Time, chosen *metav1.Time) bool {
	return !end.IsZero() && (chosen == nil || end.Before(chosen.Time))
}
