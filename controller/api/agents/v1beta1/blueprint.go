// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// SandboxBlueprint is what a Sandbox is made from. A Sandbox carries it inline;
// a SandboxTemplate carries it for the Sandboxes of its pools and claims.
type SandboxBlueprint struct {
	// podTemplate describes the Pod that runs the workspace. Labels and annotations
	// in its metadata reach the Pod; keys of the platform (agents.x-k8s.io and its
	// sub-domains) are dropped from it, since only the controllers may set them.
	// A change of its metadata reaches a running Pod; a change of its spec takes
	// effect when the Pod is next made, for example after suspend and resume.
	// +required
	PodTemplate PodTemplate `json:"podTemplate"`

	// volumeClaimTemplates are the volumes that outlive the Pod. Each becomes a
	// PersistentVolumeClaim named <template>-<sandbox> and a volume of the Pod named
	// <template>, which replaces a volume of that name in the podTemplate. The
	// claims die with the Sandbox. On a Sandbox this list cannot be changed.
	// +listType=atomic
	// +optional
	VolumeClaimTemplates []PersistentVolumeClaimTemplate `json:"volumeClaimTemplates,omitempty"`

	// service asks for a headless Service of the Sandbox's name, so that other Pods
	// can reach it at <name>.<namespace>.svc. true makes and repairs it, false
	// deletes it, and unset leaves things as they are.
	// +optional
	Service *bool `json:"service,omitempty"`
}

// PodTemplate is the Pod that a Sandbox runs.
type PodTemplate struct {
	// spec is an ordinary Pod spec. Fields of it that the tenant leaves open and that
	// matter for isolation are set at admission; the annotation
	// platform.agents.x-k8s.io/defaulted lists which.
	// +required
	Spec corev1.PodSpec `json:"spec"`

	// metadata is copied to the Pod.
	// +optional
	ObjectMeta PodMetadata `json:"metadata,omitempty"`
}

// PodMetadata is the part of a Pod's metadata that a tenant chooses.
type PodMetadata struct {
	// labels are added to the Pod.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the Pod.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PersistentVolumeClaimTemplate describes one PersistentVolumeClaim of a Sandbox.
type PersistentVolumeClaimTemplate struct {
	// metadata names the volume and is copied to the claim.
	// +optional
	EmbeddedObjectMetadata `json:"metadata,omitempty"`

	// spec is the spec of the PersistentVolumeClaim.
	// +required
	Spec corev1.PersistentVolumeClaimSpec `json:"spec"`
}

// EmbeddedObjectMetadata is the part of a volume claim's metadata that a tenant
// chooses.
type EmbeddedObjectMetadata struct {
	// name is the name of the volume in the Pod, and the first part of the claim's
	// name.
	// +optional
	Name string `json:"name,omitempty"`

	// labels are added to the claim.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to the claim.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
