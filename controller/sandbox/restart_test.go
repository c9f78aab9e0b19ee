// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

func recreate(s *agentsv1beta1.Sandbox) {
	s.Annotations = map[string]string{keys.RestartPolicy: "Recreate"}
}

func ended(name string, exitCode int32, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name:  name,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: reason}},
	}
}

func TestRestartsBackOffAndCalmDown(t *testing.T) {
	var r restarts
	now := noon()
	box := types.NamespacedName{Namespace: "team-a", Name: "box"}
	var delays []time.Duration
	for _, pod := range []types.UID{"1", "2", "3", "4", "5", "6", "7"} {
		due := r.due(box, pod, now)
		delays = append(delays, due.Sub(now))
		if again := r.due(box, pod, now.Add(time.Second)); !again.Equal(due) {
			t.Errorf("the turn of Pod %s moved from %s to %s", pod, due, again)
		}
		now = due.Add(time.Second)
	}
	want := []time.Duration{
		10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 5 * time.Minute, 5 * time.Minute,
	}
	if diff := cmp.Diff(want, delays); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
	now = now.Add(calm + time.Second)
	if got := r.due(box, "8", now).Sub(now); got != firstRestart {
		t.Errorf("after a long time the delay is %s, want %s", got, firstRestart)
	}
	r.forget(box)
	if got := r.due(box, "9", now).Sub(now); got != firstRestart {
		t.Errorf("for a Sandbox that nobody knows the delay is %s, want %s", got, firstRestart)
	}
}

func TestAFailedPodGivesWayInItsTurn(t *testing.T) {
	failed := makePod("box", marked, inPhase(corev1.PodFailed))
	turn := func(at time.Time) func(*scope) { return func(s *scope) { s.restartAt = at } }
	cases := map[string]struct {
		scope *scope
		want  podAction
	}{
		"not asked for":           {makeScope(makeSandbox(), having(failed)), podSync},
		"asked for, not its turn": {makeScope(makeSandbox(recreate), having(failed), turn(noon().Add(time.Second))), podSync},
		"asked for, its turn":     {makeScope(makeSandbox(recreate), having(failed), turn(noon())), podDelete},
		"a Pod that succeeded":    {makeScope(makeSandbox(recreate), having(makePod("box", marked, inPhase(corev1.PodSucceeded)))), podSync},
		"a Pod that runs":         {makeScope(makeSandbox(recreate), having(makePod("box", marked, ready))), podSync},
		"a Pod that ends already": {makeScope(makeSandbox(recreate), having(makePod("box", marked, inPhase(corev1.PodFailed), deletedAt(noon())))), podNone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := decidePod(tc.scope)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("decidePod() = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestTheMessageSaysWhyAPodFailed(t *testing.T) {
	cases := map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"evicted": {
			corev1.PodStatus{Reason: "Evicted", Message: "The node was low on resource: memory."},
			"Pod failed: Evicted: The node was low on resource: memory.",
		},
		"out of memory": {
			corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("helper", 0, "Completed"), ended("workspace", 137, "OOMKilled")}},
			`Pod failed: container "workspace" ended with exit code 137 (OOMKilled)`,
		},
		"an init container": {
			corev1.PodStatus{
				InitContainerStatuses: []corev1.ContainerStatus{ended("setup", 2, "Error")},
				ContainerStatuses:     []corev1.ContainerStatus{ended("workspace", 1, "Error")},
			},
			`Pod failed: container "setup" ended with exit code 2 (Error)`,
		},
		"nothing known": {corev1.PodStatus{}, "Pod failed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.status.Phase = corev1.PodFailed
			pod := makePod("box", ownedByBox, func(p *corev1.Pod) { p.Status = tc.status })
			stripped, err := stripPod(pod)
			if err != nil {
				t.Fatal(err)
			}
			s := makeScope(makeSandbox(recreate), having(stripped.(*corev1.Pod)), func(s *scope) { s.restartAt = noon() })
			want := "False/PodFailed: " + tc.want + "; a new Pod with the same volumes is made at 2026-11-29T12:00:00Z"
			if diff := cmp.Diff(want, say(conditions(s), agentsv1beta1.ConditionReady)); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
			if got := say(conditions(s), agentsv1beta1.ConditionFinished); got != "" && got != "absent" {
				t.Errorf("a Sandbox that goes on is finished: %s", got)
			}
		})
	}
}

