// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ceilings

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// Ids of the rules.
const (
	RuleHardening      = "tier-hardening"
	RuleServiceAccount = "tier-service-account"
	RuleResources      = "tier-resources"
)

// defaultServiceAccount is what Pods run as that name none.
const defaultServiceAccount = "default"

// Breach is one thing of a Pod that its tier does not allow.
type Breach struct {
	// Error says where, what stands there and what is wrong with it.
	*field.Error
	// Rule is the id of the rule.
	Rule string
	// Remedy says what to do, as a sentence.
	Remedy string
	// Content is what it is about beside the value, empty when that is all.
	Content string
	// Amount is how much there is of a resource that is too much, in its unit; zero where it is about no amount.
	Amount float64
}

// OfPod lists every breach of the tier, in a stable order. The path is that of the
// Pod's spec.
func OfPod(pod *corev1.PodSpec, at *field.Path, tier config.Tier) []Breach {
	breaches := hardening(pod, at, tier)
	breaches = append(breaches, serviceAccount(pod, at, tier)...)
	return append(breaches, resources(pod, at, tier.Resources)...)
}

// container is a container of any list of a Pod, and where it is.
type container struct {
	*corev1.Container
	at *field.Path
	// ephemeral containers have no resources.
	ephemeral bool
}

// containersOf lists the containers of all lists.
func containersOf(pod *corev1.PodSpec, at *field.Path) []container {
	var all []container
	for i := range pod.InitContainers {
		all = append(all, container{Container: &pod.InitContainers[i], at: at.Child("initContainers").Index(i)})
	}
	for i := range pod.Containers {
		all = append(all, container{Container: &pod.Containers[i], at: at.Child("containers").Index(i)})
	}
	for i := range pod.EphemeralContainers {
		common := corev1.Container(pod.EphemeralContainers[i].EphemeralContainerCommon)
		all = append(all, container{Container: &common, at: at.Child("ephemeralContainers").Index(i), ephemeral: true})
	}
	return all
}

func serviceAccount(pod *corev1.PodSpec, at *field.Path, tier config.Tier) []Breach {
	if len(tier.ServiceAccounts) == 0 {
		return nil
	}
	var breaches []Breach
	judge := func(member, name, means string) {
		if !slices.Contains(tier.ServiceAccounts, means) {
			breaches = append(breaches, Breach{
				Rule:   RuleServiceAccount,
				Error:  field.Invalid(at.Child(member), name, fmt.Sprintf("Pods of this tier may not run as ServiceAccount %q", means)),
				Remedy: "Set it to one of: " + strings.Join(tier.ServiceAccounts, ", ") + ".",
			})
		}
	}
	name, old := pod.ServiceAccountName, pod.DeprecatedServiceAccount
	switch {
	case name == "" && old == "":
		judge("serviceAccountName", "", defaultServiceAccount)
	case old == "":
		judge("serviceAccountName", name, name)
	case name == "":
		judge("serviceAccount", old, old)
	default:
		judge("serviceAccountName", name, name)
		judge("serviceAccount", old, old)
	}
	return breaches
}
