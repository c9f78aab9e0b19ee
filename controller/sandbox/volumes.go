// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// claimName is the name of the volume claim that a template becomes.
func claimName(template, sandbox string) string {
	return template + "-" + sandbox
}

// claimNames are the names of all volume claims of a Sandbox.
func claimNames(sandbox *agentsv1beta1.Sandbox) []string {
	names := make([]string, 0, len(sandbox.Spec.VolumeClaimTemplates))
	for i := range sandbox.Spec.VolumeClaimTemplates {
		names = append(names, claimName(sandbox.Spec.VolumeClaimTemplates[i].Name, sandbox.Name))
	}
	return names
}

// buildClaim makes the volume claim of a template.
func buildClaim(sandbox *agentsv1beta1.Sandbox, template *agentsv1beta1.PersistentVolumeClaimTemplate) *corev1.PersistentVolumeClaim {
	labels := withoutReserved(template.Labels)
	labels[keys.SandboxNameHash] = keys.NameHash(sandbox.Name)
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       sandbox.Namespace,
			Name:            claimName(template.Name, sandbox.Name),
			Labels:          labels,
			Annotations:     withoutReserved(template.Annotations),
			OwnerReferences: []metav1.OwnerReference{controllerRef(sandbox)},
		},
		Spec: *template.Spec.DeepCopy(),
	}
}

// mergeVolumes puts the Sandbox's volume claims behind the Pod's own volumes, in the
// place of those that have the same name.
func mergeVolumes(sandbox *agentsv1beta1.Sandbox, own []corev1.Volume) []corev1.Volume {
	templates := sandbox.Spec.VolumeClaimTemplates
	merged := slices.DeleteFunc(slices.Clone(own), func(v corev1.Volume) bool {
		return slices.ContainsFunc(templates, func(t agentsv1beta1.PersistentVolumeClaimTemplate) bool { return t.Name == v.Name })
	})
	for i := range templates {
		merged = append(merged, corev1.Volume{
			Name: templates[i].Name,
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
					ClaimName: claimName(templates[i].Name, sandbox.Name),
				},
			},
		})
	}
	return merged
}
