// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package netpol

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// TakenError says that the name of a template's policy is held by somebody else. It
// is the user's to mend.
type TakenError struct {
	// Policy is the name, Template the template that needs it.
	Policy, Template string
}

// Error names the policy and the remedy.
func (e *TakenError) Error() string {
	return fmt.Sprintf("NetworkPolicy %q was not made for SandboxTemplate %q and holds its name: delete or rename it", e.Policy, e.Template)
}

// Template makes the floor of the namespace and, for a managed template, its policy,
// or makes them again what they have to be. An error of type *TakenError says that
// the name is somebody else's.
func (k *Keeper) Template(ctx context.Context, template *extensionsv1beta1.SandboxTemplate, c isolation.Choice, p *config.Platform) error {
	floor, err := k.ensure(ctx, isolation.Floor(template.Namespace), anyone)
	if err != nil {
		return fmt.Errorf("NetworkPolicy %q: %w", isolation.FloorName, err)
	}
	if !isolation.Managed(template) {
		return nil
	}
	want := isolation.Template(template, c, p)
	want.OwnerReferences = owners(template, floor)
	_, err = k.ensure(ctx, want, func(got *networkingv1.NetworkPolicy) error { return checkHolder(got, template.Name) })
	if err != nil {
		return fmt.Errorf("NetworkPolicy %q: %w", want.Name, err)
	}
	return nil
}

// owners are the template, as the contract has it, and the floor, with which the
// policy outlives the template.
func owners(template *extensionsv1beta1.SandboxTemplate, floor *networkingv1.NetworkPolicy) []metav1.OwnerReference {
	return []metav1.OwnerReference{
		*metav1.NewControllerRef(template, extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxTemplateKind)),
		{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy", Name: floor.Name, UID: floor.UID},
	}
}

// Orphan keeps the policy of a template that has gone, as isolation.Recorded says. Nobody
// owns it: the floor, its last owner, may be deleted by an administrator and made again.
func (k *Keeper) Orphan(ctx context.Context, key types.NamespacedName, tierLabel string, p *config.Platform) error {
	return k.follow(ctx, key, func(got *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy {
		want := isolation.Recorded(got, tierLabel, p)
		want.OwnerReferences = nil
		return want
	})
}

// Follow keeps the policy of a template that is there and asks for what it may not have:
// as isolation.Recorded says, of what it asked for before.
func (k *Keeper) Follow(ctx context.Context, key types.NamespacedName, tierLabel string, p *config.Platform) error {
	return k.follow(ctx, key, func(got *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy {
		return isolation.Recorded(got, tierLabel, p)
	})
}

func (k *Keeper) follow(ctx context.Context, key types.NamespacedName, wanted func(*networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy) error {
	got, err := k.held(ctx, key.Namespace, key.Name)
	if err != nil || got == nil {
		return err
	}
	want := wanted(got)
	if holds(got, want) {
		return nil
	}
	if err := k.client.Update(ctx, mend(got, want), k.owner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("keep NetworkPolicy %q: %w", got.Name, err)
	}
	return nil
}

// Drop deletes the policy that was made for a template of that name, if there is one.
func (k *Keeper) Drop(ctx context.Context, namespace, template string) error {
	got, err := k.held(ctx, namespace, template)
	if err != nil || got == nil {
		return err
	}
	same := client.Preconditions{UID: &got.UID, ResourceVersion: &got.ResourceVersion}
	if err := k.client.Delete(ctx, got, same); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete NetworkPolicy %q: %w", got.Name, err)
	}
	return nil
}

// held is the policy that was made for a template of that name; nil without one.
func (k *Keeper) held(ctx context.Context, namespace, template string) (*networkingv1.NetworkPolicy, error) {
	want := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: isolation.TemplateName(template)}}
	got, err := lookUp(ctx, k.client, want)
	if err != nil || got == nil || checkHolder(got, template) != nil {
		return nil, err
	}
	return got, nil
}

// checkHolder takes a policy for ours if a template of that name controls it, or if
// nobody does and it has our labels: its template has gone.
func checkHolder(got *networkingv1.NetworkPolicy, template string) error {
	owner := metav1.GetControllerOf(got)
	switch {
	case owner == nil && got.Labels[keys.ManagedBy] == isolation.Manager && got.Labels[keys.Template] == keys.TemplateKey(template):
		return nil
	case relations.Template(got) != nil && owner.Name == template:
		return nil
	default:
		return &TakenError{Policy: got.Name, Template: template}
	}
}
