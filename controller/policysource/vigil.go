// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policysource

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Reasons of the Events about policies that lose or lost their effect as time goes by.
const (
	ReasonRuleQuarantined   = "PolicyRuleQuarantined"
	ReasonExemptionExpiring = "PolicyExemptionExpiring"
	ReasonExemptionExpired  = "PolicyExemptionExpired"
)

// vigilPeriod is how often the time is held against what expires on a day.
const vigilPeriod = time.Hour

// maxNotices is how many quarantines may wait to be told of.
const maxNotices = 16

// Notices returns what Options.Quarantined takes, and the option of the engine that feeds it.
func Notices() (<-chan string, engine.Option) {
	notices := make(chan string, maxNotices)
	return notices, engine.WithQuarantineHook(func(rule string) {
		// The next look sees all that are held: a notice that finds no place is not lost.
		select {
		case notices <- rule:
		default:
		}
	})
}

// vigil looks at what changes without a load: rules that go into quarantine, and exemptions that expire.
type vigil struct {
	source *Source
}

// Start looks until the context ends, and lets the engine end what it works on.
func (v vigil) Start(ctx context.Context) error {
	ticker := v.source.Clock.NewTicker(vigilPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			v.source.Engine.Close()
			return nil
		case <-ticker.C():
		case <-v.source.Quarantined:
		}
		v.source.mu.Lock()
		v.source.look()
		v.source.mu.Unlock()
	}
}

// NeedLeaderElection says that replicas on stand-by look too.
func (vigil) NeedLeaderElection() bool { return false }

// look sets the metrics of what is in force now, and tells once of each change.
func (s *Source) look() {
	held := s.Engine.Quarantined()
	s.Metrics.quarantined.Reset()
	for _, rule := range held {
		s.Metrics.quarantined.WithLabelValues(rule).Set(1)
		s.tellOnce(s.ofRule(rule), ReasonRuleQuarantined, rule, fmt.Sprintf(
			"rule %s did not finish in time again and again: it is not run any more, and every object of its kinds has a finding for it, until its content changes", rule))
	}
	s.Metrics.ready.Set(0)
	if s.whole && len(held) == 0 && s.Engine.Ready() {
		s.Metrics.ready.Set(1)
	}
	s.lookAtExemptions()
	if digest := s.Engine.Digest(); digest != s.digest {
		s.digest = digest
		s.Metrics.inForce(digest)
		if s.Changed != nil {
			s.Changed()
		}
	}
}

func (s *Source) lookAtExemptions() {
	counts := map[string]int{exemptionActive: 0, exemptionExpiring: 0, exemptionExpired: 0}
	for _, name := range slices.Sorted(maps.Keys(s.inForce)) {
		configMap := s.inForce[name]
		own, err := s.parse(configMap)
		if err != nil {
			continue
		}
		for _, exemption := range own.configuration.ExemptionsAt(s.Clock.Now()) {
			counts[s.stateOf(configMap, exemption)]++
		}
	}
	for state, count := range counts {
		s.Metrics.exemptions.WithLabelValues(state).Set(float64(count))
	}
}

// stateOf returns the state of an exemption, and tells of one that ends.
func (s *Source) stateOf(configMap *corev1.ConfigMap, x engine.ExemptionStatus) string {
	key := fmt.Sprint(x.Rule, x.Namespaces, x.Objects, x.Kinds, x.Expires)
	switch {
	case x.Expired:
		s.tellOnce(configMap, ReasonExemptionExpired, key, fmt.Sprintf(
			"the exemption from rule %s ended with %s: the rule holds again; remove the entry, or ask %s for another date", x.Rule, x.Expires, x.Owner))
		return exemptionExpired
	case x.Expiring:
		s.tellOnce(configMap, ReasonExemptionExpiring, key, fmt.Sprintf(
			"the exemption from rule %s ends with %s: mend what it covers, or ask %s for another date", x.Rule, x.Expires, x.Owner))
		return exemptionExpiring
	default:
		return exemptionActive
	}
}

// ofRule is the ConfigMap that brings a rule; nil for one of the library.
func (s *Source) ofRule(id string) *corev1.ConfigMap {
	for _, info := range s.Engine.Catalogue() {
		if info.ID != id {
			continue
		}
		for _, configMap := range s.inForce {
			if source(configMap) == info.Source {
				return configMap
			}
		}
	}
	return nil
}

// tellOnce warns, unless it did about the same.
func (s *Source) tellOnce(configMap *corev1.ConfigMap, reason, key, note string) {
	if configMap == nil {
		return
	}
	// A new version of a ConfigMap may bring the same anew.
	seen := fmt.Sprint(configMap.Name, configMap.ResourceVersion, reason, key)
	if !s.told.Has(seen) {
		s.told.Insert(seen)
		s.warn(configMap, reason, note)
	}
}
