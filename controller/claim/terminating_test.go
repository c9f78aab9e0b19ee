// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// held is an object that was deleted and that a finalizer of others holds.
func held[T client.Object](object T) T {
	object.SetDeletionTimestamp(inMinutes(0))
	object.SetFinalizers([]string{"example.com/hold"})
	return object
}

func TestAClaimIsServedByNothingThatIsBeingDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"its pool":               {[]client.Object{held(makePool()), makeTemplate()}, ReasonWarmPoolNotFound},
		"the template of a pool": {[]client.Object{makePool(), held(makeTemplate())}, ReasonTemplateNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			a := newArchive(t, makeClaim("claim"), tc.objects...)
			a.pass()
			a.clock.Step(notFoundAfter)
			if got := storedReason(a.pass()); got != tc.want {
				t.Errorf("the claim says %q, want %q", got, tc.want)
			}
		})
	}
}

// The cache shows the template as it was before it was deleted.
func TestATemplateThatIsBeingDeletedIsNotReadAnew(t *testing.T) {
	a := newArchive(t, makeClaim("claim"))
	scheme := a.stored.Scheme()
	a.r.live = fake.NewClientBuilder().WithScheme(scheme).WithObjects(held(makeTemplate(func(t *extensionsv1beta1.SandboxTemplate) {
		t.Spec.PodTemplate.ObjectMeta.Annotations = map[string]string{"example.com/unjudged": "true"}
	}))).Build()
	s := makeScope()
	s.template = makeTemplate()
	if err := a.r.refresh(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if !s.silent || len(s.template.Spec.PodTemplate.ObjectMeta.Annotations) > 0 {
		t.Errorf("silent: %t, with the annotations %v, want silence about a template that goes", s.silent, s.template.Spec.PodTemplate.ObjectMeta.Annotations)
	}
}

func TestAClaimThatAFinalizerHoldsLosesItsSandbox(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizers []string
		stays      bool
	}{
		"one of others": {finalizers: []string{"example.com/hold"}},
		"one of others beside that of a deletion in the foreground": {finalizers: []string{metav1.FinalizerDeleteDependents, "example.com/hold"}},
		"one of a deletion in the foreground":                       {finalizers: []string{metav1.FinalizerDeleteDependents}, stays: true},
		"one by which its Sandbox is let go":                        {finalizers: []string{metav1.FinalizerOrphanDependents, "example.com/hold"}, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := held(makeClaim("claim"))
			claim.Finalizers = tc.finalizers
			of := metav1.NewControllerRef(claim, extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxClaimKind))
			serving := makeSandbox(func(s *agentsv1beta1.Sandbox) {
				s.ResourceVersion, s.OwnerReferences = "", []metav1.OwnerReference{*of}
			})
			waiting := makeSandbox(func(s *agentsv1beta1.Sandbox) { s.ResourceVersion, s.Name, s.UID = "", "waiting", "waiting-uid" })
			a := newArchive(t, claim, serving, waiting)
			before := a.claim()
			if _, err := a.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(claim)}); err != nil {
				t.Fatal(err)
			}
			err := a.stored.Get(t.Context(), client.ObjectKeyFromObject(serving), &agentsv1beta1.Sandbox{})
			if client.IgnoreNotFound(err) != nil || (err == nil) != tc.stays {
				t.Errorf("its Sandbox is found with %v, want that it stays: %t", err, tc.stays)
			}
			if err := a.stored.Get(t.Context(), client.ObjectKeyFromObject(waiting), &agentsv1beta1.Sandbox{}); err != nil {
				t.Errorf("another's is found with %v", err)
			}
			if now := a.claim(); now.ResourceVersion != before.ResourceVersion {
				t.Error("the claim was written to")
			}
		})
	}
}