func TestAVolumeThatSomebodyDeletedIsSurfaced(t *testing.T) {
	scheduled := func(p *corev1.Pod) {
		ready(p)
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon()),
		})
	}
	claim := func(made time.Time, gone *metav1.Time) func(*scope) {
		return func(s *scope) {
			s.claims = map[string]*corev1.PersistentVolumeClaim{"data-box": {
				ObjectMeta: metav1.ObjectMeta{Name: "data-box", CreationTimestamp: metav1.NewTime(made), DeletionTimestamp: gone},
			}}
		}
	}
	cases := map[string]struct {
		edit func(*scope)
		want string
	}{
		"one that stays":   {claim(noon(), nil), ""},
		"one that goes":    {claim(noon(), &metav1.Time{Time: noon()}), `; persistentvolumeclaim "data-box" is being deleted, and its files go with this Pod`},
		"one made again":   {claim(noon().Add(time.Second), nil), `; persistentvolumeclaim "data-box" was deleted and made again: the next Pod finds it empty`},
		"one that is gone": {func(*scope) {}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := makeScope(makeSandbox(withVolume("data")), having(makePod("box", scheduled)), tc.edit)
			if diff := cmp.Diff("True/DependenciesReady: Pod is Ready"+tc.want, say(conditions(s), agentsv1beta1.ConditionReady)); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
		})
	}
}

// An update may take the name of its creator from a Sandbox, but his files stay his.
func TestFilesAreRetainedForTheirCreator(t *testing.T) {
	by := func(creator string) *agentsv1beta1.Sandbox {
		return makeSandbox(withVolume("data"), func(s *agentsv1beta1.Sandbox) {
			s.Annotations = map[string]string{keys.VolumeRetention: "Retain", keys.Creator: creator}
		})
	}
	for name, tc := range map[string]struct{ before, now, want string }{
		"the name stays":             {"ann", "ann", "ann"},
		"the name is taken away":     {"ann", "", "ann"},
		"there was none":             {"", "", ""},
		"it comes late, by a repair": {"", "ann", "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			first, sandbox := by(tc.before), by(tc.now)
			claim := buildClaim(first, &first.Spec.VolumeClaimTemplates[0])
			takeClaim(claim, buildClaim(sandbox, &sandbox.Spec.VolumeClaimTemplates[0]), sandbox)
			if got := claim.Labels[keys.RetainedFor]; got != keys.CreatorKey(tc.want) {
				t.Errorf("retained for %q, want %q", got, keys.CreatorKey(tc.want))
			}
		})
	}
}

func TestTakeClaim(t *testing.T) {
	retain := func(s *agentsv1beta1.Sandbox) {
		s.Annotations = map[string]string{keys.VolumeRetention: "Retain"}
	}
	plain, retaining := makeSandbox(withVolume("data")), makeSandbox(withVolume("data"), retain)
	built := func(s *agentsv1beta1.Sandbox) *corev1.PersistentVolumeClaim {
		return buildClaim(s, &s.Spec.VolumeClaimTemplates[0])
	}
	adoptable := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-box", Labels: map[string]string{keys.Adoptable: "true"}}}
	cases := map[string]struct {
		claim   *corev1.PersistentVolumeClaim
		sandbox *agentsv1beta1.Sandbox
		changed bool
		want    ownership
	}{
		"ours":                               {built(plain), plain, false, ours},
		"ours, to be retained from now on":   {built(plain), retaining, true, unowned},
		"retained":                           {built(retaining), retaining, false, unowned},
		"retained, by a Sandbox that is not": {built(retaining), plain, true, ours},
		"adoptable":                          {adoptable.DeepCopy(), plain, true, ours},
		"adoptable, to be retained":          {adoptable.DeepCopy(), retaining, true, unowned},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := built(tc.sandbox)
			if got := takeClaim(tc.claim, want, tc.sandbox); got != tc.changed {
				t.Errorf("takeClaim() = %t, want %t", got, tc.changed)
			}
			if got := ownershipOf(tc.claim, tc.sandbox); got != tc.want {
				t.Errorf("afterwards the claim is %d, want %d", got, tc.want)
			}
			if takeClaim(tc.claim, want, tc.sandbox) {
				t.Error("a second time changes it again")
			}
		})
	}
}
