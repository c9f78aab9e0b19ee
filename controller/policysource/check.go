// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policysource

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Check says why a policy ConfigMap would not load, together with the library and
// the ConfigMaps in force.
func (s *Source) Check(ctx context.Context, configMap *corev1.ConfigMap) error {
	var errs []error
	wanted, unknown, broken := s.state()
	wanted[configMap.Name] = configMap
	report, err := s.try(ctx, wanted)
	if err != nil {
		errs = append(errs, err)
	}
	for _, reason := range s.faultsOf(configMap, report) {
		errs = append(errs, errors.New(reason))
	}
	for _, other := range report.Broken {
		if other.Source != source(configMap) && !broken.Has(fileOf(other)) {
			errs = append(errs, fmt.Errorf("a rule of another ConfigMap would not load beside it: %s", other.Reason))
		}
	}
	own, err := s.parse(configMap)
	if err == nil {
		errs = append(errs, bereft(report, func(rule string) bool { return unknown.Has(rule) || own.configuration.Mentions(rule) })...)
	}
	return errors.Join(errs...)
}

// CheckRemoval says which rules of a policy ConfigMap other ConfigMaps configure.
func (s *Source) CheckRemoval(ctx context.Context, configMap *corev1.ConfigMap) error {
	wanted, unknown, _ := s.state()
	delete(wanted, configMap.Name)
	// That the others do not load for another reason is not the fault of this one.
	report, _ := s.try(ctx, wanted)
	return errors.Join(bereft(report, unknown.Has)...)
}

// state is what is in force: the ConfigMaps, the ids in their configuration that
// no rule has, and the files that did not load.
func (s *Source) state() (inForce map[string]*corev1.ConfigMap, unknown, broken sets.Set[string]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.inForce), s.unknown, s.broken
}

func fileOf(broken engine.BrokenModule) string { return broken.Source + "/" + broken.Name }

// try loads ConfigMaps without putting them in force.
func (s *Source) try(ctx context.Context, configMaps map[string]*corev1.ConfigMap) (engine.LoadReport, error) {
	set, err := s.combine(configMaps)
	if err != nil {
		return engine.LoadReport{}, err
	}
	return s.Engine.Try(ctx, set.modules, set.configuration)
}

// bereft lists entries of the configuration that lose their rule.
func bereft(report engine.LoadReport, known func(rule string) bool) []error {
	var errs []error
	for _, unknown := range report.Unknown {
		if !known(unknown.Rule) {
			errs = append(errs, fmt.Errorf("rule %s goes and would still be configured, remove that first: %s", unknown.Rule, unknown.Reason))
		}
	}
	return errs
}
