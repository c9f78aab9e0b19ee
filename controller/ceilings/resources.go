// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ceilings

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// resources wants a limit for each resource that the tier bounds, and no more than
// that of all containers that run at the same time.
func resources(pod *corev1.PodSpec, at *field.Path, bounds config.Resources) []Breach {
	var breaches []Breach
	names := slices.Sorted(maps.Keys(bounds.Max))
	for _, name := range names {
		breaches = append(breaches, unbounded(pod, at, name, bounds)...)
	}
	whole, apart := usable(pod, false), usable(pod, true)
	for _, name := range names {
		amount, where := whole[name], boundAt(pod, at, name)
		if other := apart[name]; !bounds.PodLevel && other.Cmp(amount) > 0 {
			amount, where = other, at.Child("containers")
		}
		if limit := bounds.Max[name]; amount.Cmp(limit) > 0 {
			breaches = append(breaches, Breach{
				Rule: RuleResources,
				Error: field.Invalid(where, amount.String(),
					fmt.Sprintf("the containers together may use more %s than the %s of this tier", name, limit.String())),
				Remedy: fmt.Sprintf("Ask for at most %s of %s in all.", limit.String(), name),
				Amount: amount.AsApproximateFloat64(), Content: string(name),
			})
		}
	}
	return breaches
}

// usable is the most that all containers may use or reserve, by the amounts of the Pod as a whole or as if it had none.
func usable(pod *corev1.PodSpec, apart bool) corev1.ResourceList {
	options := resourcehelper.PodResourcesOptions{ExcludeOverhead: true, SkipPodLevelResources: apart}
	total := resourcehelper.PodLimits(&corev1.Pod{Spec: *pod}, options)
	// Without a limit of its own, what a Pod requests is what it is given.
	for name, amount := range resourcehelper.PodRequests(&corev1.Pod{Spec: *pod}, options) {
		if limit := total[name]; amount.Cmp(limit) > 0 {
			total[name] = amount
		}
	}
	return total
}

// boundAt is where the amount of a whole Pod is decided.
func boundAt(pod *corev1.PodSpec, at *field.Path, name corev1.ResourceName) *field.Path {
	if limited(pod, name) {
		return at.Child("resources", "limits").Key(string(name))
	}
	return at.Child("containers")
}

// limited says whether the Pod as a whole has a limit. Of some resources Kubernetes knows none.
func limited(pod *corev1.PodSpec, name corev1.ResourceName) bool {
	return pod.Resources != nil && resourcehelper.IsSupportedPodLevelResource(name) && isSet(pod.Resources.Limits, name)
}

// unbounded lists the containers without a limit, unless the Pod has one as a whole, and keeps it.
func unbounded(pod *corev1.PodSpec, at *field.Path, name corev1.ResourceName, bounds config.Resources) []Breach {
	remedy := "Set a limit above 0."
	if limited(pod, name) {
		if bounds.PodLevel {
			return nil
		}
		remedy = "Set a limit above 0 on the container: the cluster may drop that of the Pod as a whole."
	}
	limit := bounds.Max[name]
	var breaches []Breach
	for _, c := range containersOf(pod, at) {
		if c.ephemeral || isSet(c.Resources.Limits, name) {
			continue
		}
		amount := c.Resources.Limits[name]
		breaches = append(breaches, Breach{
			Rule: RuleResources,
			Error: field.Invalid(c.at.Child("resources", "limits").Key(string(name)), shownAmount(amount),
				fmt.Sprintf("the tier gives a Pod %s of %s, so each container needs a limit", limit.String(), name)),
			Remedy: remedy,
		})
	}
	return breaches
}

// isSet reports whether there is a limit. One of zero is none to a runtime.
func isSet(limits corev1.ResourceList, name corev1.ResourceName) bool {
	amount, there := limits[name]
	return there && amount.Sign() > 0
}

func shownAmount(amount resource.Quantity) string {
	if amount.IsZero() {
		return ""
	}
	return amount.String()
}
