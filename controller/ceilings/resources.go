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
func resources(pod *corev1.PodSpec, at *field.Path, most corev1.ResourceList) []Breach {
	if len(most) == 0 {
		return nil
	}
	var breaches []Breach
	names := slices.Sorted(maps.Keys(most))
	for _, name := range names {
		breaches = append(breaches, unbounded(pod, at, name, most[name])...)
	}
	options := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	total := resourcehelper.PodLimits(&corev1.Pod{Spec: *pod}, options)
	// Without a limit of its own, what a Pod requests is what it is given.
	for name, amount := range resourcehelper.PodRequests(&corev1.Pod{Spec: *pod}, options) {
		if limit := total[name]; amount.Cmp(limit) > 0 {
			total[name] = amount
		}
	}
	for _, name := range names {
		if amount, limit := total[name], most[name]; amount.Cmp(limit) > 0 {
			breaches = append(breaches, Breach{
				Rule: RuleResources,
				Error: field.Invalid(boundAt(pod, at, name), amount.String(),
					fmt.Sprintf("the containers together may use more %s than the %s of this tier", name, limit.String())),
				Remedy: fmt.Sprintf("Ask for at most %s of %s in all.", limit.String(), name),
				Amount: amount.AsApproximateFloat64(), Content: string(name),
			})
		}
	}
	return breaches
}

// kept is the Pod as a cluster keeps it: amounts of the Pod as a whole that it drops bound nothing.
func kept(pod *corev1.PodSpec, of config.Resources) *corev1.PodSpec {
	if of.PodLevel || pod.Resources == nil {
		return pod
	}
	without := *pod
	without.Resources = nil
	return &without
}

// boundAt is where the amount of a whole Pod is decided.
func boundAt(pod *corev1.PodSpec, at *field.Path, name corev1.ResourceName) *field.Path {
	if pod.Resources != nil && isSet(pod.Resources.Limits, name) {
		return at.Child("resources", "limits").Key(string(name))
	}
	return at.Child("containers")
}

// unbounded lists the containers without a limit, unless the Pod has one as a whole.
func unbounded(pod *corev1.PodSpec, at *field.Path, name corev1.ResourceName, limit resource.Quantity) []Breach {
	if pod.Resources != nil && isSet(pod.Resources.Limits, name) {
		return nil
	}
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
			Remedy: "Set a limit above 0.",
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
