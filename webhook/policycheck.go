// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Validate refuses a policy ConfigMap that would not load, so that its author hears
// of it when he applies it. Loading checks again, so this may fail open.
func (s *PolicySource) Validate(ctx context.Context, req admission.Request) admission.Response {
	if !judgedOperation(req) {
		return admission.Allowed("")
	}
	var configMap corev1.ConfigMap
	if err := json.Unmarshal(req.Object.Raw, &configMap); err != nil {
		return failed(http.StatusBadRequest, fmt.Errorf("read the ConfigMap: %w", err))
	}
	configMap.Namespace = req.Namespace
	if configMap.Labels[keys.PolicySource] != "true" || req.Namespace != s.Namespace || !configMap.DeletionTimestamp.IsZero() {
		return admission.Allowed("")
	}
	if err := s.Check(ctx, &configMap); err != nil {
		logf.FromContext(ctx).Info("policy ConfigMap refused", "reason", err.Error())
		return admission.Denied("the policies would not load: " + err.Error())
	}
	return admission.Allowed("")
}

// Check says why a policy ConfigMap would not load, together with the library and
// the ConfigMaps in force.
func (s *PolicySource) Check(ctx context.Context, configMap *corev1.ConfigMap) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(configMap.Data)) {
		if key != configurationKey && !strings.HasSuffix(key, moduleSuffix) {
			errs = append(errs, fmt.Errorf("%s: key %q is neither %s nor does it end in %s: rename or remove it",
				source(configMap), key, configurationKey, moduleSuffix))
		}
	}
	s.mu.Lock()
	wanted := maps.Clone(s.inForce)
	s.mu.Unlock()
	wanted[configMap.Name] = configMap
	set, err := s.combine(wanted)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	report, err := s.scratch.Load(ctx, set.modules, set.configuration)
	if err != nil {
		errs = append(errs, err)
	}
	for _, reason := range brokenOf(source(configMap), report) {
		errs = append(errs, errors.New(reason))
	}
	return errors.Join(errs...)
}
