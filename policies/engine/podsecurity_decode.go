// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	corev1 "k8s.io/api/core/v1"
)

// The types below are the fields of a Pod that the checks read, as Kubernetes names them. Decoding a type takes a step
// for each of its fields, whether they are there or not: all of them take longer than all checks.
type (
	checkedMetadata struct {
		Annotations map[string]string `json:"annotations"`
	}

	checkedSpec struct {
		HostNetwork         bool                       `json:"hostNetwork"`
		HostPID             bool                       `json:"hostPID"`
		HostIPC             bool                       `json:"hostIPC"`
		SecurityContext     *corev1.PodSecurityContext `json:"securityContext"`
		Volumes             []corev1.Volume            `json:"volumes"`
		Containers          []checkedContainer         `json:"containers"`
		InitContainers      []checkedContainer         `json:"initContainers"`
		EphemeralContainers []checkedContainer         `json:"ephemeralContainers"`
	}

	checkedContainer struct {
		Name            string                  `json:"name"`
		SecurityContext *corev1.SecurityContext `json:"securityContext"`
		Ports           []corev1.ContainerPort  `json:"ports"`
		LivenessProbe   *corev1.Probe           `json:"livenessProbe"`
		ReadinessProbe  *corev1.Probe           `json:"readinessProbe"`
		StartupProbe    *corev1.Probe           `json:"startupProbe"`
		Lifecycle       *corev1.Lifecycle       `json:"lifecycle"`
	}
)

// whole is the spec as the checks take it.
func (s checkedSpec) whole() corev1.PodSpec {
	spec := corev1.PodSpec{
		HostNetwork: s.HostNetwork, HostPID: s.HostPID, HostIPC: s.HostIPC, SecurityContext: s.SecurityContext, Volumes: s.Volumes,
	}
	spec.Containers, spec.InitContainers = wholeAll(s.Containers), wholeAll(s.InitContainers)
	for _, c := range wholeAll(s.EphemeralContainers) {
		spec.EphemeralContainers = append(spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(c)})
	}
	return spec
}

func wholeAll(containers []checkedContainer) []corev1.Container {
	var all []corev1.Container
	for _, c := range containers {
		all = append(all, corev1.Container{
			Name: c.Name, SecurityContext: c.SecurityContext, Ports: c.Ports, LivenessProbe: c.LivenessProbe,
			ReadinessProbe: c.ReadinessProbe, StartupProbe: c.StartupProbe, Lifecycle: c.Lifecycle,
		})
	}
	return all
}
