// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// The Service of a Sandbox selects its Pod by a hash of the name, which the contract
// fixes and for which anybody finds a second name. Admission refuses that name. Where
// it did not, the younger Sandbox gets neither a Pod, to which the Service of the older
// would send, nor a Service, which would send to the Pod of the older.

// checkTwin refuses a Sandbox whose name has the hash of an older one's.
func (r *Reconciler) checkTwin(ctx context.Context, sandbox *agentsv1beta1.Sandbox) error {
	twins, err := r.sandboxesOfHash(ctx, sandbox.Namespace, sandbox.Name)
	if err != nil {
		return err
	}
	elder := elderOf(sandbox, twins)
	if elder == "" {
		return nil
	}
	return userError{field.Invalid(field.NewPath("metadata", "name"), sandbox.Name, fmt.Sprintf(
		"its hash %s is that of the older Sandbox %q, so that labels could not tell their Pods apart: choose another name",
		keys.NameHash(sandbox.Name), elder))}
}

// elderOf is the name of a Sandbox among those that is not younger; empty for none. Of
// two that were made in one second neither is the younger: whichever has no Pod yet
// gets none.
func elderOf(sandbox *agentsv1beta1.Sandbox, twins []agentsv1beta1.Sandbox) string {
	for i := range twins {
		if twins[i].Name != sandbox.Name && !sandbox.CreationTimestamp.Before(&twins[i].CreationTimestamp) {
			return twins[i].Name
		}
	}
	return ""
}

// sandboxesOfHash are the Sandboxes of a namespace whose names have the hash of that
// name. They are the cache's own and must not be changed.
func (r *Reconciler) sandboxesOfHash(ctx context.Context, namespace, name string) ([]agentsv1beta1.Sandbox, error) {
	var list agentsv1beta1.SandboxList
	err := r.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{relations.ByNameHash: keys.NameHash(name)},
		&client.ListOptions{DisableReadYourWritesConsistency: true, UnsafeDisableDeepCopy: new(true)})
	if err != nil {
		return nil, fmt.Errorf("list Sandboxes by the hash of %q: %w", name, err)
	}
	return list.Items, nil
}

// twinsOf maps a Sandbox to those that it kept from their Pods.
func (r *Reconciler) twinsOf(ctx context.Context, object client.Object) []ctrl.Request {
	twins, err := r.sandboxesOfHash(ctx, object.GetNamespace(), object.GetName())
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the Sandboxes that a name kept from their Pods", "name", object.GetName())
		return nil
	}
	return requestsFor(twins)
}

// gone lets only deletions through.
func gone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
