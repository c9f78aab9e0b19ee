// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
)

// checkMetadata says what of the metadata that a claim adds is not its to set.
func checkMetadata(added agentsv1beta1.PodMetadata, domains []string) error {
	for _, key := range slices.Sorted(maps.Keys(added.Labels)) {
		if err := checkLabel(key, added.Labels[key], domains); err != nil {
			return refuse(ReasonInvalidMetadata, "spec.additionalPodMetadata.labels[%s]: %w", key, err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(added.Annotations)) {
		if err := checkAnnotation(key); err != nil {
			return refuse(ReasonInvalidMetadata, "spec.additionalPodMetadata.annotations[%s]: %w", key, err)
		}
	}
	return nil
}

func checkLabel(key, value string, domains []string) error {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return fmt.Errorf("the key is no qualified name: %s", strings.Join(problems, "; "))
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return fmt.Errorf("the value %q is no value of a label: %s", value, strings.Join(problems, "; "))
	}
	if strings.EqualFold(key, "app") && strings.EqualFold(value, "sandbox-router") {
		return fmt.Errorf("%s=%s is the router's own: remove it", key, value)
	}
	domain, _, qualified := strings.Cut(key, "/")
	if !qualified {
		return fmt.Errorf("the key needs a domain: write %s/%s", domains[0], key)
	}
	if !slices.ContainsFunc(domains, func(allowed string) bool { return within(domain, allowed) }) {
		return fmt.Errorf("the domain %q is not allowed: use %s", domain, strings.Join(domains, ", "))
	}
	return nil
}

func checkAnnotation(key string) error {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return fmt.Errorf("the key is no qualified name: %s", strings.Join(problems, "; "))
	}
	if key == blueprint.SafeToEvict {
		return nil
	}
	domain, _, _ := strings.Cut(key, "/")
	for _, reserved := range []string{"kubernetes.io", "k8s.io", "agents.x-k8s.io"} {
		if within(domain, reserved) {
			return fmt.Errorf("the domain %s is not the claim's to set: remove the annotation", reserved)
		}
	}
	if keys.ReservedInPod(key) {
		return errors.New("the controllers hand it on themselves: remove the annotation")
	}
	return nil
}

// within says whether a domain is another or lies below it.
func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}
