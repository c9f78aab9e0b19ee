// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// Names of the indexes of the cache.
const (
	// indexPodBySandbox finds Pods by the UID of the Sandbox that controls them.
	indexPodBySandbox = "sandbox.uid"
	// indexPodByOwner finds Pods by the name of the Sandbox that controls them.
	indexPodByOwner = "sandbox.name"
	// indexPodByPolicy finds Pods of Sandboxes by the names of the isolation policies
	// that select them.
	indexPodByPolicy = "sandbox.policy"
	// indexSandboxByPod finds Sandboxes by the name of a Pod that they track and that
	// does not have their own name.
	indexSandboxByPod = "sandbox.pod"
	// indexSandboxByClaim finds Sandboxes by the names of their volume claims.
	indexSandboxByClaim = "sandbox.claim"
)

// CacheByObject says what the cache keeps of each kind that this package reads. With
// trackedOnly it keeps only Pods and Services that have the tracking label; those
// that wait to be adopted must then have it too.
func CacheByObject(trackedOnly bool) (map[client.Object]cache.ByObject, error) {
	tracked := labels.Everything()
	if trackedOnly {
		exists, err := labels.NewRequirement(keys.SandboxNameHash, selection.Exists, nil)
		if err != nil {
			return nil, fmt.Errorf("select by the tracking label: %w", err)
		}
		tracked = labels.NewSelector().Add(*exists)
	}
	managed := labels.SelectorFromValidatedSet(labels.Set{keys.ManagedBy: isolation.Manager})
	return map[client.Object]cache.ByObject{
		&corev1.Pod{}:                 {Label: tracked, Transform: stripPod},
		&corev1.Service{}:             {Label: tracked},
		&networkingv1.NetworkPolicy{}: {Label: managed},
		&corev1.Namespace{}:           {Transform: stripNamespace},
	}, nil
}

// stripPod keeps of a Pod what this package reads: metadata, the node, how long it may take to end, and the part
// of the status that conditions rest on. Of Pods that no Sandbox has to do with even
// less. Patches of stripped Pods are of metadata only, so that nothing stripped can
// be taken for removed.
func stripPod(object any) (any, error) {
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		return object, nil // a tombstone
	}
	pod.ManagedFields, pod.Finalizers = nil, nil
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds}
	status := pod.Status
	pod.Status = corev1.PodStatus{
		Phase: status.Phase, Conditions: status.Conditions, PodIP: status.PodIP, PodIPs: status.PodIPs,
	}
	if status.Phase == corev1.PodFailed { // why is what its user asks
		pod.Status.Reason, pod.Status.Message = status.Reason, status.Message
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = ends(status.InitContainerStatuses), ends(status.ContainerStatuses)
	}
	if relations.Sandbox(pod) == nil {
		pod.Annotations, pod.Status = nil, corev1.PodStatus{}
	}
	return pod, nil
}

// ends keeps of containers how they ended.
func ends(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for i := range statuses {
		if end := statuses[i].State.Terminated; end != nil {
			kept = append(kept, corev1.ContainerStatus{
				Name:  statuses[i].Name,
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: end.ExitCode, Reason: end.Reason}},
			})
		}
	}
	return kept
}

func stripNamespace(object any) (any, error) {
	namespace, isNamespace := object.(*corev1.Namespace)
	if !isNamespace {
		return object, nil
	}
	namespace.ManagedFields = nil
	return namespace, nil
}

// declareIndexes must run before the cache starts.
func declareIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		name   string
		object client.Object
		values client.IndexerFunc
	}{
		{indexPodBySandbox, &corev1.Pod{}, podSandbox},
		{indexPodByOwner, &corev1.Pod{}, podOwner},
		{indexPodByPolicy, &corev1.Pod{}, podPolicies},
		{indexSandboxByPod, &agentsv1beta1.Sandbox{}, sandboxPod},
		{indexSandboxByClaim, &agentsv1beta1.Sandbox{}, sandboxClaims},
	} {
		if err := indexer.IndexField(ctx, index.object, index.name, index.values); err != nil {
			return fmt.Errorf("declare index %s: %w", index.name, err)
		}
	}
	return nil
}

func podSandbox(object client.Object) []string {
	if owner := relations.Sandbox(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

func podOwner(object client.Object) []string {
	if owner := relations.Sandbox(object); owner != nil {
		return []string{owner.Name}
	}
	return nil
}

// podPolicies has those of a Pod that is being deleted too: it runs until it is gone.
func podPolicies(object client.Object) []string {
	if relations.Sandbox(object) == nil && !stray(object) {
		return nil
	}
	return isolation.SelectedBy(object.GetLabels())
}

func sandboxPod(object client.Object) []string {
	sandbox, isSandbox := object.(*agentsv1beta1.Sandbox)
	if !isSandbox || trackedPodName(sandbox) == sandbox.Name {
		return nil
	}
	return []string{trackedPodName(sandbox)}
}

func sandboxClaims(object client.Object) []string {
	if sandbox, isSandbox := object.(*agentsv1beta1.Sandbox); isSandbox {
		return claimNames(sandbox)
	}
	return nil
}
