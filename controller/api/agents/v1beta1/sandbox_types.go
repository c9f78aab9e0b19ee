// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShutdownPolicy says what becomes of a Sandbox when its time is up.
// +kubebuilder:validation:Enum=Delete;Retain
type ShutdownPolicy string

const (
	// ShutdownPolicyDelete deletes the Sandbox, and with it everything it owns.
	ShutdownPolicyDelete ShutdownPolicy = "Delete"
	// ShutdownPolicyRetain deletes the Pod and the Service and keeps the Sandbox and
	// its volumes.
	ShutdownPolicyRetain ShutdownPolicy = "Retain"
)

// OperatingMode says whether a Sandbox has a Pod.
// +kubebuilder:validation:Enum=Running;Suspended
type OperatingMode string

const (
	// OperatingModeRunning keeps a Pod.
	OperatingModeRunning OperatingMode = "Running"
	// OperatingModeSuspended deletes the Pod and keeps volumes and Service.
	OperatingModeSuspended OperatingMode = "Suspended"
)

// SandboxSpec is the wish of the tenant.
// +kubebuilder:validation:XValidation:rule="has(self.volumeClaimTemplates) == has(oldSelf.volumeClaimTemplates) && (!has(self.volumeClaimTemplates) || self.volumeClaimTemplates == oldSelf.volumeClaimTemplates)",message="volumeClaimTemplates is immutable"
type SandboxSpec struct {
	SandboxBlueprint `json:",inline"`

	Lifecycle `json:",inline"`

	// operatingMode is Running (a Pod is kept) or Suspended (the Pod is deleted, its
	// volumes and Service stay).
	// +kubebuilder:default=Running
	// +optional
	OperatingMode OperatingMode `json:"operatingMode,omitempty"`
}

// Lifecycle bounds the life of a Sandbox.
type Lifecycle struct {
	// shutdownTime is when the Sandbox expires. Without it, it never does. Moving it
	// to the future, or removing it, revives an expired Sandbox that was retained.
	// +kubebuilder:validation:Format=date-time
	// +optional
	ShutdownTime *metav1.Time `json:"shutdownTime,omitempty"`

	// shutdownPolicy says what happens then: Delete removes the Sandbox, Retain only
	// its Pod and Service.
	// +kubebuilder:default=Retain
	// +optional
	ShutdownPolicy *ShutdownPolicy `json:"shutdownPolicy,omitempty"`
}

// SandboxStatus is what the controller last saw.
type SandboxStatus struct {
	// serviceFQDN is the name under which other Pods of the cluster find the Sandbox.
	// +optional
	ServiceFQDN string `json:"serviceFQDN,omitempty"`

	// service is the name of the headless Service.
	// +optional
	Service string `json:"service,omitempty"`

	// conditions are Ready, Suspended, PodScheduled (while there is a Pod) and
	// Finished (when the Pod ended by itself).
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// selector is the label selector of the Sandbox's Pod, in the form that kubectl
	// takes.
	// +optional
	LabelSelector string `json:"selector,omitempty"`

	// podIPs are the addresses of the Pod.
	// +listType=atomic
	// +optional
	PodIPs []string `json:"podIPs,omitempty"`

	// nodeName is the node that the Pod runs on.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
}

// Sandbox is an isolated workspace for code that nobody reviewed: one Pod, the
// volumes that outlive it, and the network it may use.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=sandbox
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type Sandbox struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wish of the tenant.
	// +required
	Spec SandboxSpec `json:"spec"`

	// status is what the controller last saw.
	// +optional
	Status SandboxStatus `json:"status,omitempty"`
}

// SandboxList is a list of Sandboxes.
// +kubebuilder:object:root=true
type SandboxList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Sandbox `json:"items"`
}
