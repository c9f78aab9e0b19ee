// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// Caches lag by seconds, watches break, requests fail before and after they are
// carried out, members cease to be ready and come back, and in the middle another
// controller takes over whose caches have not seen what the first one did last. Some of what
// that one is not answered is carried out later still.
func TestOneSandboxForOneClaimWhateverTheCachesShow(t *testing.T) {
	t.Parallel()
	for seed := range apiserver.Seeds(t, 2) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { t.Parallel(); oneForOne(t, seed) })
	}
}

func oneForOne(t *testing.T, seed uint64) {
	t.Helper()
	const claims, members = 40, 28
	faults, late := apiserver.NewFaults(seed, 0.05), apiserver.NewLag(seed, 5*time.Second, 0.02)
	e := newEnvironment(t, func(e *environment) { e.Faults, e.Lag, e.setting.ColdStartAfter = faults, late, 8*time.Second })
	takeOver, w, unfit := e.standBy(), e.Witness(), e.unfitHandedOut()
	late.Begin()
	stock := e.pool(func(_ *template, p *pool) {
		p.Spec.UpdateStrategy = &extensionsv1beta1.UpdateStrategy{Type: extensionsv1beta1.UpdateStrategyRecreate}
	})
	for i := range members / 2 {
		stock.add(fmt.Sprintf("pool-%d", i), sometimes(i, unready), sometimes(i+1, outdated))
	}
	flicker := e.flicker(seed, members)
	for i := range claims {
		e.Create(makeClaim(fmt.Sprintf("claim-%d", i)))
	}
	for i := members / 2; i < members; i++ {
		stock.add(fmt.Sprintf("pool-%d", i), sometimes(i, unready), sometimes(i+1, outdated))
	}
	e.Eventually("some claims are bound", func() error { return e.unbound(claims, claims*3/4) })
	takeOver()
	faults.Belate(3 * time.Second)
	e.Eventually("most claims are bound", func() error { return e.unbound(claims, claims/4) })
	faults.Stop()
	late.Stop()
	e.Eventually("every claim is bound", func() error { return e.unbound(claims, 0) })
	flicker()
	faults.Settle()
	e.offersWhatIsFit()
	if doubles := w.Doubles(); len(doubles) > 0 {
		t.Error(errors.Join(doubles...))
	}
	warm, wrong := unfit()
	if len(wrong) > 0 || warm == 0 {
		t.Errorf("%d members were handed out, of which unfit: %v", warm, wrong)
	}
	e.consistent()
	t.Logf("%d requests were disturbed, %d members handed out; writes:\n%s", faults.Count(), warm, e.Writes())
}

// offersWhatIsFit waits until what claims could have now is offered to them. What nobody has
// looked at since the template changed is offered as well.
func (e *environment) offersWhatIsFit() {
	e.Helper()
	e.Eventually("the members that are left are offered", func() error {
		fit, all := 0, e.sandboxes()
		for i := range all {
			if _, belongs := poolOf(&all[i]); belongs && usable(&all[i]) && imageOf(&all[i]) != outdatedImage {
				fit++
			}
		}
		if _, offered := e.reconciler.index.Size(e.Key("pool")); offered < fit {
			return fmt.Errorf("%d of %d are", offered, fit)
		}
		return nil
	})
}

type memberEdit = func(*agentsv1beta1.Sandbox, *corev1.Pod)

// sometimes spoils one in seven members.
func sometimes(number int, spoil memberEdit) memberEdit {
	if number%7 == 0 {
		return spoil
	}
	return func(*agentsv1beta1.Sandbox, *corev1.Pod) {}
}

func unready(s *agentsv1beta1.Sandbox, _ *corev1.Pod) {
	s.Status.Conditions[0].Status = metav1.ConditionFalse
}

// outdatedImage is what no template describes.
const outdatedImage = "python:2.7"

