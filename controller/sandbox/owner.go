// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// ownership is whose an object is, seen from one Sandbox.
type ownership int

const (
	ours ownership = iota
	foreign
	unowned
)

func ownershipOf(object metav1.Object, sandbox *agentsv1beta1.Sandbox) ownership {
	switch owner := metav1.GetControllerOf(object); {
	case owner == nil:
		return unowned
	case owner.UID == sandbox.UID && relations.Sandbox(object) != nil:
		return ours
	default:
		return foreign
	}
}

// bearsOurMark says whether a Pod that names a Sandbox as its controller has a label that
// only a controller writes: ours, or that of the contract, which is on the Pods of other
// controllers that keep it. Whoever may create Pods can write the owner reference.
func bearsOurMark(pod *corev1.Pod, sandbox *agentsv1beta1.Sandbox) bool {
	return pod.Labels[keys.Sandbox] == "true" || pod.Labels[keys.SandboxNameHash] == keys.NameHash(sandbox.Name)
}

func controllerRef(sandbox *agentsv1beta1.Sandbox) metav1.OwnerReference {
	return *metav1.NewControllerRef(sandbox, agentsv1beta1.GroupVersion.WithKind(agentsv1beta1.SandboxKind))
}

// mayAdopt says why an object that the Sandbox does not control may not become its
// own; nil when it may.
func (s *scope) mayAdopt(kind string, object metav1.Object) error {
	sandbox := s.sandbox
	if owner := metav1.GetControllerOf(object); owner != nil {
		return userErrorf("%s %q is owned by %s/%s (UID: %s), not by sandbox %q",
			kind, object.GetName(), owner.Kind, owner.Name, owner.UID, sandbox.Name)
	}
	if object.GetDeletionTimestamp() != nil {
		return userErrorf("cannot adopt unowned %s %q: it is being deleted; ours is made once it is gone", kind, object.GetName())
	}
	if s.handedOver(object) || object.GetLabels()[keys.SandboxNameHash] == keys.NameHash(sandbox.Name) {
		return nil
	}
	if object.GetLabels()[keys.Adoptable] == "true" {
		return userErrorf("cannot adopt unowned %s %q: the tier of the namespace allows no adoption, so the label %q (\"true\") "+
			"hands nothing over: delete it, and ours is made", kind, object.GetName(), keys.Adoptable)
	}
	return userErrorf("cannot adopt unowned %s %q: missing required pool authorization label (%q) or sandbox tracking label (%q)",
		kind, object.GetName(), keys.Adoptable, keys.SandboxNameHash)
}

// handedOver says whether a user gives the object to whichever Sandbox asks for it, in a
// tier where users may.
func (s *scope) handedOver(object metav1.Object) bool {
	return object.GetLabels()[keys.Adoptable] == "true" && s.tier.Adoption != config.AdoptionRefuse
}
