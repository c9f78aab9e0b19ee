// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Types of conditions on a Sandbox. Clients compare the list exactly: no type is
// ever added.
const (
	// ConditionReady says whether the Sandbox can be used now.
	ConditionReady = "Ready"
	// ConditionSuspended says how far a suspension has come. It is always present.
	ConditionSuspended = "Suspended"
	// ConditionPodScheduled mirrors the Pod's condition while there is a Pod.
	ConditionPodScheduled = "PodScheduled"
	// ConditionFinished is present when the Pod ended by itself.
	ConditionFinished = "Finished"
)

// Reasons of the Ready condition.
const (
	ReasonDependenciesReady    = "DependenciesReady"
	ReasonDependenciesNotReady = "DependenciesNotReady"
	ReasonSandboxSuspended     = "SandboxSuspended"
	ReasonSandboxExpired       = "SandboxExpired"
	ReasonReconcilerError      = "ReconcilerError"
	ReasonMultiplePods         = "MultiplePods"
)

// Reasons of the Ready and the Finished condition for a Pod that ended by itself.
const (
	ReasonPodSucceeded = "PodSucceeded"
	ReasonPodFailed    = "PodFailed"
)

// Reasons of the Suspended condition.
const (
	ReasonNotSuspended    = "NotSuspended"
	ReasonPodTerminating  = "PodTerminating"
	ReasonPodTerminated   = "PodTerminated"
	ReasonPodNotOwned     = "PodNotOwned"
	ReasonPodStateUnknown = "PodStateUnknown"
)

// Reasons of the PodScheduled condition that are not the Pod's own.
const (
	ReasonPodScheduled         = "PodScheduled"
	ReasonPodSchedulingUnknown = "PodSchedulingUnknown"
)