// outdated is a member that was made of another template.
func outdated(s *agentsv1beta1.Sandbox, _ *corev1.Pod) {
	s.Spec.PodTemplate.Spec.Containers[0].Image = outdatedImage
	s.Labels[keys.SandboxTemplateHash] = "0"
}

// flicker lets members cease to be ready and come back at random, until it is ended.
func (e *environment) flicker(seed uint64, members int) (end func()) {
	e.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		random := rand.New(rand.NewPCG(seed, 1))
		for ctx.Err() == nil {
			<-clock.RealClock{}.After(time.Duration(random.IntN(50)) * time.Millisecond)
			sandbox := &agentsv1beta1.Sandbox{}
			if e.Client.Get(ctx, e.Key(fmt.Sprintf("pool-%d", random.IntN(members))), sandbox) != nil {
				continue // it is not there yet, or the test ends
			}
			before, ready := sandbox.DeepCopy(), metav1.ConditionTrue
			if relations.Claim(sandbox) == nil && random.IntN(2) == 0 {
				ready = metav1.ConditionFalse
			}
			for i := range sandbox.Status.Conditions {
				sandbox.Status.Conditions[i].Status = ready
			}
			_ = e.Client.Status().Patch(ctx, sandbox, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})) // another time, then
		}
	}()
	return func() { cancel(); <-ended }
}

// unfitHandedOut watches every member at the moment at which it becomes a claim's, and
// tells how many there were and which of them were not ready or outdated.
func (e *environment) unfitHandedOut() func() (warm int, wrong []string) {
	e.Helper()
	var mu sync.Mutex
	seen, wrong := map[types.UID]bool{}, []string{}
	caughtUp := e.Watch(&agentsv1beta1.SandboxList{}, func(event watch.Event) {
		sandbox, isSandbox := event.Object.(*agentsv1beta1.Sandbox)
		if !isSandbox || relations.Claim(sandbox) == nil || sandbox.Labels[keys.LaunchType] != "warm" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if seen[sandbox.UID] {
			return
		}
		seen[sandbox.UID] = true
		if !usable(asMember(sandbox)) || sandbox.Spec.PodTemplate.Spec.Containers[0].Image == outdatedImage {
			wrong = append(wrong, sandbox.Name)
		}
	})
	return func() (int, []string) {
		caughtUp()
		mu.Lock()
		defer mu.Unlock()
		return len(seen), wrong
	}
}

// asMember puts the label back that a member loses when it is handed out.
func asMember(sandbox *agentsv1beta1.Sandbox) *agentsv1beta1.Sandbox {
	member := sandbox.DeepCopy()
	member.Labels[keys.WarmPoolSandbox] = "pool"
	return member
}

// unbound says so when more claims than allowed have no Sandbox.
func (e *environment) unbound(claims, allowed int) error {
	var list extensionsv1beta1.SandboxClaimList
	if err := e.Client.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		return err
	}
	bound := 0
	for i := range list.Items {
		if list.Items[i].Status.SandboxStatus.Name != "" {
			bound++
		}
	}
	if claims-bound > allowed {
		return fmt.Errorf("%d of %d claims have no Sandbox", claims-bound, claims)
	}
	return nil
}

// consistent fails the test unless each claim names the one Sandbox that it controls.
func (e *environment) consistent() {
	e.Helper()
	owned := map[types.UID]string{}
	sandboxes := e.sandboxes()
	for i := range sandboxes {
		if owner := metav1.GetControllerOf(&sandboxes[i]); owner != nil && owner.Kind == extensionsv1beta1.SandboxClaimKind {
			owned[owner.UID] = sandboxes[i].Name
		}
	}
	var list extensionsv1beta1.SandboxClaimList
	if err := e.Client.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		e.Fatal(err)
	}
	for i := range list.Items {
		if claim := &list.Items[i]; owned[claim.UID] != claim.Status.SandboxStatus.Name {
			e.Errorf("claim %s names Sandbox %q and controls %q", claim.Name, claim.Status.SandboxStatus.Name, owned[claim.UID])
		}
	}
}
