// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ofResources are the amounts that a container gets of what it asks nothing of. What
// the Pod as a whole bounds is the Pod's.
//
// A limit is at least what the container requests, or the apiserver would refuse it. A
// request is not set beside a limit of the container's own, which Kubernetes takes for
// the request: a smaller one would change how the Pod is scheduled and evicted.
func (r Request) ofResources(container target, pod map[string]any) []target {
	var list []target
	add := func(form string, name corev1.ResourceName, amount string) {
		field := container
		field.path, field.value = []string{"resources", form, string(name)}, amount
		list = append(list, field)
	}
	amounts := r.Tier.Resources
	for _, name := range slices.Sorted(maps.Keys(amounts.Limits)) {
		if !bounds(pod, name) {
			limit := amounts.Limits[name]
			add("limits", name, atLeast(limit, amountOf(container.base, "requests", name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(amounts.Requests)) {
		limited := amountOf(container.base, "limits", name) != nil && amountOf(container.base, "requests", name) == nil
		if !bounds(pod, name) && !limited {
			request := amounts.Requests[name]
			add("requests", name, request.String())
		}
	}
	return list
}

// bounds reports whether the Pod as a whole has an amount of the resource.
func bounds(pod map[string]any, name corev1.ResourceName) bool {
	return amountOf(pod, "limits", name) != nil || amountOf(pod, "requests", name) != nil
}

func amountOf(owner map[string]any, form string, name corev1.ResourceName) any {
	amounts, _ := member(owner, "resources", form)
	return amounts[string(name)]
}

// atLeast is the larger of a limit and what is requested, as it is written.
func atLeast(limit resource.Quantity, requested any) string {
	if requested == nil {
		return limit.String()
	}
	text := fmt.Sprint(requested)
	if amount, err := resource.ParseQuantity(text); err == nil && amount.Cmp(limit) > 0 {
		return text
	}
	return limit.String()
}
