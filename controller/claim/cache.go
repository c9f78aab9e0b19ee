// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// Names of the indexes of the cache.
const (
	// indexSandboxByClaim finds Sandboxes by the UID of the claim that controls them.
	indexSandboxByClaim = "claim.sandbox"
	// indexClaimByPool finds claims by the name of the pool that they ask.
	indexClaimByPool = "claim.pool"
	// indexPoolByTemplate finds pools by the name of their template.
	indexPoolByTemplate = "claim.pool.template"
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

// declareIndexes must run before the cache starts.
func declareIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return relations.Declare(ctx, indexer,
		relations.Index{Name: indexSandboxByClaim, Object: &agentsv1beta1.Sandbox{}, Value: claimUID},
		relations.Index{Name: indexClaimByPool, Object: &extensionsv1beta1.SandboxClaim{}, Value: relations.PoolOfClaim},
		relations.Index{Name: indexPoolByTemplate, Object: &extensionsv1beta1.SandboxWarmPool{}, Value: relations.TemplateOfPool},
	)
}

func claimUID(sandbox client.Object) string {
	if owner := relations.Claim(sandbox); owner != nil {
		return string(owner.UID)
	}
	return ""
}
