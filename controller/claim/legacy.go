// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"sync"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// legacySuffix ends the names of the NetworkPolicies that early releases of the API made
// for each claim. Those of templates have taken their place.
const legacySuffix = "-network-policy"

// legacy are the policies of early releases that are left, by the UIDs of the claims
// that control them. Nobody makes new ones, so that they are looked for once.
type legacy struct {
	mu       sync.Mutex
	loaded   bool
	policies map[types.UID]metav1.ObjectMeta
}

// load reads the policies from the apiserver, once.
func (l *legacy) load(ctx context.Context, live client.Reader) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded {
		return nil
	}
	policies := map[types.UID]metav1.ObjectMeta{}
	gvk := networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy")
	err := eachMetadata(ctx, live, gvk, func(policy *metav1.PartialObjectMetadata) {
		if owner := relations.Claim(policy); owner != nil && policy.Name == owner.Name+legacySuffix {
			policies[owner.UID] = metav1.ObjectMeta{Namespace: policy.Namespace, Name: policy.Name, UID: policy.UID}
		}
	})
	if err != nil {
		return fmt.Errorf("read the NetworkPolicies of early releases: %w", err)
	}
	l.policies, l.loaded = policies, true
	return nil
}

// of is the policy of a claim; nil when there is none.
func (l *legacy) of(claim types.UID) *networkingv1.NetworkPolicy {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found, left := l.policies[claim]; left {
		return &networkingv1.NetworkPolicy{ObjectMeta: found}
	}
	return nil
}

func (l *legacy) forget(claim types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.policies, claim)
}

// removeLegacy deletes the policy that an early release made for the claim.
func (r *Reconciler) removeLegacy(ctx context.Context, claim *extensionsv1beta1.SandboxClaim) error {
	if err := r.legacy.load(ctx, r.live); err != nil {
		return err
	}
	policy := r.legacy.of(claim.UID)
	if policy == nil {
		return nil
	}
	err := r.client.Delete(ctx, policy, client.Preconditions{UID: &policy.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete NetworkPolicy %q of an early release: %w", policy.Name, err)
	}
	r.legacy.forget(claim.UID)
	return nil
}
