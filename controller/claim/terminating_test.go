// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
