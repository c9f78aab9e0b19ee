// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tier is how much a namespace is trusted, and so what its Sandboxes get.
type Tier struct {
	// PodSecurity are the Pod Security levels.
	PodSecurity PodSecurity `json:"podSecurity"`
	// RuntimeClass is the choice of the container runtime.
	RuntimeClass RuntimeClass `json:"runtimeClass"`
	// Hardening says which fields that harden a Pod are set, and which are demanded.
	Hardening Hardening `json:"hardening,omitzero"`
	// DropCapabilities are dropped in containers that drop none themselves.
	DropCapabilities []string `json:"dropCapabilities,omitempty"`
	// Resources are what containers get that ask for none, and the most of a Pod.
	Resources Resources `json:"resources,omitzero"`
	// ServiceAccounts are those that Pods may run as; empty means any. Pods that name
	// none run as "default" or, if that is not listed, as the first.
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	// MaxLifetime is the longest time from the creation of a Sandbox or claim to its
	// shutdownTime, which must then be set; zero means that there is no longest.
	MaxLifetime metav1.Duration `json:"maxLifetime,omitzero"`
	// Egress is the choice of egress profile.
	Egress TierEgress `json:"egress"`
	// Ingress is "router" (only the router may connect) or "namespace" (Pods of the
	// same namespace as well). Empty means router, and namespace for a bare Sandbox
	// that has a Service.
	Ingress string `json:"ingress,omitempty"`
	// Creates are the kinds that tenants may create: Sandbox, SandboxClaim. Of a Sandbox that
	// they may not create they change only the mode and the end.
	Creates []string `json:"creates"`
	// Adoption says whether tenants may hand Pods, Services and volume claims of their own
	// over to Sandboxes by the label adoptable. Empty means AdoptionAllow.
	Adoption Adoption `json:"adoption,omitempty"`
}

// Adoption is what a tier does about objects that tenants hand over to Sandboxes.
type Adoption string

const (
	// AdoptionAllow takes what a tenant hands over.
	AdoptionAllow Adoption = "Allow"
	// AdoptionRefuse takes only what the controllers have marked themselves.
	AdoptionRefuse Adoption = "Refuse"
)

// PodSecurity names Pod Security levels: privileged, baseline or restricted.
type PodSecurity struct {
	// Deny is the level whose violations are refused.
	Deny string `json:"deny"`
	// Warn is the level whose violations are warned of.
	Warn string `json:"warn,omitempty"`
	// Audit is the level whose violations are recorded only.
	Audit string `json:"audit,omitempty"`
	// Version pins the meaning of the levels, such as v1.37.
	Version string `json:"version"`
}

// Mode is what a tier does about a field that hardens a Pod.
type Mode string

const (
	// Open leaves the field to the tenant.
	Open Mode = "Open"
	// Default sets the field where the tenant left it out.
	Default Mode = "Default"
	// Require sets it too, and refuses every weaker value.
	Require Mode = "Require"
)

// Sets reports whether the field is set where the tenant left it out. A mode that is
// not given does.
func (m Mode) Sets() bool {
	return m != Open
}

// Hardening has a mode for each field that hardens a Pod. All are Default unless the
// tier says otherwise, but for the root file system, which is Open: images have to be
// made for it.
type Hardening struct {
	// Token keeps the ServiceAccount's token out of the Pod.
	Token Mode `json:"token,omitempty"`
	// ServiceLinks keeps the addresses of the namespace's Services out of its variables.
	ServiceLinks Mode `json:"serviceLinks,omitempty"`
	// UserNamespaces gives the Pod a user namespace of its own, under the RuntimeClasses
	// of the tier that say so.
	UserNamespaces Mode `json:"userNamespaces,omitempty"`
	// Seccomp puts the runtime's filter of system calls before the Pod.
	Seccomp Mode `json:"seccomp,omitempty"`
	// PrivilegeEscalation keeps processes from gaining more rights than their parent.
	PrivilegeEscalation Mode `json:"privilegeEscalation,omitempty"`
	// Capabilities drops the tier's dropCapabilities.
	Capabilities Mode `json:"capabilities,omitempty"`
	// RootFilesystem makes the root file system of containers read-only.
	RootFilesystem Mode `json:"rootFilesystem,omitempty"`
}

// ReadOnlyRoot is the mode of the root file system.
func (h Hardening) ReadOnlyRoot() Mode {
	return cmp.Or(h.RootFilesystem, Open)
}

// Resources are what containers get that ask for none, and the most of a Pod.
type Resources struct {
	// Requests are set on containers that have neither request nor limit for a resource.
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// Limits are set on containers that have no limit for a resource.
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// Max is the most that the containers of a Pod may use together. Each of them then
	// needs a limit.
	Max corev1.ResourceList `json:"max,omitempty"`
	// PodLevel says that the cluster keeps what a Pod bounds as a whole, so that this counts: before Kubernetes 1.34 it
	// drops the field. The chart sets it from the version.
	PodLevel bool `json:"podLevel,omitempty"`
}

// TierEgress is a tier's choice of egress profile.
type TierEgress struct {
	// Profile is the profile of Sandboxes that choose none.
	Profile string `json:"profile"`
	// Allowed are the profiles that a Sandbox or template may choose besides.
	Allowed []string `json:"allowed,omitempty"`
	// Ceiling is the profile beyond which neither a template's own networkPolicy nor a
	// tenant's NetworkPolicies may open egress. Empty means that there is none.
	Ceiling string `json:"ceiling,omitempty"`
	// Reopened is what happens when a NetworkPolicy that the controllers do not keep opens
	// egress beyond the ceiling all the same. Empty means ReopenedRefuse.
	Reopened Reopened `json:"reopened,omitempty"`
}

// Reopened is what happens when somebody's NetworkPolicy opens egress beyond the ceiling.
type Reopened string

const (
	// ReopenedRefuse starts no Pod that the policy selects.
	ReopenedRefuse Reopened = "Refuse"
	// ReopenedReport only tells of it.
	ReopenedReport Reopened = "Report"
)
