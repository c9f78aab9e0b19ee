// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policysource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Check says why a policy ConfigMap would not load, together with the library and
// the ConfigMaps in force.
func (s *Source) Check(ctx context.Context, configMap *corev1.ConfigMap) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(configMap.Data)) {
		if key != ConfigurationKey && !strings.HasSuffix(key, moduleSuffix) {
			errs = append(errs, fmt.Errorf("%s: key %q is neither %s nor does it end in %s: rename or remove it",
				source(configMap), key, ConfigurationKey, moduleSuffix))
		}
	}
	// kubectl puts a file there that is not UTF-8, and nobody reads it.
	for _, key := range slices.Sorted(maps.Keys(configMap.BinaryData)) {
		errs = append(errs, fmt.Errorf("%s: key %q is binaryData, which is not read: save the file as UTF-8 text, so that it becomes data",
			source(configMap), key))
	}
	wanted, unknown := s.state()
	wanted[configMap.Name] = configMap
	report, err := s.try(ctx, wanted)
	if err != nil {
		errs = append(errs, err)
	}
	for _, reason := range s.faultsOf(configMap, report) {
		errs = append(errs, errors.New(reason))
	}
	own, err := s.parse(configMap)
	if err == nil {
		errs = append(errs, bereft(report, func(rule string) bool { return unknown.Has(rule) || own.configuration.Mentions(rule) })...)
	}
	return errors.Join(errs...)
}

// CheckRemoval says which rules of a policy ConfigMap other ConfigMaps configure.
func (s *Source) CheckRemoval(ctx context.Context, configMap *corev1.ConfigMap) error {
	wanted, unknown := s.state()
	delete(wanted, configMap.Name)
	// That the others do not load for another reason is not the fault of this one.
	report, _ := s.try(ctx, wanted)
	return errors.Join(bereft(report, unknown.Has)...)
}

// state is what is in force: the ConfigMaps, and the ids in their configuration that
// no rule has.
func (s *Source) state() (map[string]*corev1.ConfigMap, sets.Set[string]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.inForce), s.unknown
}

// try loads ConfigMaps without putting them in force.
func (s *Source) try(ctx context.Context, configMaps map[string]*corev1.ConfigMap) (engine.LoadReport, error) {
	set, err := s.combine(configMaps)
	if err != nil {
		return engine.LoadReport{}, err
	}
	return s.scratch.Load(ctx, set.modules, set.configuration)
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
