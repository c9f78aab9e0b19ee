// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/quantity"
)

// ofResources are the amounts that a container gets of what it asks nothing of. What
// the Pod as a whole bounds is the Pod's.
//
// A limit is at least what the container requests, or the apiserver would refuse it. A
// request is not set beside a limit of the container's own, which Kubernetes takes for
// the request: a smaller one would change how the Pod is scheduled and evicted. Limits
// that would take the Pod beyond its tier are not set: nobody is refused for what he did
// not ask for, but told to say how he divides what there is.
func (r Request) ofResources(container target, pod map[string]any) []target {
	var list []target
	add := func(form string, name corev1.ResourceName, amount string) {
		field := container
		field.path, field.value = []string{"resources", form, string(name)}, amount
		list = append(list, field)
	}
	amounts := r.Tier.Resources
	for _, name := range slices.Sorted(maps.Keys(amounts.Limits)) {
		if !bounds(pod, name) && r.fits(pod, name) {
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

// bounds reports whether the Pod as a whole has an amount of the resource: one of a container could contradict it. Of
// some resources Kubernetes takes none.
func bounds(pod map[string]any, name corev1.ResourceName) bool {
	return resourcehelper.IsSupportedPodLevelResource(name) && (amountOf(pod, "limits", name) != nil || amountOf(pod, "requests", name) != nil)
}

// fits reports whether the Pod stays within its tier when every container without a limit
// gets that of the tier.
func (r Request) fits(pod map[string]any, name corev1.ResourceName) bool {
	most, bounded := r.Tier.Resources.Max[name]
	if !bounded {
		return true
	}
	limitOf := func(element any) resource.Quantity {
		container, _ := element.(map[string]any)
		text := amountOf(container, "limits", name)
		if text == nil {
			text = atLeast(r.Tier.Resources.Limits[name], amountOf(container, "requests", name))
		}
		amount, err := quantity.Parse(fmt.Sprint(text))
		if err != nil {
			return resource.Quantity{}
		}
		return amount
	}
	var beside, peak resource.Quantity // what sidecars take, and the most at any time
	inits, _ := pod["initContainers"].([]any)
	for _, element := range inits {
		amount := limitOf(element)
		amount.Add(beside)
		if container, _ := element.(map[string]any); container["restartPolicy"] == "Always" {
			beside = amount
		} else if amount.Cmp(peak) > 0 {
			peak = amount
		}
	}
	containers, _ := pod["containers"].([]any)
	for _, element := range containers {
		beside.Add(limitOf(element))
	}
	return peak.Cmp(most) <= 0 && beside.Cmp(most) <= 0
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
	if amount, err := quantity.Parse(text); err == nil && amount.Cmp(limit) > 0 {
		return text
	}
	return limit.String()
}
