// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

// ClaimShutdownPolicy says what becomes of a claim when its time is up.
// +kubebuilder:validation:Enum=Delete;DeleteForeground;Retain
type ClaimShutdownPolicy string

const (
	// ClaimShutdownPolicyDelete deletes the claim, its Sandbox in the background.
	ClaimShutdownPolicyDelete ClaimShutdownPolicy = "Delete"
	// ClaimShutdownPolicyDeleteForeground deletes the claim after its Sandbox is gone.
	ClaimShutdownPolicyDeleteForeground ClaimShutdownPolicy = "DeleteForeground"
	// ClaimShutdownPolicyRetain deletes the Sandbox and keeps the claim.
	ClaimShutdownPolicyRetain ClaimShutdownPolicy = "Retain"
)

// SandboxClaimSpec is the request for one Sandbox.
type SandboxClaimSpec struct {
	// warmPoolRef names the pool, in the claim's namespace, whose template the Sandbox
	// is made from and whose waiting Sandboxes serve the claim at once.
	// +required
	WarmPoolRef SandboxWarmPoolRef `json:"warmPoolRef"`

	// lifecycle bounds the life of the claim and its Sandbox. Without it, the claim
	// lives until it is deleted.
	// +optional
	Lifecycle *ClaimLifecycle `json:"lifecycle,omitempty"`

	// additionalPodMetadata is added to the Pod. Label keys need a domain that the
	// platform allows.
	// +optional
	AdditionalPodMetadata agentsv1beta1.PodMetadata `json:"additionalPodMetadata,omitempty"`

	// env is added to the containers, where the template's envVarsInjectionPolicy
	// allows it. A claim with env is served by a new Sandbox, not from the pool.
	// +listType=atomic
	// +optional
	Env []EnvVar `json:"env,omitempty"`

	// volumeClaimTemplates are added to the template's, where its
	// volumeClaimTemplatesPolicy allows it. A claim with volumes is served by a new
	// Sandbox, not from the pool.
	// +listType=atomic
	// +optional
	VolumeClaimTemplates []agentsv1beta1.PersistentVolumeClaimTemplate `json:"volumeClaimTemplates,omitempty"`
}

// SandboxWarmPoolRef names a SandboxWarmPool of the same namespace.
type SandboxWarmPoolRef struct {
	// name is the name of the SandboxWarmPool.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// ClaimLifecycle bounds the life of a claim and its Sandbox.
type ClaimLifecycle struct {
	// shutdownTime is when the claim expires.
	// +kubebuilder:validation:Format=date-time
	// +optional
	ShutdownTime *metav1.Time `json:"shutdownTime,omitempty"`

	// ttlSecondsAfterFinished is how long the claim stays after its Pod ended by
	// itself, in seconds.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// shutdownPolicy says what happens at expiry: Delete, DeleteForeground or Retain.
	// +kubebuilder:default=Retain
	// +optional
	ShutdownPolicy ClaimShutdownPolicy `json:"shutdownPolicy,omitempty"`
}

// EnvVar is one environment variable of a claim.
type EnvVar struct {
	// name is the name of the variable.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`

	// value is the literal value of the variable.
	// +required
	Value string `json:"value"`

	// containerName names the container, or init container, that gets the variable.
	// Without it, the first container does.
	// +optional
	ContainerName string `json:"containerName,omitempty"`
}

// SandboxClaimStatus is what the controller last saw.
type SandboxClaimStatus struct {
	// conditions are Ready and Finished, sorted by type.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// sandbox is the Sandbox that serves the claim.
	// +optional
	SandboxStatus SandboxStatus `json:"sandbox,omitempty"`
}

// SandboxStatus names the Sandbox that serves a claim.
type SandboxStatus struct {
	// name is the name of the Sandbox.
	// +optional
	Name string `json:"name,omitempty"`

	// podIPs are the addresses of its Pod.
	// +listType=atomic
	// +optional
	PodIPs []string `json:"podIPs,omitempty"`
}

// SandboxClaim asks for one Sandbox.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=sandboxclaim
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Sandbox",type=string,JSONPath=".status.sandbox.name"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type SandboxClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request.
	// +required
	Spec SandboxClaimSpec `json:"spec"`

	// status is what the controller last saw.
	// +optional
	Status SandboxClaimStatus `json:"status,omitempty"`
}

// SandboxClaimList is a list of SandboxClaims.
// +kubebuilder:object:root=true
type SandboxClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SandboxClaim `json:"items"`
}
