// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

// NetworkPolicyManagement says who keeps the NetworkPolicy of a template.
// +kubebuilder:validation:Enum=Managed;Unmanaged
type NetworkPolicyManagement string

const (
	// NetworkPolicyManaged lets the controller keep it.
	NetworkPolicyManaged NetworkPolicyManagement = "Managed"
	// NetworkPolicyUnmanaged leaves it to the owner of the template. The deny-all
	// floor of the namespace stays.
	NetworkPolicyUnmanaged NetworkPolicyManagement = "Unmanaged"
)

// InjectionPolicy says what a claim may bring into the Sandboxes of a template.
// +kubebuilder:validation:Enum=Disallowed;Allowed;Overrides
type InjectionPolicy string

const (
	// InjectionDisallowed refuses every addition.
	InjectionDisallowed InjectionPolicy = "Disallowed"
	// InjectionAllowed admits additions and refuses changes of what the template has.
	InjectionAllowed InjectionPolicy = "Allowed"
	// InjectionOverrides admits additions and changes.
	InjectionOverrides InjectionPolicy = "Overrides"
)

// SandboxTemplateSpec describes the Sandboxes of the pools and claims that use the
// template.
type SandboxTemplateSpec struct {
	agentsv1beta1.SandboxBlueprint `json:",inline"`

	// networkPolicy replaces the default rules of the template's NetworkPolicy, both
	// directions at once: an empty list of rules allows nothing.
	// +optional
	NetworkPolicy *NetworkPolicySpec `json:"networkPolicy,omitempty"`

	// networkPolicyManagement is Managed (the controller makes and repairs the
	// NetworkPolicy <template>-network-policy) or Unmanaged (it makes none).
	// +kubebuilder:default=Managed
	// +optional
	NetworkPolicyManagement NetworkPolicyManagement `json:"networkPolicyManagement,omitempty"`

	// envVarsInjectionPolicy says whether a claim may set environment variables:
	// Disallowed, Allowed (new names only) or Overrides (any name).
	// +kubebuilder:default=Disallowed
	// +optional
	EnvVarsInjectionPolicy InjectionPolicy `json:"envVarsInjectionPolicy,omitempty"`

	// volumeClaimTemplatesPolicy says whether a claim may bring volumes of its own:
	// Disallowed, Allowed (new names only) or Overrides (any name).
	// +kubebuilder:default=Disallowed
	// +optional
	VolumeClaimTemplatesPolicy InjectionPolicy `json:"volumeClaimTemplatesPolicy,omitempty"`
}

// NetworkPolicySpec holds the rules of a template's NetworkPolicy. The selector and
// the policy types are the controller's.
type NetworkPolicySpec struct {
	// ingress lists what may connect to the Sandboxes.
	// +listType=atomic
	// +optional
	Ingress []networkingv1.NetworkPolicyIngressRule `json:"ingress,omitempty"`

	// egress lists what the Sandboxes may connect to.
	// +listType=atomic
	// +optional
	Egress []networkingv1.NetworkPolicyEgressRule `json:"egress,omitempty"`
}

// SandboxTemplateStatus is what the controller last saw.
type SandboxTemplateStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions say whether the template can be used and whether its NetworkPolicy
	// is in force.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// sandboxes is the number of Sandboxes made from the template that still exist.
	// +optional
	Sandboxes int32 `json:"sandboxes,omitempty"`

	// warmPools is the number of pools that use the template.
	// +optional
	WarmPools int32 `json:"warmPools,omitempty"`

	// claims is the number of claims on those pools.
	// +optional
	Claims int32 `json:"claims,omitempty"`
}

// SandboxTemplate describes Sandboxes that warm pools and claims make.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=sandboxtemplate
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type SandboxTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the Sandboxes.
	// +required
	Spec SandboxTemplateSpec `json:"spec"`

	// status is what the controller last saw.
	// +optional
	Status SandboxTemplateStatus `json:"status,omitempty"`
}

// SandboxTemplateList is a list of SandboxTemplates.
// +kubebuilder:object:root=true
type SandboxTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SandboxTemplate `json:"items"`
}
