// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lifetime"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// leave tends the Pods of a Sandbox that is being deleted, or of one that is gone: as
// long as they run they stay isolated. Garbage collection ends them, in the time that a tier
// with a longest life leaves them, and this pass does where a finalizer of somebody else's holds the Sandbox, and garbage collection with
// it. Nothing is written to the Sandbox.
func (r *Reconciler) leave(ctx context.Context, key client.ObjectKey, sandbox *agentsv1beta1.Sandbox) error {
	pods, err := r.podsOf(ctx, key)
	if err != nil {
		return err
	}
	bounded, err := r.bounded(ctx, key.Namespace, pods)
	errs := []error{r.keepApart(ctx, key.Namespace, pods), err}
	held := sandbox != nil && relations.HeldByOthers(sandbox)
	for _, pod := range pods {
		if held && ownershipOf(pod, sandbox) == ours || bounded && pod.DeletionTimestamp != nil {
			errs = append(errs, r.endPod(ctx, pod))
		}
	}
	return problems{}.with(errors.Join(errs...)).outcome()
}

// longestGoodbye is how many seconds a Pod may take to end once its life is over: as many as the rule
// grace-period lets it have.
const longestGoodbye = 300

// endPod deletes a Pod whose life is over, and shortens the time that one takes which is ending already.
func (r *Reconciler) endPod(ctx context.Context, pod *corev1.Pod, options ...client.DeleteOption) error {
	grace := pod.Spec.TerminationGracePeriodSeconds
	if pod.DeletionTimestamp != nil {
		grace = pod.DeletionGracePeriodSeconds
	}
	if grace != nil && *grace > longestGoodbye {
		return r.delete(ctx, pod, append(options, client.GracePeriodSeconds(longestGoodbye))...)
	}
	if pod.DeletionTimestamp != nil {
		return nil
	}
	return r.delete(ctx, pod, options...)
}

// bounded says whether the tier gives Pods that are left a longest life.
func (r *Reconciler) bounded(ctx context.Context, namespace string, pods []*corev1.Pod) (bool, error) {
	if len(pods) == 0 {
		return false, nil
	}
	label, err := lookup.TierLabel(ctx, r.client, r.live, namespace)
	if errors.Is(err, lookup.ErrNoNamespace) {
		return false, nil // they go with it
	}
	_, tier, _ := r.settings.Platform.TierOf(label)
	return lifetime.Bounded(tier), err
}

// podsOf are the Pods that a Sandbox of that name controls, whichever it was.
func (r *Reconciler) podsOf(ctx context.Context, key client.ObjectKey) ([]*corev1.Pod, error) {
	var list corev1.PodList
	err := r.client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{indexPodByOwner: key.Name}, lookup.Eventually)
	if err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods, nil
}

// phaseLeave keeps the Pods of a Sandbox whose time is up isolated until they are gone.
func (r *Reconciler) phaseLeave(ctx context.Context, s *scope) error {
	return r.keepApart(ctx, s.sandbox.Namespace, s.owned)
}

// keepApart mends the policies that select Pods which are there, as their labels say:
// what the Sandbox would be given now may be another isolation, or none. The policies
// that a template gave are kept by the controller of templates. In a namespace that is
// being deleted nothing can be made.
func (r *Reconciler) keepApart(ctx context.Context, namespace string, pods []*corev1.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	found, err := lookup.Object(ctx, r.client, "", namespace, &corev1.Namespace{})
	if err != nil || (found != nil && found.DeletionTimestamp != nil) {
		return err
	}
	var errs []error
	done := map[string]bool{}
	for _, pod := range pods {
		for _, policy := range isolation.Selecting(namespace, pod.Labels, r.settings.Current()) {
			if done[policy.Name] {
				continue
			}
			done[policy.Name] = true
			if err := r.policies.Shared(ctx, policy); err != nil {
				errs = append(errs, fmt.Errorf("isolation of pod %q: NetworkPolicy %q: %w", pod.Name, policy.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
