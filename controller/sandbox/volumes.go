// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

const volumeRetentionRetain = "Retain"

// claimName is the name of the volume claim that a template becomes.
func claimName(template, sandbox string) string {
	return template + "-" + sandbox
}

// claimNames are the names of all volume claims of a Sandbox.
func claimNames(sandbox *agentsv1beta1.Sandbox) []string {
	names := make([]string, 0, len(sandbox.Spec.VolumeClaimTemplates))
	for i := range sandbox.Spec.VolumeClaimTemplates {
		names = append(names, claimName(sandbox.Spec.VolumeClaimTemplates[i].Name, sandbox.Name))
	}
	return names
}

// buildClaim makes the volume claim of a template.
func buildClaim(sandbox *agentsv1beta1.Sandbox, template *agentsv1beta1.PersistentVolumeClaimTemplate) *corev1.PersistentVolumeClaim {
	labels := withoutReserved(template.Labels)
	labels[keys.SandboxNameHash] = keys.NameHash(sandbox.Name)
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   sandbox.Namespace,
			Name:        claimName(template.Name, sandbox.Name),
			Labels:      labels,
			Annotations: withoutReserved(template.Annotations),
		},
		Spec: *template.Spec.DeepCopy(),
	}
	if retainsVolumes(sandbox) {
		maps.Copy(labels, retentionLabels(sandbox))
	} else {
		claim.OwnerReferences = []metav1.OwnerReference{controllerRef(sandbox)}
	}
	return claim
}

// retainsVolumes says whether the volumes outlive the Sandbox. Such a claim has no
// owner; it is known by the labels of retentionLabels.
func retainsVolumes(sandbox *agentsv1beta1.Sandbox) bool {
	return sandbox.Annotations[keys.VolumeRetention] == volumeRetentionRetain
}

// retentionLabels say whose a claim without an owner is, and who gets it back.
func retentionLabels(sandbox *agentsv1beta1.Sandbox) map[string]string {
	return map[string]string{
		keys.RetainedBy:  string(sandbox.UID),
		keys.RetainedFor: keys.CreatorKey(sandbox.Annotations[keys.Creator]),
	}
}

// holdsClaim says whether a claim is the Sandbox's already.
func holdsClaim(claim *corev1.PersistentVolumeClaim, sandbox *agentsv1beta1.Sandbox) bool {
	whose := ownershipOf(claim, sandbox)
	return whose == ours || whose == unowned && claim.Labels[keys.RetainedBy] == string(sandbox.UID)
}

// mayInherit says why a claim that an earlier Sandbox of the name left behind may not
// become this one's: its files are for whoever made that one.
func (s *scope) mayInherit(claim *corev1.PersistentVolumeClaim) error {
	if claim.Labels[keys.RetainedBy] == "" || s.handedOver(claim) {
		return nil
	}
	by := s.sandbox.Annotations[keys.Creator]
	if creator := keys.CreatorKey(by); creator != "" && claim.Labels[keys.RetainedFor] == creator {
		return nil
	}
	remedy := fmt.Sprintf("delete it, or hand it over by the label %q: \"true\"", keys.Adoptable)
	if s.tier.Adoption == config.AdoptionRefuse {
		remedy = "delete it: the tier of the namespace allows no adoption"
	}
	return userErrorf("persistentvolumeclaim %q was retained for the creator of an earlier sandbox %q, who is not that of this one "+
		"(annotation %q: %q): %s", claim.Name, s.sandbox.Name, keys.Creator, by, remedy)
}

// takeClaim makes a claim the Sandbox's, owned by it or, to be retained, by nobody, and
// says whether that changed it. Labels of the template are set on a claim that was not
// held before.
func takeClaim(claim, want *corev1.PersistentVolumeClaim, sandbox *agentsv1beta1.Sandbox) bool {
	before, held := claim.DeepCopy(), holdsClaim(claim, sandbox)
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	if !held {
		maps.Copy(claim.Labels, want.Labels)
	}
	delete(claim.Labels, keys.RetainedBy)
	delete(claim.Labels, keys.RetainedFor)
	if retainsVolumes(sandbox) {
		maps.Copy(claim.Labels, retentionLabels(sandbox))
		if held && claim.Labels[keys.RetainedFor] == "" { // an update took the creator's name from the Sandbox, and not the files from him
			claim.Labels[keys.RetainedFor] = before.Labels[keys.RetainedFor]
		}
	}
	if owned := ownershipOf(claim, sandbox) == ours; owned == retainsVolumes(sandbox) {
		claim.OwnerReferences = slices.DeleteFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == sandbox.UID })
		claim.OwnerReferences = append(claim.OwnerReferences, want.OwnerReferences...)
	}
	return !equality.Semantic.DeepEqual(before.ObjectMeta, claim.ObjectMeta)
}

// lostVolumes says which volumes of the running Pod somebody deleted: it works on, but
// the next one starts with empty ones.
func lostVolumes(s *scope) string {
	if s.pod == nil || s.pod.DeletionTimestamp != nil {
		return ""
	}
	var lost strings.Builder
	for _, name := range claimNames(s.sandbox) {
		switch claim := s.claims[name]; {
		case claim == nil:
		case claim.DeletionTimestamp != nil:
			fmt.Fprintf(&lost, "; persistentvolumeclaim %q is being deleted, and its files go with this Pod", name)
		case newerThanPod(claim, s.pod):
			fmt.Fprintf(&lost, "; persistentvolumeclaim %q was deleted and made again: the next Pod finds it empty", name)
		}
	}
	return lost.String()
}

// newerThanPod says whether a claim came after the Pod had got its volumes. A Pod is
// scheduled only when its claims are there.
func newerThanPod(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) bool {
	scheduled := podCondition(pod, corev1.PodScheduled)
	return scheduled != nil && scheduled.Status == corev1.ConditionTrue && !scheduled.LastTransitionTime.IsZero() &&
		claim.CreationTimestamp.After(scheduled.LastTransitionTime.Time)
}

// mergeVolumes puts the Sandbox's volume claims behind the Pod's own volumes, in the
// place of those that have the same name.
func mergeVolumes(sandbox *agentsv1beta1.Sandbox, own []corev1.Volume) []corev1.Volume {
	templates := sandbox.Spec.VolumeClaimTemplates
	merged := slices.DeleteFunc(slices.Clone(own), func(v corev1.Volume) bool {
		return slices.ContainsFunc(templates, func(t agentsv1beta1.PersistentVolumeClaimTemplate) bool { return t.Name == v.Name })
	})
	for i := range templates {
		merged = append(merged, corev1.Volume{
			Name: templates[i].Name,
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
					ClaimName: claimName(templates[i].Name, sandbox.Name),
				},
			},
		})
	}
	return merged
}
