// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lifetime"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/tracing"
)

// phasePod makes, adopts, keeps or deletes the Pod. It makes none before isolation
// and volumes are there.
func (r *Reconciler) phasePod(ctx context.Context, s *scope) error {
	if err := r.confirmNoPod(ctx, s); err != nil {
		s.podUnknown = true
		return err
	}
	if len(s.owned) == 1 {
		s.pod = s.owned[0]
		tracing.Event(ctx, "ExistingPodStatusObserved", attribute.String("phase", string(s.pod.Status.Phase)))
	}
	if err := r.trackPodName(ctx, s); err != nil {
		return err
	}
	if s.recreates() {
		s.restartAt = r.restarts.due(client.ObjectKeyFromObject(s.sandbox), s.pod.UID, s.now)
	}
	action, err := decidePod(s)
	if err != nil {
		return err
	}
	switch action {
	case podCreate:
		return r.createPod(ctx, s)
	case podAdopt:
		if s.pod != nil {
			return r.adoptPod(ctx, s, s.pod)
		}
		return r.adoptPod(ctx, s, s.squatter)
	case podSync:
		return r.syncPod(ctx, s)
	case podDelete:
		if lifetime.Bounded(s.tier) {
			return r.endPod(ctx, s.pod)
		}
		return r.deleteOwned(ctx, s.pod)
	case podNone:
	}
	return nil
}

// confirmNoPod asks the apiserver before a Sandbox is called suspended: a client that
// reads so may take its volumes away.
func (r *Reconciler) confirmNoPod(ctx context.Context, s *scope) error {
	known := meta.IsStatusConditionTrue(s.sandbox.Status.Conditions, agentsv1beta1.ConditionSuspended)
	if !s.suspended() || known || len(s.owned) > 0 || s.squatter != nil {
		return nil
	}
	named, err := lookup.Object(ctx, r.live, s.sandbox.Namespace, trackedPodName(s.sandbox), &corev1.Pod{})
	if err != nil {
		return err
	}
	s.setPods(nil, named)
	return nil
}

// trackPodName brings the annotation pod-name in line. It does so before there is a
// Pod, because clients read it as soon as the Sandbox is Ready.
func (r *Reconciler) trackPodName(ctx context.Context, s *scope) error {
	want, known := desiredPodName(s)
	if !known || s.sandbox.Annotations[keys.PodName] == want {
		return nil
	}
	sandbox := s.sandbox.DeepCopy()
	delete(sandbox.Annotations, keys.PodName)
	if want != "" {
		if sandbox.Annotations == nil {
			sandbox.Annotations = map[string]string{}
		}
		sandbox.Annotations[keys.PodName] = want
	}
	if err := patch.Same(ctx, r.client, sandbox, s.sandbox, fieldOwner); err != nil {
		return fmt.Errorf("write annotation %s: %w", keys.PodName, err)
	}
	return nil
}

// podOf is the Pod that the Sandbox is to have. Its isolation was chosen before.
func (r *Reconciler) podOf(s *scope) *corev1.Pod {
	return buildPod(s.sandbox, s.choice, r.settings.Current().EgressProfiles[s.choice.Profile])
}

func (r *Reconciler) createPod(ctx context.Context, s *scope) error {
	if !s.isolated || !s.volumesReady {
		return nil // the phase that failed has said so
	}
	pod := r.podOf(s)
	lifetime.Note(pod, s.tier)
	if err := r.checkFloor(ctx, s, pod); err != nil {
		return err
	}
	err := r.client.Create(ctx, pod, fieldOwner)
	switch {
	case err == nil:
		s.pod = pod
		r.tellCurtailed(s)
		tracing.Event(ctx, "NewPodStatusObserved", attribute.String("phase", string(pod.Status.Phase)))
		r.births.note(client.ObjectKeyFromObject(s.sandbox), r.clock.Now())
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.meetExisting(ctx, s)
	default:
		s.podRefused = apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
		return fmt.Errorf("create pod: %w", err)
	}
}

// checkFloor refuses a Pod that lies below what every sandbox must keep to, or that
// could be taken for another's.
func (r *Reconciler) checkFloor(ctx context.Context, s *scope, pod *corev1.Pod) error {
	if err := r.checkTwin(ctx, s.sandbox); err != nil {
		s.podRefused = errors.As(err, &userError{})
		return err
	}
	if refusals := append(lifetimeRefusals(s), floorRefusals(pod, s.tier, r.settings.Platform.Identity)...); len(refusals) > 0 {
		s.podRefused = true
		return userErrorf("%s", sentence(refusals))
	}
	return r.checkReopened(ctx, s, pod)
}

