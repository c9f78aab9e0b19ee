// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// podMetadata is what the controller wants in a Pod's metadata.
type podMetadata struct {
	labels      map[string]string
	annotations map[string]string
	// withdrawn are labels of ours that this Pod must not have.
	withdrawn []string
}

// desiredPodMetadata is the user's metadata without reserved keys, the labels of the
// contract, and those by which isolation finds the Pod.
func desiredPodMetadata(sandbox *agentsv1beta1.Sandbox, choice isolation.Choice) podMetadata {
	user := sandbox.Spec.PodTemplate.ObjectMeta
	m := podMetadata{labels: withoutReserved(user.Labels), annotations: withoutReserved(user.Annotations)}
	recordPropagated(m.annotations, keys.PropagatedLabels, m.labels)
	recordPropagated(m.annotations, keys.PropagatedAnnotations, withoutReserved(user.Annotations))

	m.labels[keys.SandboxNameHash] = keys.NameHash(sandbox.Name)
	maps.Copy(m.labels, choice.PodLabels())
	for key, value := range extensionLabels(sandbox) {
		if value == "" {
			m.withdrawn = append(m.withdrawn, key)
			continue
		}
		m.labels[key] = value
	}
	for _, key := range isolation.ChoiceLabels() {
		if _, chosen := m.labels[key]; !chosen {
			m.withdrawn = append(m.withdrawn, key)
		}
	}
	slices.Sort(m.withdrawn)
	return m
}

// extensionLabels are the labels that a Pod takes from its Sandbox, depending on who
// controls that. An empty value means that the Pod has no such label.
func extensionLabels(sandbox *agentsv1beta1.Sandbox) map[string]string {
	labels := map[string]string{
		keys.WarmPoolSandbox: "", keys.SandboxTemplateRefHash: "", keys.ClaimUID: "", keys.CreatedBy: "",
	}
	if value, set := sandbox.Labels[keys.CreatedBy]; set {
		labels[keys.CreatedBy] = keys.KnownClient(value)
	}
	switch extensionController(sandbox) {
	case extensionsv1beta1.SandboxWarmPoolKind:
		labels[keys.WarmPoolSandbox] = sandbox.Labels[keys.WarmPoolSandbox]
		labels[keys.SandboxTemplateRefHash] = sandbox.Labels[keys.SandboxTemplateRefHash]
	case extensionsv1beta1.SandboxClaimKind:
		labels[keys.SandboxTemplateRefHash] = sandbox.Labels[keys.SandboxTemplateRefHash]
		labels[keys.ClaimUID] = sandbox.Labels[keys.ClaimUID]
	}
	return labels
}

// extensionController is the kind of the claim or pool that controls a Sandbox.
func extensionController(sandbox *agentsv1beta1.Sandbox) string {
	owner := metav1.GetControllerOf(sandbox)
	if owner == nil {
		return ""
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != extensionsv1beta1.GroupName {
		return ""
	}
	return owner.Kind
}

// recordPropagated lists the user's keys in an annotation, so that a key that he
// removes later is known to have been his.
func recordPropagated(annotations map[string]string, key string, user map[string]string) {
	if len(user) > 0 {
		annotations[key] = strings.Join(slices.Sorted(maps.Keys(user)), ",")
	}
}

func withoutReserved(user map[string]string) map[string]string {
	kept := make(map[string]string, len(user))
	for key, value := range user {
		if !keys.ReservedInPod(key) {
			kept[key] = value
		}
	}
	return kept
}

// applyTo brings the metadata of a Pod in line and says whether that changed it.
// Keys that neither the user nor the controller ever set are left alone.
func (m podMetadata) applyTo(pod metav1.Object) bool {
	labels, annotations := maps.Clone(pod.GetLabels()), maps.Clone(pod.GetAnnotations())
	labelsChanged := reconcileKeys(&labels, m.labels, append(removed(pod, keys.PropagatedLabels, m.labels), m.withdrawn...))
	annotationsGone := append(removed(pod, keys.PropagatedAnnotations, m.annotations), absentLists(m.annotations)...)
	annotationsChanged := reconcileKeys(&annotations, m.annotations, annotationsGone)
	pod.SetLabels(labels)
	pod.SetAnnotations(annotations)
	return labelsChanged || annotationsChanged
}

// removed are the keys that a list on the Pod calls the user's and that he wants no
// more. Reserved keys never are: whoever may write the list could name them.
func removed(pod metav1.Object, list string, wanted map[string]string) []string {
	var gone []string
	for key := range strings.SplitSeq(pod.GetAnnotations()[list], ",") {
		if _, kept := wanted[key]; !kept && key != "" && !keys.ReservedInPod(key) {
			gone = append(gone, key)
		}
	}
	return gone
}

func absentLists(annotations map[string]string) []string {
	var gone []string
	for _, list := range []string{keys.PropagatedLabels, keys.PropagatedAnnotations} {
		if _, wanted := annotations[list]; !wanted {
			gone = append(gone, list)
		}
	}
	return gone
}

func reconcileKeys(have *map[string]string, want map[string]string, gone []string) bool {
	changed := false
	for _, key := range gone {
		if _, there := (*have)[key]; there {
			delete(*have, key)
			changed = true
		}
	}
	for key, value := range want {
		if old, there := (*have)[key]; there && old == value {
			continue
		}
		if *have == nil {
			*have = map[string]string{}
		}
		(*have)[key] = value
		changed = true
	}
	return changed
}
