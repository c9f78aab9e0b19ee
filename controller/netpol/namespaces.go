// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package netpol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

// idleFor is how long nothing needs a shared policy before it is removed.
const idleFor = 10 * time.Minute

// fieldOwner is the name under which the apiserver records this controller's writes.
const fieldOwner = client.FieldOwner("networkpolicy-controller")

// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=pods;namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=agents.x-k8s.io,resources=sandboxes,verbs=get;list;watch
// +kubebuilder:rbac:groups=extensions.agents.x-k8s.io,resources=sandboxtemplates;sandboxwarmpools,verbs=get;list;watch

// Settings are what the controller of shared policies rests on.
type Settings struct {
	// Current is the platform configuration with what the network of the cluster is now, as
	// isolation.Resolve makes it.
	Current func() *config.Platform
	// Changed tells when Current has another value.
	Changed <-chan event.GenericEvent
	// Extensions says that the cluster has templates and pools.
	Extensions bool
}

// Namespaces keeps the policies that serve every Sandbox of a namespace: it mends those
// that are needed and removes those that nothing has needed for a while. Who makes a Pod
// makes them before; this controller never has to come first. Requests name a namespace.
type Namespaces struct {
	client   client.Client
	live     client.Reader
	clock    clock.PassiveClock
	settings Settings
	policies *Keeper
	idle     idleness
}

// NewNamespaces makes the controller. The cached client sees its own writes; live reads
// from the apiserver.
func NewNamespaces(cached client.Client, live client.Reader, clk clock.PassiveClock, settings Settings) *Namespaces {
	return &Namespaces{client: cached, live: live, clock: clk, settings: settings, policies: New(cached, live, fieldOwner)}
}

// Reconcile brings the shared policies of one namespace in line.
func (r *Namespaces) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	namespace, err := lookup.Object(ctx, r.client, "", request.Name, &corev1.Namespace{})
	if err != nil || namespace == nil || namespace.DeletionTimestamp != nil {
		return ctrl.Result{}, err
	}
	var found networkingv1.NetworkPolicyList
	err = r.client.List(ctx, &found, client.InNamespace(request.Name), client.MatchingLabels{keys.ManagedBy: isolation.Manager}, lookup.Shared)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("list NetworkPolicies: %w", err)
	}
	others := slices.ContainsFunc(found.Items, func(p networkingv1.NetworkPolicy) bool { return p.Name != isolation.FloorName })
	var errs []error
	var wake time.Duration
	for i := range found.Items {
		after, err := r.keep(ctx, &found.Items[i], others)
		errs = append(errs, err)
		if after > 0 && (wake == 0 || after < wake) {
			wake = after
		}
	}
	errs = append(errs, r.keepFloor(ctx, request.Name, found.Items))
	return ctrl.Result{RequeueAfter: wake}, errors.Join(errs...)
}

// keepFloor makes the floor anew that somebody deleted, while the namespace holds what
// Pods may come of.
func (r *Namespaces) keepFloor(ctx context.Context, namespace string, found []networkingv1.NetworkPolicy) error {
	for i := range found {
		if found[i].Name == isolation.FloorName {
			return nil
		}
	}
	floor := isolation.Floor(namespace)
	needed, err := r.needed(ctx, r.client, floor)
	if err != nil || !needed {
		return err
	}
	return r.policies.Shared(ctx, floor)
}

// keep mends a policy and removes one that has been idle for long enough.
// It says when to look again at one that is idle; zero for never. The floor is not idle
// beside others: whoever makes a Pod with an older view of the namespace finds it closed.
func (r *Namespaces) keep(ctx context.Context, policy *networkingv1.NetworkPolicy, others bool) (time.Duration, error) {
	want, known := isolation.Shared(policy.Namespace, policy.Name, r.settings.Current())
	if want == nil {
		return 0, nil // the policy of a template has a controller of its own
	}
	needed, err := r.needed(ctx, r.client, want)
	switch {
	case err != nil:
		return 0, err
	case needed && known:
		r.idle.end(policy.UID)
		return 0, r.policies.Shared(ctx, want)
	case needed: // the profile went: its Sandboxes say so, and keep what they had
		r.idle.end(policy.UID)
		want.Spec.Ingress, want.Spec.Egress = policy.Spec.Ingress, policy.Spec.Egress
		return 0, r.policies.Shared(ctx, want)
	case others && want.Name == isolation.FloorName:
		r.idle.end(policy.UID)
		return idleFor, r.policies.Shared(ctx, want)
	}
	if left := r.idle.since(policy.UID, r.clock.Now()).Add(idleFor).Sub(r.clock.Now()); left > 0 {
		return left, r.policies.Shared(ctx, want) // somebody else's selector might open other Pods
	}
	return 0, r.remove(ctx, policy, want)
}

// remove deletes exactly the policy that was found idle, if the apiserver, asked
// directly, knows of nothing either that needs it.
func (r *Namespaces) remove(ctx context.Context, policy, want *networkingv1.NetworkPolicy) error {
	needed, err := r.needed(ctx, r.live, want)
	if err != nil {
		return err
	}
	r.idle.end(policy.UID)
	if needed {
		return nil
	}
	if err := r.client.Delete(ctx, policy, client.Preconditions{UID: &policy.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove idle NetworkPolicy %q: %w", policy.Name, err)
	}
	return nil
}

// needed says whether anything needs a policy: a Pod that it selects, and for the floor
// whatever may have one.
func (r *Namespaces) needed(ctx context.Context, reader client.Reader, want *networkingv1.NetworkPolicy) (bool, error) {
	some, err := exists(ctx, reader, &corev1.PodList{}, want.Namespace, client.MatchingLabels(want.Spec.PodSelector.MatchLabels))
	if err != nil || some || want.Name != isolation.FloorName {
		return some, err
	}
	holders := []client.ObjectList{&agentsv1beta1.SandboxList{}}
	if r.settings.Extensions {
		holders = append(holders, &extensionsv1beta1.SandboxWarmPoolList{}, &extensionsv1beta1.SandboxTemplateList{})
	}
	for _, list := range holders {
		if some, err := exists(ctx, reader, list, want.Namespace); err != nil || some {
			return some, err
		}
	}
	return false, nil
}

func exists(ctx context.Context, reader client.Reader, list client.ObjectList, namespace string, which ...client.ListOption) (bool, error) {
	options := append([]client.ListOption{client.InNamespace(namespace), client.Limit(1), lookup.Shared}, which...)
	if err := reader.List(ctx, list, options...); err != nil {
		return false, fmt.Errorf("look for what needs a NetworkPolicy: %w", err)
	}
	return meta.LenList(list) > 0, nil
}

// idleness remembers since when policies are idle, by their UIDs. A controller that
// starts anew begins anew, which errs by keeping them longer.
type idleness struct{ times sync.Map }

// since is when the policy became idle: now, if it was not before.
func (i *idleness) since(policy types.UID, now time.Time) time.Time {
	at, _ := i.times.LoadOrStore(policy, now)
	since, _ := at.(time.Time)
	return since
}

func (i *idleness) end(policy types.UID) { i.times.Delete(policy) }
