// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blueprint

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Values of the label launch-type.
const (
	// LaunchWarm is a Sandbox that a pool started before anybody asked.
	LaunchWarm = "warm"
	// LaunchCold is a Sandbox that was started for a claim.
	LaunchCold = "cold"
)

// SafeToEvict is the annotation by which the cluster autoscaler knows a Pod that it
// may evict; its value is "true".
const SafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"

// ForPool is the Sandbox that a pool makes from its template. It has no name: SetName
// gives it one.
func ForPool(pool *extensionsv1beta1.SandboxWarmPool, template *extensionsv1beta1.SandboxTemplate, opts Options) (*agentsv1beta1.Sandbox, error) {
	hashes, err := Hashes(template)
	if err != nil {
		return nil, err
	}
	sandbox, err := rendered(template, opts)
	if err != nil {
		return nil, err
	}
	sandbox.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(pool, extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxWarmPoolKind)),
	}
	member := map[string]string{
		keys.WarmPoolSandbox:        keys.NameHash(pool.Name),
		keys.SandboxTemplateRefHash: hashes.Ref,
		keys.SandboxTemplateHash:    hashes.Blueprint,
		keys.SandboxPodTemplateHash: hashes.PodTemplate,
	}
	maps.Copy(sandbox.Labels, member)
	sandbox.Labels[keys.LaunchType] = LaunchWarm
	sandbox.Labels[keys.CreatedBy] = keys.CreatedByController

	pod := &sandbox.Spec.PodTemplate.ObjectMeta
	pod.Labels = with(pod.Labels, member)
	if _, set := pod.Annotations[SafeToEvict]; opts.SafeToEvict && !set {
		pod.Annotations = with(pod.Annotations, map[string]string{SafeToEvict: "true"})
	}
	return sandbox, nil
}

// ForClaim is the Sandbox that a claim starts cold, with the claim's metadata,
// variables and volumes merged in. An error of type *RefusalError says what of the claim
// the template does not take; it is the user's to mend.
func ForClaim(claim *extensionsv1beta1.SandboxClaim, template *extensionsv1beta1.SandboxTemplate, opts Options) (*agentsv1beta1.Sandbox, error) {
	sandbox, err := renderedFor(claim, template, opts)
	if err != nil {
		return nil, err
	}
	sandbox.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(claim, extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxClaimKind)),
	}
	maps.Copy(sandbox.Labels, ClaimLabels(claim, template.Name))
	sandbox.Labels[keys.LaunchType] = LaunchCold
	pod := &sandbox.Spec.PodTemplate.ObjectMeta
	pod.Labels = with(pod.Labels, ClaimLabels(claim, template.Name))
	sandbox.Annotations = with(sandbox.Annotations, ClaimAnnotations(claim))
	SetName(sandbox, claim.Name)
	return sandbox, nil
}

// SetName names a Sandbox and, so that it costs no write later, its Pod.
func SetName(sandbox *agentsv1beta1.Sandbox, name string) {
	sandbox.Name = name
	sandbox.Annotations = with(sandbox.Annotations, map[string]string{keys.PodName: name})
}

// ClaimLabels are the labels by which a Sandbox and its podTemplate belong to a claim.
func ClaimLabels(claim *extensionsv1beta1.SandboxClaim, templateName string) map[string]string {
	labels := map[string]string{
		keys.ClaimUID:               string(claim.UID),
		keys.SandboxTemplateRefHash: keys.NameHash(templateName),
	}
	if creator, set := claim.Labels[keys.CreatedBy]; set {
		labels[keys.CreatedBy] = keys.KnownClient(creator)
	}
	return labels
}

// ClaimAnnotations are the annotations that a Sandbox has from the claim it serves.
func ClaimAnnotations(claim *extensionsv1beta1.SandboxClaim) map[string]string {
	annotations := map[string]string{}
	for _, key := range []string{keys.TraceContext, keys.Creator} {
		if value, set := claim.Annotations[key]; set {
			annotations[key] = value
		}
	}
	return annotations
}

// ClaimPodMetadata is the podTemplate's metadata of a Sandbox that serves a claim:
// the template's, the claim's own, and the labels of ClaimLabels. An error of type
// *RefusalError says what the template does not take.
func ClaimPodMetadata(claim *extensionsv1beta1.SandboxClaim, template *extensionsv1beta1.SandboxTemplate) (agentsv1beta1.PodMetadata, error) {
	bare := &extensionsv1beta1.SandboxClaim{Spec: extensionsv1beta1.SandboxClaimSpec{AdditionalPodMetadata: claim.Spec.AdditionalPodMetadata}}
	metadata := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: template.Name}}
	metadata.Spec.PodTemplate.ObjectMeta = template.Spec.PodTemplate.ObjectMeta
	sandbox, err := renderedFor(bare, metadata, Options{})
	if err != nil {
		return agentsv1beta1.PodMetadata{}, err
	}
	pod := sandbox.Spec.PodTemplate.ObjectMeta
	pod.Labels = with(pod.Labels, ClaimLabels(claim, template.Name))
	return pod, nil
}

// fromTemplate is what every Sandbox of a template has in its metadata.
func fromTemplate(template *extensionsv1beta1.SandboxTemplate) metav1.ObjectMeta {
	metadata := metav1.ObjectMeta{
		Namespace:   template.Namespace,
		Labels:      map[string]string{keys.Template: keys.TemplateKey(template.Name)},
		Annotations: map[string]string{keys.SandboxTemplateRef: template.Name},
	}
	for _, key := range keys.UserKeys() {
		value, set := template.Annotations[key.Name]
		shared := slices.Contains(key.Kinds, extensionsv1beta1.SandboxTemplateKind) && slices.Contains(key.Kinds, agentsv1beta1.SandboxKind)
		if set && shared && key.Form == keys.Annotation {
			metadata.Annotations[key.Name] = value
		}
	}
	return metadata
}

// with adds entries to a map that may be nil.
func with(base, added map[string]string) map[string]string {
	if base == nil {
		base = make(map[string]string, len(added))
	}
	maps.Copy(base, added)
	return base
}

// RefusalError says what of a claim its template does not take. It is the user's to mend.
type RefusalError struct {
	// Errors name the field of the claim, the value and the remedy.
	Errors field.ErrorList
}

// Error lists all of them.
func (r *RefusalError) Error() string {
	return fmt.Sprintf("the template does not take what the claim adds: %v", r.Errors.ToAggregate())
}
