// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

func heldBy(finalizers ...string) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) { s.Finalizers = finalizers }
}

// loseIsolation deletes the policies that select the Pods of this test as an
// administrator may, and waits until they are there again.
func (e *environment) loseIsolation() {
	e.Helper()
	for _, name := range []string{isolation.FloorName, isolation.ProfileName("public")} {
		lost, again := &networkingv1.NetworkPolicy{}, &networkingv1.NetworkPolicy{}
		e.appears(name, lost)
		e.Delete(lost)
		e.Eventually("NetworkPolicy "+name+" is made again", func() error {
			if !e.Exists(name, again) || again.UID == lost.UID {
				return errors.New("it is not there")
			}
			return nil
		})
	}
}

// dying waits until a Pod is being deleted.
func (e *environment) dying(pod *corev1.Pod) {
	e.Helper()
	e.Eventually("the Pod is being deleted", func() error {
		e.Get(pod.Name, pod)
		if pod.DeletionTimestamp == nil {
			return errors.New("it runs on")
		}
		return nil
	})
}

// A finalizer of a tenant keeps a Sandbox from going, and garbage collection from its
// Pod. That must not keep code running which no suspension and no shutdownTime ends.
func TestASandboxHeldByAFinalizerLosesItsPodButNoIsolation(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox(heldBy("example.com/hold")))
	e.Delete(e.sandbox("box"))
	before := e.sandbox("box")
	e.dying(pod)
	e.loseIsolation()
	e.release(pod)
	e.idle("box")
	e.untouched(before, &agentsv1beta1.Sandbox{})
}

// Without such a finalizer the Pod is left to garbage collection, which these tests
// run without: how it ends is the choice of whoever deleted the Sandbox.
func TestPodsOfADeletedSandboxStayIsolatedUntilTheyAreGone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		held   []string
		policy metav1.DeletionPropagation
	}{
		"deleted in the background":                    {nil, metav1.DeletePropagationBackground},
		"deleted in the foreground":                    {nil, metav1.DeletePropagationForeground},
		"deleted without its Pod":                      {nil, metav1.DeletePropagationOrphan},
		"deleted without its Pod, held by a finalizer": {[]string{"example.com/hold"}, metav1.DeletePropagationOrphan},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			pod := e.running(makeSandbox(heldBy(tc.held...)))
			if err := e.Client.Delete(t.Context(), e.sandbox("box"), client.PropagationPolicy(tc.policy)); err != nil {
				t.Fatal(err)
			}
			e.loseIsolation()
			e.idle("box")
			if e.Get("box", pod); pod.DeletionTimestamp != nil {
				t.Error("the Pod was deleted, which is for garbage collection to do")
			}
		})
	}
}

// A Pod has its grace period to end after an expiry or a suspension.
func TestAPodThatIsEndingStaysIsolated(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*agentsv1beta1.Sandbox){
		"after an expiry": shutDownAt(time.Unix(0, 0), agentsv1beta1.ShutdownPolicyRetain),
		"in a suspension": suspend,
		"in a suspension, with another profile": func(s *agentsv1beta1.Sandbox) {
			suspend(s)
			withProfile("none")(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			pod := e.running(makeSandbox())
			e.change(end)
			e.dying(pod)
			e.loseIsolation()
		})
	}
}

// What a Sandbox may no longer have is no reason not to mend what its Pod has: the same
// policies select the Pods of others, and only a few Sandboxes are asked to mend them.
func TestASandboxWhoseProfileIsRefusedKeepsTheIsolationThatItHas(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.running(makeSandbox())
	e.change(withProfile("no-such"))
	e.Eventually("the profile is refused", func() error {
		if said := sayCondition(e.sandbox("box"), agentsv1beta1.ConditionReady); !strings.HasPrefix(said, "False/ReconcilerError") {
			return errors.New(said)
		}
		return nil
	})
	e.loseIsolation()
}

func withProfile(name string) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[keys.EgressProfile] = name
	}
}

// change edits the Sandbox as the user.
func (e *environment) change(edit func(*agentsv1beta1.Sandbox)) {
	e.Helper()
	sandbox := e.sandbox("box")
	before := sandbox.DeepCopy()
	edit(sandbox)
	if err := e.Client.Patch(e.Context(), sandbox, client.MergeFrom(before)); err != nil {
		e.Fatal(err)
	}
}
