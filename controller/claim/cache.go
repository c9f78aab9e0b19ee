// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheByObject says what the cache keeps of the kinds that only this package reads.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: stripNode}}
}

// stripNode keeps of a node what says whether it is healthy, its addresses, which the
// surroundings of Sandboxes are made of, and its labels, by which the audit knows under
// which RuntimeClasses a Pod can start.
func stripNode(object any) (any, error) {
	node, isNode := object.(*corev1.Node)
	if !isNode {
		return object, nil // a tombstone
	}
	node.ObjectMeta = metav1.ObjectMeta{
		Name: node.Name, UID: node.UID, Labels: node.Labels, ResourceVersion: node.ResourceVersion, DeletionTimestamp: node.DeletionTimestamp,
	}
	node.Spec = corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints, PodCIDRs: node.Spec.PodCIDRs}
	var ready []corev1.NodeCondition
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			ready = append(ready, corev1.NodeCondition{Type: condition.Type, Status: condition.Status})
		}
	}
	node.Status = corev1.NodeStatus{Conditions: ready, Addresses: node.Status.Addresses}
	return node, nil
}
