// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim/candidates"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// poolOf is the name of the pool that a Sandbox belongs to, if it does.
func poolOf(sandbox *agentsv1beta1.Sandbox) (name string, belongs bool) {
	owner := relations.Pool(sandbox)
	if owner == nil {
		return "", false
	}
	return owner.Name, true
}

// serves says whether a Sandbox is the claim's. A UID alone proves nothing: admission keeps
// tenants from writing references to our kinds, and lets them write any other.
func serves(sandbox *agentsv1beta1.Sandbox, claim *extensionsv1beta1.SandboxClaim) bool {
	owner := relations.Claim(sandbox)
	return owner != nil && owner.UID == claim.UID
}

// servedNamesake says whether a Sandbox belongs to an earlier claim of the same name,
// with which it is about to go.
func servedNamesake(sandbox *agentsv1beta1.Sandbox, claim *extensionsv1beta1.SandboxClaim) bool {
	owner := relations.Claim(sandbox)
	return owner != nil && owner.Name == claim.Name && owner.UID != claim.UID
}

// usable says whether nothing in a pool's Sandbox itself speaks against handing it
// out.
func usable(sandbox *agentsv1beta1.Sandbox) bool {
	return relations.Handable(sandbox) &&
		len(sandbox.Status.PodIPs) > 0 &&
		meta.IsStatusConditionTrue(sandbox.Status.Conditions, agentsv1beta1.ConditionReady)
}

// memberOf is what the index learns of a pool's Sandbox.
func memberOf(sandbox *agentsv1beta1.Sandbox, pool, form string) candidates.Member {
	return candidates.Member{
		Namespace: sandbox.Namespace, Name: sandbox.Name, UID: sandbox.UID, Version: sandbox.ResourceVersion,
		Pool: pool, Form: form, Created: sandbox.CreationTimestamp.Time, Usable: usable(sandbox),
	}
}

// formOf is the form of a Sandbox. One that has none is alike to no other.
func formOf(sandbox *agentsv1beta1.Sandbox) string {
	form, err := blueprint.Form(sandbox)
	if err != nil {
		return string(sandbox.UID)
	}
	return form
}

// podOf is what the index learns of a Sandbox's Pod.
func podOf(pod *corev1.Pod) candidates.Pod {
	seen := candidates.Pod{UID: pod.UID, Node: pod.Spec.NodeName}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			seen.Ready = condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return seen
}

// healthy says whether Sandboxes on a node may be handed out: it is ready, and neither
// cordoned nor being drained.
func healthy(node *corev1.Node) bool {
	if node.DeletionTimestamp != nil || node.Spec.Unschedulable {
		return false
	}
	if slices.ContainsFunc(node.Spec.Taints, drains) {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// drains says whether a taint announces that the node is about to be emptied.
func drains(taint corev1.Taint) bool {
	switch taint.Key {
	case corev1.TaintNodeUnschedulable, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeOutOfService,
		"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted":
		return true
	default:
		return false
	}
}

// handOver turns a pool's Sandbox into the claim's. The metadata of its Pod becomes
// what the template, the claim and the contract say together.
func handOver(sandbox *agentsv1beta1.Sandbox, claim *extensionsv1beta1.SandboxClaim, pod agentsv1beta1.PodMetadata) *agentsv1beta1.Sandbox {
	taken := sandbox.DeepCopy()
	taken.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(claim, extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxClaimKind)),
	}
	for _, key := range []string{keys.WarmPoolSandbox, keys.SandboxPodTemplateHash, keys.SandboxTemplateHash, keys.CreatedBy} {
		delete(taken.Labels, key)
	}
	maps.Copy(taken.Labels, blueprint.ClaimLabels(claim, relations.TemplateOfSandbox(sandbox)))
	taken.Labels[keys.LaunchType] = blueprint.LaunchWarm
	if taken.Annotations == nil {
		taken.Annotations = map[string]string{}
	}
	if taken.Annotations[keys.PodName] == "" {
		taken.Annotations[keys.PodName] = sandbox.Name
	}
	delete(taken.Annotations, keys.Creator)
	maps.Copy(taken.Annotations, blueprint.ClaimAnnotations(claim))
	taken.Spec.PodTemplate.ObjectMeta = pod
	return taken
}

// asTemplate stands in for a template that is gone: its metadata is what the Sandbox
// has, without the mark of a pool that the autoscaler may evict it.
func asTemplate(sandbox *agentsv1beta1.Sandbox) *extensionsv1beta1.SandboxTemplate {
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: relations.TemplateOfSandbox(sandbox)}}
	template.Spec.PodTemplate.ObjectMeta = *sandbox.Spec.PodTemplate.ObjectMeta.DeepCopy()
	if template.Spec.PodTemplate.ObjectMeta.Annotations[blueprint.SafeToEvict] == "true" {
		delete(template.Spec.PodTemplate.ObjectMeta.Annotations, blueprint.SafeToEvict)
	}
	return template
}

// judgesStaleness says whether a pool hands out only what its template describes now.
func judgesStaleness(pool *extensionsv1beta1.SandboxWarmPool) bool {
	strategy := pool.Spec.UpdateStrategy
	return strategy != nil && (strategy.Type == extensionsv1beta1.UpdateStrategyRecreate || strategy.Type == extensionsv1beta1.UpdateStrategyRollingUpdate)
}

// refills says whether a pool makes, or has, something for which a claim can wait.
func refills(pool *extensionsv1beta1.SandboxWarmPool, members int) bool {
	return members > 0 || pool.Spec.Replicas == nil || *pool.Spec.Replicas > 0
}

// concerns says whether a change of a Sandbox concerns the claim that it serves.
func concerns(before, after *agentsv1beta1.Sandbox) bool {
	return !apiequality.Semantic.DeepEqual(metav1.GetControllerOf(before), metav1.GetControllerOf(after)) || fares(before, after)
}

// taken says whether a change of a Sandbox tells that a claim has got it, and nothing else that
// concerns the claim.
func taken(before, after *agentsv1beta1.Sandbox) bool {
	return relations.Claim(before) == nil && relations.Claim(after) != nil && !fares(before, after)
}

// fares says whether a Sandbox fares otherwise than before, as far as its claim tells of it.
func fares(before, after *agentsv1beta1.Sandbox) bool {
	return (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		!slices.Equal(before.Status.PodIPs, after.Status.PodIPs) ||
		!relations.SameCondition(before.Status.Conditions, after.Status.Conditions, agentsv1beta1.ConditionReady) ||
		!relations.SameCondition(before.Status.Conditions, after.Status.Conditions, agentsv1beta1.ConditionFinished)
}
