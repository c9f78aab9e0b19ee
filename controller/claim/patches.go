// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"encoding/json"
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// mergePatch is a merge patch, or an object in one. What it leaves out stays as it is, and null
// removes. Those of the hot path say what differs, locked by the version that was seen; to
// find that out by comparing the objects as JSON takes several times as much.
type mergePatch map[string]any

var _ client.Patch = mergePatch{}

// Type implements client.Patch.
func (mergePatch) Type() types.PatchType { return types.MergePatchType }

// Data implements client.Patch.
func (p mergePatch) Data(client.Object) ([]byte, error) { return json.Marshal(p) }

// metadataPatch says what differs between two states of a Sandbox. It knows what this
// controller changes: who owns it, its metadata and that of its Pod.
func metadataPatch(before, after *agentsv1beta1.Sandbox) mergePatch {
	metadata := mergePatch{"resourceVersion": before.ResourceVersion}
	if !apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) {
		metadata["ownerReferences"] = after.OwnerReferences
	}
	metadata.setChanged("labels", before.Labels, after.Labels)
	metadata.setChanged("annotations", before.Annotations, after.Annotations)
	patch, pod := mergePatch{"metadata": metadata}, mergePatch{}
	pod.setChanged("labels", before.Spec.PodTemplate.ObjectMeta.Labels, after.Spec.PodTemplate.ObjectMeta.Labels)
	pod.setChanged("annotations", before.Spec.PodTemplate.ObjectMeta.Annotations, after.Spec.PodTemplate.ObjectMeta.Annotations)
	if len(pod) > 0 {
		patch["spec"] = mergePatch{"podTemplate": mergePatch{"metadata": pod}}
	}
	return patch
}

// setChanged sets a field to what differs between two maps, if anything does.
func (p mergePatch) setChanged(field string, before, after map[string]string) {
	if maps.Equal(before, after) {
		return
	}
	if len(after) == 0 {
		p[field] = nil
		return
	}
	changed := mergePatch{}
	for key := range before {
		if _, kept := after[key]; !kept {
			changed[key] = nil
		}
	}
	for key, value := range after {
		if had, found := before[key]; !found || had != value {
			changed[key] = value
		}
	}
	p[field] = changed
}

// statusPatch says what differs between the status of a claim and another that is not the same.
func statusPatch(claim *extensionsv1beta1.SandboxClaim, desired extensionsv1beta1.SandboxClaimStatus) mergePatch {
	status, sandbox := mergePatch{}, mergePatch{}
	if !apiequality.Semantic.DeepEqual(claim.Status.Conditions, desired.Conditions) {
		status["conditions"] = desired.Conditions
	}
	if name := desired.SandboxStatus.Name; name != claim.Status.SandboxStatus.Name {
		sandbox["name"] = name
		if name == "" {
			sandbox["name"] = nil
		}
	}
	if addresses := desired.SandboxStatus.PodIPs; !slices.Equal(claim.Status.SandboxStatus.PodIPs, addresses) {
		sandbox["podIPs"] = addresses
		if len(addresses) == 0 {
			sandbox["podIPs"] = nil
		}
	}
	if len(sandbox) > 0 {
		status["sandbox"] = sandbox
	}
	return mergePatch{"metadata": mergePatch{"resourceVersion": claim.ResourceVersion}, "status": status}
}
