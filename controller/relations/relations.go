// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package relations says how the objects of the platform point at one another, for the
// indexes, watches and checks of all controllers.
package relations

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Sandbox is the reference to the Sandbox that controls an object; nil when none does.
func Sandbox(object metav1.Object) *metav1.OwnerReference {
	return controller(object, agentsv1beta1.GroupName, agentsv1beta1.SandboxKind)
}

// Pool is the reference to the pool that controls an object; nil when none does.
func Pool(object metav1.Object) *metav1.OwnerReference {
	return controller(object, extensionsv1beta1.GroupName, extensionsv1beta1.SandboxWarmPoolKind)
}

// Claim is the reference to the claim that controls an object; nil when none does.
func Claim(object metav1.Object) *metav1.OwnerReference {
	return controller(object, extensionsv1beta1.GroupName, extensionsv1beta1.SandboxClaimKind)
}

// Template is the reference to the template that controls an object; nil when none
// does.
func Template(object metav1.Object) *metav1.OwnerReference {
	return controller(object, extensionsv1beta1.GroupName, extensionsv1beta1.SandboxTemplateKind)
}

// controller is the controller reference of an object if it names that kind. Every
// version of the group counts.
func controller(object metav1.Object, group, kind string) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != kind {
		return nil
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != group {
		return nil
	}
	return owner
}

// TemplateOfSandbox is the name of the template that a Sandbox was made from; empty
// for none.
func TemplateOfSandbox(sandbox client.Object) string {
	return sandbox.GetAnnotations()[keys.SandboxTemplateRef]
}

// TemplateOfPool is the name of a pool's template; empty for other objects.
func TemplateOfPool(object client.Object) string {
	if pool, isPool := object.(*extensionsv1beta1.SandboxWarmPool); isPool {
		return pool.Spec.TemplateRef.Name
	}
	return ""
}

// PoolOfClaim is the name of the pool that a claim asks; empty for other objects.
func PoolOfClaim(object client.Object) string {
	if claim, isClaim := object.(*extensionsv1beta1.SandboxClaim); isClaim {
		return claim.Spec.WarmPoolRef.Name
	}
	return ""
}