// checkReopened refuses a Pod for which a NetworkPolicy of somebody else opens more than
// the ceiling of the tier. Whoever mends that policy is not seen here, so it is tried
// again.
func (r *Reconciler) checkReopened(ctx context.Context, s *scope, pod *corev1.Pod) error {
	if s.tier.Egress.Ceiling == "" || s.tier.Egress.Reopened == config.ReopenedReport {
		return nil
	}
	var policies networkingv1.NetworkPolicyList
	if err := r.settings.EveryPolicy.List(ctx, &policies, client.InNamespace(s.sandbox.Namespace), lookup.Shared); err != nil {
		return fmt.Errorf("look for NetworkPolicies of others: %w", err)
	}
	name, beyond := isolation.Reopened(r.settings.Current(), s.choice.Tier, s.tier, pod.Labels, policies.Items)
	if beyond == nil {
		return nil
	}
	s.podRefused = true
	return fmt.Errorf("no Pod is made while NetworkPolicy %q opens more for it than its tier allows: %w. "+
		"Or let podSelector.matchExpressions of that policy say that %s DoesNotExist", name, beyond, keys.Sandbox)
}

// meetExisting looks at a Pod that the cache did not know.
func (r *Reconciler) meetExisting(ctx context.Context, s *scope) error {
	named, err := lookup.Object(ctx, r.live, s.sandbox.Namespace, s.sandbox.Name, &corev1.Pod{})
	if err != nil {
		return err
	}
	s.setPods(nil, named)
	if len(s.owned) == 1 && bearsOurMark(s.owned[0], s.sandbox) {
		s.pod = s.owned[0]
		return nil
	}
	if len(s.owned) == 1 {
		return r.adoptPod(ctx, s, s.owned[0])
	}
	if s.squatter == nil { // it went, and the next pass makes ours
		return apierrors.NewNotFound(corev1.Resource("pods"), s.sandbox.Name)
	}
	if err := s.mayAdopt("pod", s.squatter); err != nil {
		return err
	}
	return r.adoptPod(ctx, s, s.squatter)
}

// adoptPod takes over a Pod that its owner marked, or that somebody gave our owner
// reference, if it is what ours would be: the apiserver says in a dry run what that is.
// Until then it is not the Sandbox's, whatever it says.
func (r *Reconciler) adoptPod(ctx context.Context, s *scope, found *corev1.Pod) error {
	s.pod = nil
	if !s.isolated || !s.volumesReady {
		return nil
	}
	want := r.podOf(s)
	if err := r.checkFloor(ctx, s, want); err != nil {
		return err
	}
	want.Name, want.GenerateName = "", s.sandbox.Name+"-"
	if err := r.client.Create(ctx, want, fieldOwner, client.DryRunAll, client.DisableReadYourWritesConsistency); err != nil {
		s.podRefused = apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
		return fmt.Errorf("try pod: %w", err)
	}
	running, err := lookup.Object(ctx, r.live, s.sandbox.Namespace, found.Name, &corev1.Pod{})
	if err != nil || running == nil || running.UID != found.UID {
		return err
	}
	if differing := specDifferences(&running.Spec, &want.Spec); len(differing) > 0 {
		return userErrorf("cannot adopt %s %q: it differs from the podTemplate in %s", pretender(found, s), running.Name, strings.Join(differing, ", "))
	}
	adopted := running.DeepCopy()
	if ownershipOf(adopted, s.sandbox) != ours {
		adopted.OwnerReferences = append(adopted.OwnerReferences, controllerRef(s.sandbox))
	}
	desiredPodMetadata(s.sandbox, s.choice).applyTo(adopted)
	lifetime.Note(adopted, s.tier)
	// The list of owners is replaced whole: another that came meanwhile must not go.
	patch := client.MergeFromWithOptions(running, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, adopted, patch, fieldOwner); err != nil {
		return fmt.Errorf("adopt pod %q: %w", running.Name, err)
	}
	s.pod = adopted
	r.tellCurtailed(s)
	return nil
}

// pretender says what a Pod is that is to be adopted.
func pretender(pod *corev1.Pod, s *scope) string {
	if ownershipOf(pod, s.sandbox) == ours {
		return "a pod that names the sandbox as its controller and was not made by it,"
	}
	return "unowned pod"
}

// syncPod brings labels and annotations of the running Pod in line. Its spec stays
// what it was when the Pod was made.
func (r *Reconciler) syncPod(ctx context.Context, s *scope) error {
	if !s.isolated {
		return nil // labels decide which policies hold: no change before those exist
	}
	pod := s.pod.DeepCopy()
	if !desiredPodMetadata(s.sandbox, s.choice).applyTo(pod) {
		return nil
	}
	if err := patch.Same(ctx, r.client, pod, s.pod, fieldOwner); err != nil {
		return fmt.Errorf("write metadata of pod %q: %w", pod.Name, err)
	}
	s.pod = pod
	return nil
}
