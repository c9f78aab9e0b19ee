// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	shortRun      = 6
	stepsInAll    = 14
	partDisturbed = 0.25
	fewestFaults  = 3
	pause         = 30 * time.Millisecond
	// writesPerStep and writesPerFault bound what a controller may write: a step costs a
	// few writes, and a write that was disturbed is done again.
	writesPerStep  = 6
	writesPerFault = 3
)

// Whatever users, Pods and faults do, the end is the one that the last wish has
// without faults; nothing of anybody else is touched, and writes stay within bounds.
func TestAnySequenceEndsAsWithoutFaults(t *testing.T) {
	t.Parallel()
	for seed := range apiserver.Seeds(t, shortRun) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			steps := drawSteps(seed)
			want := play(t, steps, nil)
			faults := apiserver.NewFaults(seed, partDisturbed)
			got := play(t, steps, faults)
			if err := differs(want.state, got.state); err != nil {
				t.Errorf("the end with faults is another one after %v: %v", names(steps), err)
			}
			bound := writesPerStep*(len(steps)+2) + writesPerFault*faults.Count()
			if got.writes.Total() > bound || want.writes.Total() > writesPerStep*(len(steps)+2) {
				t.Errorf("%d writes without faults, %d with %d faults, want at most %d:\n%s", want.writes.Total(), got.writes.Total(), faults.Count(), bound, got.writes)
			}
			t.Logf("%d writes without faults, %d with %d faults", want.writes.Total(), got.writes.Total(), faults.Count())
		})
	}
}

// step is one thing that somebody does.
type step struct {
	name string
	do   func(*environment)
}

func names(steps []step) []string {
	var all []string
	for _, s := range steps {
		all = append(all, s.name)
	}
	return all
}

func drawSteps(seed uint64) []step {
	random := rand.New(rand.NewPCG(seed, 1))
	choices := possibleSteps()
	steps := make([]step, 0, stepsInAll)
	for range stepsInAll {
		steps = append(steps, choices[random.IntN(len(choices))])
	}
	return steps
}

func edited(name string, edit func(*agentsv1beta1.Sandbox)) step {
	return step{name, func(e *environment) { e.edit(edit) }}
}

func possibleSteps() []step {
	past := shutDownAt(noon().Add(-24*time.Hour), agentsv1beta1.ShutdownPolicyRetain)
	return []step{
		edited("suspend", suspend), edited("resume", resume), edited("expire", past), edited("revive", neverShutDown),
		edited("ask for a Service", withService(true)), edited("ask for no Service", withService(false)),
		edited("label", withPodMetadata(map[string]string{"team": "b"}, map[string]string{"note": "x"})),
		edited("label otherwise", withPodMetadata(map[string]string{"crew": "c"}, nil)),
		{"the Pod fails", reportIfThere(apiserver.Ended(1, "Error"))},
		{"the Pod succeeds", reportIfThere(apiserver.Ended(0, "Completed"))},
		{"the Pod is not ready", reportIfThere(func(s *corev1.PodStatus) {
			apiserver.SetCondition(s, corev1.PodReady, corev1.ConditionFalse)
		})},
		{"somebody deletes the Pod", deleteIfThere("box", &corev1.Pod{})},
		{"somebody deletes the Service", deleteIfThere("box", &corev1.Service{})},
		{"somebody deletes the volume", deleteIfThere("data-box", &corev1.PersistentVolumeClaim{})},
		{"somebody takes the Pod's labels", unlabelIfThere},
		{"the controller restarts", func(e *environment) { e.restart() }},
	}
}

func reportIfThere(change func(*corev1.PodStatus)) func(*environment) {
	return func(e *environment) {
		pod := &corev1.Pod{}
		if e.Exists("box", pod) {
			e.tolerate(e.kubelet.Report(e.Context(), pod, change))
		}
	}
}

func deleteIfThere(name string, like client.Object) func(*environment) {
	return func(e *environment) {
		object, ok := like.DeepCopyObject().(client.Object)
		if ok && e.Exists(name, object) {
			e.tolerate(e.Client.Delete(e.Context(), object))
		}
	}
}

func unlabelIfThere(e *environment) {
	pod := &corev1.Pod{}
	if !e.Exists("box", pod) {
		return
	}
	before := pod.DeepCopy()
	delete(pod.Labels, keys.SandboxNameHash)
	delete(pod.Labels, keys.Sandbox)
	e.tolerate(e.Client.Patch(e.Context(), pod, client.MergeFrom(before)))
}

// tolerate fails the test unless all that happened is that the object went.
func (e *environment) tolerate(err error) {
	e.Helper()
	if client.IgnoreNotFound(err) != nil {
		e.Fatal(err)
	}
}

// ending is how a sequence ends.
type ending struct {
	state  map[string]any
	writes apiserver.Counts
}

