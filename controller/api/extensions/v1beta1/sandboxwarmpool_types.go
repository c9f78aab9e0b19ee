// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpdateStrategyType says what becomes of members that no longer match their
// template.
// +kubebuilder:validation:Enum=Recreate;OnReplenish;RollingUpdate
type UpdateStrategyType string

const (
	// UpdateStrategyRecreate deletes stale members at once.
	UpdateStrategyRecreate UpdateStrategyType = "Recreate"
	// UpdateStrategyOnReplenish keeps stale members until a claim takes them.
	UpdateStrategyOnReplenish UpdateStrategyType = "OnReplenish"
	// UpdateStrategyRollingUpdate replaces stale members a few at a time, so that the
	// pool stays ready.
	UpdateStrategyRollingUpdate UpdateStrategyType = "RollingUpdate"
)

// SandboxWarmPoolSpec is the wish of the pool's owner.
type SandboxWarmPoolSpec struct {
	// replicas is the number of Sandboxes to keep waiting. 0 keeps none.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// sandboxTemplateRef names the template, in the pool's namespace.
	// +required
	TemplateRef SandboxTemplateRef `json:"sandboxTemplateRef"`

	// updateStrategy says what happens to waiting Sandboxes when the template
	// changes.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`
}

// SandboxTemplateRef names a SandboxTemplate of the same namespace.
type SandboxTemplateRef struct {
	// name is the name of the SandboxTemplate.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// UpdateStrategy says what happens to waiting Sandboxes when the template changes.
type UpdateStrategy struct {
	// type is OnReplenish (stale ones stay until a claim takes them), Recreate (they
	// are deleted at once) or RollingUpdate (they are replaced a few at a time).
	// +kubebuilder:default=OnReplenish
	// +optional
	Type UpdateStrategyType `json:"type,omitempty"`
}

// SandboxWarmPoolStatus is what the controller last saw.
type SandboxWarmPoolStatus struct {
	// replicas is the number of members that are not on their way out.
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of members that are Ready, those among them too that no
	// claim gets because the template describes others now or today's policies refuse them.
	ReadyReplicas int32 `json:"readyReplicas"`

	// selector is the label selector of the members' Pods, for autoscalers.
	// +optional
	Selector string `json:"selector,omitempty"`

	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Progressing, PolicyDenied and QuotaExceeded.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SandboxWarmPool keeps Sandboxes running before anybody asks for them.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Namespaced,shortName=swp
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.readyReplicas"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=".spec.replicas"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type SandboxWarmPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wish of the pool's owner.
	// +required
	Spec SandboxWarmPoolSpec `json:"spec"`

	// status is what the controller last saw.
	// +optional
	Status SandboxWarmPoolStatus `json:"status,omitempty"`
}

// SandboxWarmPoolList is a list of SandboxWarmPools.
// +kubebuilder:object:root=true
type SandboxWarmPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SandboxWarmPool `json:"items"`
}
