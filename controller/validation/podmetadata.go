// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// safeToEvict is the only annotation of the domains of Kubernetes that a claim may
// bring.
const safeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"

// checkClaimMetadata warns of labels and annotations that a claim may not add to its
// Pod. It is no refusal: the API reports it in the claim's Ready condition, and
// clients know that reason. Reserved keys are refused by checkVolumeMetadata.
func checkClaimMetadata(in Input) []Fault {
	if in.Kind != KindClaim {
		return nil
	}
	var faults []Fault
	for _, form := range forms {
		values := objectAt(in.Object, "spec", "additionalPodMetadata", members[form])
		at := field.NewPath("spec", "additionalPodMetadata", members[form])
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if keys.ReservedInPod(key) {
				continue
			}
			value, _ := values[key].(string)
			problem, remedy := claimAnnotation(key)
			if form == keys.Label {
				problem, remedy = claimLabel(key, value, in.LabelDomains)
			}
			if problem != "" {
				faults = append(faults, Fault{
					Rule: RuleClaim, Warning: true, Error: field.Invalid(at.Key(key), value, problem+", so the claim gets no Sandbox"), Remedy: remedy,
				})
			}
		}
	}
	return faults
}

func claimLabel(key, value string, domains []string) (problem, remedy string) {
	domain, name, qualified := strings.Cut(key, "/")
	switch {
	case strings.EqualFold(key, "app") && strings.EqualFold(value, "sandbox-router"):
		return "only the router has this label", "Remove the label."
	case !qualified:
		return "a claim's label needs a domain", fmt.Sprintf("Write %s/%s.", domains[0], key)
	case len(validation.IsQualifiedName(key)) > 0:
		return "this is no key of a label", "Write a key of letters and digits, such as " + domains[0] + "/team."
	case len(validation.IsValidLabelValue(value)) > 0:
		return "this is no value of a label", "Write at most 63 letters, digits, '-', '_' and '.'."
	case !slices.ContainsFunc(domains, func(allowed string) bool { return within(domain, allowed) }):
		return "claims may not set labels of domain " + domain, fmt.Sprintf("Write %s/%s, or ask the platform team to allow the domain.", domains[0], name)
	}
	return "", ""
}

func claimAnnotation(key string) (problem, remedy string) {
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case len(validation.IsQualifiedName(key)) > 0:
		return "this is no key of an annotation", "Write a key of letters and digits, such as example.com/team."
	case key != safeToEvict && (within(domain, "kubernetes.io") || within(domain, "k8s.io")):
		return "claims may not set annotations of domain " + domain, "Remove the annotation."
	}
	return "", ""
}

// within reports whether a domain is another or lies below it.
func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}