// play lets a sequence happen to a running Sandbox among strangers.
func play(t *testing.T, steps []step, faults *apiserver.Faults) ending {
	t.Helper()
	e := newEnvironment(t, disturbedBy(faults))
	strangers := []client.Object{
		makePod("stranger", likeOurs), makePod("data", likeOurs, ownedByAnother, tracked),
		storableClaim("data-stranger"), named(storableService(adoptableService), "stranger"),
	}
	e.Create(strangers...)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- e.kubelet.Serve(ctx, e.Namespace) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the kubelet: %v", err)
		}
	}()
	e.Create(makeSandbox(withService(true), withVolume("data"), withClaimSpec))
	e.appears("box", &corev1.Pod{})
	for _, s := range steps {
		s.do(e)
		<-e.Clock.After(pause) // the controller is somewhere in its work, wherever chance has it
	}
	for i := 0; faults != nil && faults.Count() < fewestFaults; i++ {
		e.edit(withPodMetadata(map[string]string{"turn": strconv.Itoa(i)}, nil))
		<-e.Clock.After(pause)
	}
	e.edit(withPodMetadata(map[string]string{"last": "wish"}, nil))
	if faults != nil {
		faults.Stop()
	}
	e.settle()
	for _, stranger := range strangers {
		now, ok := stranger.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("%T is no object", stranger)
		}
		e.Get(stranger.GetName(), now)
		if now.GetUID() != stranger.GetUID() || len(now.GetOwnerReferences()) != len(stranger.GetOwnerReferences()) ||
			len(now.GetLabels()) != len(stranger.GetLabels()) || now.GetDeletionTimestamp() != nil {
			t.Errorf("somebody else's %T %s was touched", stranger, stranger.GetName())
		}
	}
	return ending{state: e.state(), writes: e.Writes()}
}

func named(object client.Object, name string) client.Object {
	object.SetName(name)
	return object
}

func storableClaim(name string) client.Object { return makeClaim(name, nil) }

// settle waits until nothing moves any more. A Pod that ended is taken away, and one that
// is not ready becomes so: which Pod was there to hear of it is a matter of chance.
func (e *environment) settle() {
	e.Helper()
	e.Eventually("all has been seen", func() error {
		sandbox, pod := e.sandbox("box"), &corev1.Pod{}
		running := !e.Exists("box", pod) || pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
		if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			e.tolerate(e.Client.Delete(e.Context(), pod))
		}
		if pod.Status.Phase == corev1.PodRunning && !podConditionTrue(pod, corev1.PodReady) {
			e.tolerate(e.kubelet.Report(e.Context(), pod, apiserver.Running))
		}
		if err := differs(true, running); err != nil {
			return err
		}
		before := e.Writes()
		if _, err := e.reconciler.Reconcile(e.Context(), e.request("box")); err != nil {
			return err
		}
		if err := differs(before, e.Writes()); err != nil {
			return err
		}
		if len(sandbox.Status.Conditions) == 0 {
			return differenceError("no conditions")
		}
		for _, c := range sandbox.Status.Conditions {
			if err := differs(sandbox.Generation, c.ObservedGeneration); err != nil {
				return err
			}
		}
		return nil
	})
}

// state is everything that does not depend on chance.
func (e *environment) state() map[string]any {
	e.Helper()
	sandbox := e.sandbox("box")
	state := map[string]any{
		"service": sandbox.Status.Service, "podIPs": sandbox.Status.PodIPs, "nodeName": sandbox.Status.NodeName,
	}
	if sandbox.Spec.ShutdownTime == nil { // expiry leaves the name as it was, and a suspension may come first
		state["pod-name"] = sandbox.Annotations[keys.PodName]
	}
	for _, kind := range []string{agentsv1beta1.ConditionReady, agentsv1beta1.ConditionSuspended, agentsv1beta1.ConditionPodScheduled} {
		said, _, _ := strings.Cut(sayCondition(sandbox, kind), "; persistentvolumeclaim") // which Pod lost it is chance
		state[kind] = said
	}
	if pod := (&corev1.Pod{}); e.Exists("box", pod) {
		state["pod"] = []any{pod.Labels, pod.Annotations, pod.Status.Phase, len(pod.Spec.Volumes), ownershipOf(pod, sandbox)}
		state["selector"] = sandbox.Status.LabelSelector
	}
	if service := (&corev1.Service{}); e.Exists("box", service) {
		state["service object"] = []any{service.Labels, service.Spec.Selector, service.Spec.Ports, ownershipOf(service, sandbox)}
	}
	// Whether one that somebody deleted was made again before the end came is chance.
	if claim := (&corev1.PersistentVolumeClaim{}); sandbox.Spec.ShutdownTime == nil && e.Exists("data-box", claim) {
		state["claim"] = []any{claim.Labels, ownershipOf(claim, sandbox)}
	}
	var pods corev1.PodList
	var policies networkingv1.NetworkPolicyList
	for _, list := range []client.ObjectList{&pods, &policies} {
		if err := e.Client.List(e.Context(), list, inNamespace(e.Namespace)); err != nil {
			e.Fatal(err)
		}
	}
	state["number of Pods"] = len(pods.Items)
	if state["pod"] != nil { // policies that nobody needs may be there or not
		for i := range policies.Items {
			state["policy "+policies.Items[i].Name] = policies.Items[i].Labels
		}
	}
	return state
}
