// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhoseAPodIs(t *testing.T) {
	as := func(version, kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			ownedByBox(p)
			p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = version, kind
		}
	}
	cases := map[string]struct {
		pod  *corev1.Pod
		want ownership
	}{
		"the Sandbox's":                      {makePod("box", ownedByBox), ours},
		"the Sandbox's of another version":   {makePod("box", as("agents.x-k8s.io/v1", "Sandbox")), ours},
		"nobody's":                           {makePod("box"), unowned},
		"another controller's":               {makePod("box", ownedByAnother), foreign},
		"one of another kind with its UID":   {makePod("box", as("agents.x-k8s.io/v1beta1", "Task")), foreign},
		"one of another group with its UID":  {makePod("box", as("example.com/v1", "Sandbox")), foreign},
		"one whose version nobody can parse": {makePod("box", as("a/b/c", "Sandbox")), foreign},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ownershipOf(tc.pod, makeSandbox()); got != tc.want {
				t.Errorf("ownershipOf = %d, want %d", got, tc.want)
			}
		})
	}
}
