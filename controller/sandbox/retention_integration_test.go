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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

func annotate(key, value string) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[key] = value
	}
}

// otherPod waits until another Pod has taken the place of one.
func (e *environment) otherPod(old *corev1.Pod) {
	e.Helper()
	now := &corev1.Pod{}
	e.Eventually("there is another Pod", func() error {
		if !e.Exists(boxName, now) || now.UID == old.UID {
			return errors.New("not yet")
		}
		return nil
	})
}

// On request a failed Pod is made again, on the same volume, later each time.
func TestRecreate(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox(annotate(keys.RestartPolicy, "Recreate"), withVolume("data"), withClaimSpec))
	claim := claimOf(e)
	for _, delay := range []time.Duration{firstRestart, 2 * firstRestart} {
		e.Clock.Halt() // so that no turn comes by itself
		e.report(pod, apiserver.Ended(137, "OOMKilled"))
		due := e.Clock.Now().Add(delay).UTC().Format(time.RFC3339)
		e.saysReady("box", `False/PodFailed: Pod failed: container "workspace" ended with exit code 137 (OOMKilled); `+
			"a new Pod with the same volumes is made at "+due)
		e.says("box", agentsv1beta1.ConditionFinished, "absent")
		e.idle("box")
		e.Clock.Resume()
		e.jump(delay)
		e.otherPod(pod)
		pod = e.runPod("box")
		e.saysReady("box", readySay)
	}
	e.expectEvents("PodFailed", 2)
	e.untouched(claim, &corev1.PersistentVolumeClaim{})
}

// retaining is a Sandbox of somebody's whose volumes outlive it.
func retaining(creator string) *agentsv1beta1.Sandbox {
	return makeSandbox(annotate(keys.VolumeRetention, "Retain"), annotate(keys.Creator, creator), withVolume("data"), withClaimSpec)
}

// On request the volumes outlive the Sandbox, and its creator's next one of the name has
// them.
func TestRetainedVolumesOutliveTheSandbox(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(retaining("ann"))
	claim := claimOf(e)
	if len(claim.OwnerReferences) != 0 {
		t.Errorf("the claim would go with %v", claim.OwnerReferences)
	}
	e.idle("box")
	e.Delete(e.sandbox("box"))
	e.Delete(pod)
	e.release(pod)
	e.running(retaining("ann"))
	if now := claimOf(e); now.UID != claim.UID || now.Labels[keys.RetainedBy] != string(e.sandbox("box").UID) {
		t.Errorf("the claim is not the second Sandbox's: %v", now.ObjectMeta)
	}

	e.edit(func(s *agentsv1beta1.Sandbox) { delete(s.Annotations, keys.VolumeRetention) })
	e.Eventually("the claim goes with the Sandbox again", func() error {
		return differs(ours, ownershipOf(claimOf(e), e.sandbox("box")))
	})
	e.edit(annotate(keys.VolumeRetention, "Retain"))
	e.Eventually("the claim stays again", func() error {
		return differs(unowned, ownershipOf(claimOf(e), e.sandbox("box")))
	})
	if got := claimOf(e); got.UID != claim.UID {
		t.Error("the claim is another one")
	}
	e.idle("box")
}

// Whoever takes the name of a Sandbox does not get the files of its creator, until they
// are handed over.
func TestRetainedVolumesAreTheirCreatorsOnly(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(retaining("ann"))
	claim := claimOf(e)
	e.Delete(e.sandbox("box"))
	e.Delete(pod)
	e.release(pod)

	e.Create(retaining("bob"))
	e.saysReady("box", `False/ReconcilerError: Error seen: persistentvolumeclaim "data-box" was retained for the creator of an earlier `+
		`sandbox "box", who is not that of this one (annotation "platform.agents.x-k8s.io/creator": "bob"): delete it, or hand it over by `+
		`the label "agents.x-k8s.io/adoptable": "true"`)
	e.untouched(claim, &corev1.PersistentVolumeClaim{})

	before := claim.DeepCopy()
	claim.Labels[keys.Adoptable] = "true"
	e.patch(claim, before)
	e.runPod("box")
	e.saysReady("box", readySay)
	if got := claimOf(e).Labels[keys.RetainedFor]; got != keys.CreatorKey("bob") {
		t.Errorf("the claim is retained for %q", got)
	}
	e.idle("box")
}

// A volume that somebody deletes is made again, and Ready says what that means.
func TestVolumeDeletedBehindOurBack(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox(withVolume("data"), withClaimSpec))
	before := e.Clock.Now().Add(-time.Hour)
	e.report(pod, func(s *corev1.PodStatus) {
		for i := range s.Conditions {
			s.Conditions[i].LastTransitionTime = metav1.NewTime(before)
		}
	})
	claim := claimOf(e)
	held := claim.DeepCopy()
	claim.Finalizers = []string{"kubernetes.io/pvc-protection"}
	e.patch(claim, held)
	e.Delete(claim)
	e.Eventually("Ready says that the volume goes", func() error {
		return hasParts(e.sandbox("box"), readySay, `persistentvolumeclaim "data-box" is being deleted`)
	})
	e.idle("box")
	e.Get(claim.Name, claim)
	held = claim.DeepCopy()
	claim.Finalizers = nil
	e.patch(claim, held)
	e.Eventually("Ready says that the volume was made again", func() error {
		return hasParts(e.sandbox("box"), readySay, `persistentvolumeclaim "data-box" was deleted and made again`)
	})
	if now := claimOf(e); now.UID == claim.UID {
		t.Error("the claim is the old one")
	}
	e.idle("box")
	e.Delete(pod)
	e.release(pod)
	e.otherPod(pod)
	e.runPod("box")
	e.saysReady("box", readySay)
}

func hasParts(sandbox *agentsv1beta1.Sandbox, parts ...string) error {
	got := sayCondition(sandbox, agentsv1beta1.ConditionReady)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			return errors.New(got)
		}
	}
	return nil
}
