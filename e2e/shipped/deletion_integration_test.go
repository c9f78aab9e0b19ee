// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package shipped

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// With a pool go its members, those whose creation was on its way as well, and nothing
// that a claim has: the garbage collector of Kubernetes sees whose they are.
func TestAPoolThatIsDeletedTakesWhatIsItsOwn(t *testing.T) {
	const claims, replicas = 3, 4
	e := newEnvironment(t)
	controller := e.launch("controller")
	e.fill(replicas, controller)
	for i := range claims {
		e.Create(makeClaim(fmt.Sprintf("claim-%d", i)))
	}
	e.served(claims, controller)
	before := e.claimed()

	growing := &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Name: "growing"}}
	growing.Spec.Replicas, growing.Spec.TemplateRef.Name = new(int32(60)), "template"
	e.Create(growing)
	e.Eventually("the second pool grows", func() error {
		if made := e.members("growing"); made == 0 {
			return errors.New("it has no members")
		}
		return nil
	})
	made := e.members("growing")
	e.Delete(growing)
	e.Delete(&extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: poolName}})
	e.Eventually("nothing is left but what claims have", func() error { return e.left(claims) })
	// Nothing of it is on its way any more once the controller has ended.
	if err := controller.Stop(); err != nil {
		t.Fatal(err)
	}
	e.Eventually("nothing has come since", func() error { return e.left(claims) })
	if diff := cmp.Diff(before, e.claimed()); diff != "" || len(before) != claims {
		t.Errorf("the Sandboxes of claims, by UID (-before +after):\n%s", diff)
	}
	for _, claim := range e.claims() {
		if !meta.IsStatusConditionTrue(claim.Status.Conditions, agentsv1beta1.ConditionReady) {
			t.Errorf("claim %s says %+v", claim.Name, claim.Status)
		}
	}
	t.Logf("%d of 60 members were there when the second pool went", made)
}

// claimed are the claims by the UIDs of the Sandboxes that they have and that stay.
func (e *environment) claimed() map[types.UID]string {
	e.Helper()
	found := map[types.UID]string{}
	for _, sandbox := range e.sandboxes() {
		if owner := relations.Claim(&sandbox); owner != nil && sandbox.DeletionTimestamp == nil {
			found[sandbox.UID] = owner.Name
		}
	}
	return found
}

// members is how many Sandboxes a pool controls.
func (e *environment) members(pool string) int {
	e.Helper()
	count := 0
	for _, sandbox := range e.sandboxes() {
		if owner := relations.Pool(&sandbox); owner != nil && owner.Name == pool {
			count++
		}
	}
	return count
}

// left says so unless there are so many Sandboxes and as many Pods.
func (e *environment) left(want int) error {
	e.Helper()
	var pods corev1.PodList
	if err := e.Client.List(e.Context(), &pods, client.InNamespace(e.Namespace)); err != nil {
		return err
	}
	if sandboxes := len(e.sandboxes()); sandboxes != want || len(pods.Items) != want {
		return fmt.Errorf("there are %d Sandboxes and %d Pods", sandboxes, len(pods.Items))
	}
	return nil
}

// A claim that is deleted in the foreground is there until its Sandbox and the Pod are not.
func TestAClaimThatEndsInTheForegroundGoesLast(t *testing.T) {
	e := newEnvironment(t)
	controller := e.launch("controller")
	e.fill(1, controller)
	claim := makeClaim("claim")
	claim.Spec.Lifecycle = &extensionsv1beta1.ClaimLifecycle{ShutdownPolicy: extensionsv1beta1.ClaimShutdownPolicyDeleteForeground}
	e.Create(claim)
	e.served(1, controller)
	e.Get("claim", claim)
	name := claim.Status.SandboxStatus.Name
	gone := e.deletions(&extensionsv1beta1.SandboxClaimList{}, &agentsv1beta1.SandboxList{}, &corev1.PodList{})
	past := metav1.NewTime(clock.RealClock{}.Now().Add(-time.Minute))
	apiserver.Change(e.Environment, "claim", claim, func(c *extensionsv1beta1.SandboxClaim) { c.Spec.Lifecycle.ShutdownTime = &past })
	e.Gone("claim", claim)
	pod, sandbox, last := gone("*v1.Pod", name), gone("*v1beta1.Sandbox", name), gone("*v1beta1.SandboxClaim", "claim")
	if pod > sandbox || sandbox > last {
		t.Errorf("the Pod went at version %d of the store, the Sandbox at %d, the claim at %d", pod, sandbox, last)
	}
}

// deletions watches and tells at which version of the store an object of a kind went, as
// soon as it has.
func (e *environment) deletions(kinds ...client.ObjectList) func(kind, name string) uint64 {
	e.Helper()
	var mu sync.Mutex
	went := map[string]uint64{}
	for _, kind := range kinds {
		e.Watch(kind, func(event watch.Event) {
			object, isObject := event.Object.(client.Object)
			if !isObject || event.Type != watch.Deleted {
				return
			}
			if version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64); err == nil { // the apiserver's versions are numbers
				mu.Lock()
				defer mu.Unlock()
				went[fmt.Sprintf("%T %s", object, object.GetName())] = version
			}
		})
	}
	return func(kind, name string) (version uint64) {
		e.Helper()
		e.Eventually(fmt.Sprintf("%s %s is seen to go", kind, name), func() error {
			mu.Lock()
			defer mu.Unlock()
			found, seen := went[kind+" "+name]
			if !seen {
				return errors.New("it is not")
			}
			version = found
			return nil
		})
		return version
	}
}
