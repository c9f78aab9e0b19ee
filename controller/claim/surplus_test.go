// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// A write of an earlier leader that arrives late gives a claim a second Sandbox, which may be the
// older one. It goes, and what was said of the first stays true.
func TestASecondSandboxOfAClaimGoesAndTheFirstStays(t *testing.T) {
	served := func(c *extensionsv1beta1.SandboxClaim) {
		ready(c, metav1.ConditionTrue, agentsv1beta1.ReasonDependenciesReady)
		c.Status.Conditions[0].Message, c.Status.Conditions[0].ObservedGeneration = "Pod is Ready", c.Generation
		c.Status.SandboxStatus = extensionsv1beta1.SandboxStatus{Name: "box", PodIPs: []string{"10.1.2.3"}}
		c.Annotations = map[string]string{keys.SandboxName: "box"}
	}
	cases := map[string]struct {
		claim *extensionsv1beta1.SandboxClaim
		// stays is the Sandbox of two that the claim keeps.
		stays, goes string
	}{
		"once clients know of the first":       {makeClaim("claim", served), "box", "late"},
		"while clients know of neither of two": {makeClaim("claim"), "late", "box"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			owned := func(name string, age time.Duration) *agentsv1beta1.Sandbox {
				return makeSandbox(func(s *agentsv1beta1.Sandbox) {
					s.Name, s.UID, s.ResourceVersion, s.CreationTimestamp = name, types.UID(name), "", metav1.NewTime(noon().Add(-age))
					s.OwnerReferences = []metav1.OwnerReference{
						*metav1.NewControllerRef(tc.claim, extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxClaimKind)),
					}
				})
			}
			a := newArchive(t, tc.claim, makeTemplate(), makePool(), owned("box", time.Minute), owned("late", time.Hour))
			var list agentsv1beta1.SandboxList
			for range 3 { // the first may have to say which it is, the second then removes the other
				claim := a.pass()
				if got := claim.Status.SandboxStatus.Name; got != tc.stays || !isReady(claim.Status) {
					t.Errorf("the claim has %q and is Ready: %t, want %q", got, isReady(claim.Status), tc.stays)
				}
			}
			if err := a.stored.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			var left []string
			for i := range list.Items {
				left = append(left, list.Items[i].Name)
			}
			if diff := cmp.Diff([]string{tc.stays}, left); diff != "" {
				t.Errorf("Sandboxes, of which %s is to go (-want +got):\n%s", tc.goes, diff)
			}
			if tc.claim.Status.SandboxStatus.Name == "" {
				return
			}
			if diff := cmp.Diff(tc.claim.Status, a.claim().Status); diff != "" {
				t.Errorf("status of the claim (-before +now):\n%s", diff)
			}
		})
	}
}
