// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// naming is a claim whose annotation names a Sandbox.
func naming(sandbox string) func(*extensionsv1beta1.SandboxClaim) {
	return func(c *extensionsv1beta1.SandboxClaim) { c.Annotations = map[string]string{keys.SandboxName: sandbox} }
}

// An earlier release wrote which Sandbox a claim takes before it took it. What it did not
// get is forgotten.
func TestASandboxThatTheClaimNamesAndDoesNotHaveIsForgotten(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*environment, *stock){
		"it is gone": func(*environment, *stock) {},
		"another claim has it": func(e *environment, s *stock) {
			s.add("lost")
			s.offers(1, 1)
			e.Create(makeClaim("other", naming("lost")))
			e.Eventually("the other claim has it", func() error {
				if got := e.claim("other").Status.SandboxStatus.Name; got != "lost" {
					return fmt.Errorf("it has %q", got)
				}
				return nil
			})
		},
		"it is nobody's": func(e *environment, _ *stock) {
			e.Create(makeSandbox(func(s *agentsv1beta1.Sandbox) { s.Name, s.OwnerReferences, s.ResourceVersion = "lost", nil, "" }))
		},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			stock := e.pool()
			prepare(e, stock)
			stock.add("pool-1")
			stock.offers(1, 1)
			e.Create(makeClaim("claim", naming("lost")))
			e.says(saysReady)
			e.named("pool-1")
			e.Eventually("the annotation follows", func() error {
				if got := e.claim("claim").Annotations[keys.SandboxName]; got != "pool-1" {
					return errors.New(got)
				}
				return nil
			})
		})
	}
}

// Under OnReplenish a member serves although its template describes another by now.
func TestAStaleMemberServesUnderOnReplenish(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	stock := e.pool()
	stock.add("pool-1")
	stock.offers(1, 1)
	e.templateIs(func(t *template) { t.Spec.PodTemplate.Spec.Containers[0].Image = newImage })
	e.Create(makeClaim("claim"))
	e.says(saysReady)
	e.named("pool-1")
}

// What the template says of the Pod's metadata reaches a Sandbox in use with the next pass
// over its claim.
func TestChangedMetadataOfTheTemplateReachesTheSandbox(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.bound(withPodMetadata(map[string]string{"sandbox.users.io/a": "b"}, nil))
	e.templateIs(func(t *template) {
		t.Spec.PodTemplate.ObjectMeta.Labels = map[string]string{"app": "workspace", "team": "blue"}
	})
	e.jump("claim", 0)
	e.Eventually("the Sandbox has it", func() error {
		got := e.sandbox("pool-1").Spec.PodTemplate.ObjectMeta.Labels
		want := map[string]string{
			"app": "workspace", "team": "blue", "sandbox.users.io/a": "b",
			keys.SandboxTemplateRefHash: keys.NameHash("template"), keys.ClaimUID: string(e.claim("claim").UID),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
	e.says(saysReady)
}

// templateIs changes the template and waits until the controller has seen it.
func (e *environment) templateIs(change func(*template)) {
	e.Helper()
	changed := apiserver.Change(e.Environment, "template", &template{}, change)
	e.Eventually("the cache has the template", func() error {
		seen := &template{}
		if err := e.reconciler.client.Get(e.Context(), e.Key("template"), seen); err != nil {
			return err
		}
		if seen.ResourceVersion != changed.ResourceVersion {
			return errors.New("not yet")
		}
		return nil
	})
}

func (e *environment) sandbox(name string) *agentsv1beta1.Sandbox {
	e.Helper()
	sandbox := &agentsv1beta1.Sandbox{}
	e.Get(name, sandbox)
	return sandbox
}

// A claim that is on its way out gets nothing any more. Another that came later is served,
// so that its turn has certainly come.
func TestAClaimThatIsBeingDeletedGetsNothing(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.stop()
	stock := e.pool()
	stock.add("pool-1")
	leaving := makeClaim("claim", func(c *extensionsv1beta1.SandboxClaim) { c.Finalizers = []string{"example.com/keep"} })
	e.Create(leaving)
	e.Delete(leaving)
	e.reconciler, e.stop = e.launch(false)
	stock.offers(1, 1)
	e.jump("claim", 0)
	e.Create(makeClaim("second"))
	e.Eventually("the second claim is served", func() error {
		if got := e.claim("second").Status.SandboxStatus.Name; got != "pool-1" {
			return errors.New(got)
		}
		return nil
	})
	e.stop()
	if claim := e.claim("claim"); len(claim.Status.Conditions) > 0 || len(claim.Annotations) > 0 {
		t.Errorf("the claim was worked on: %+v, %v", claim.Status, claim.Annotations)
	}
	if owner := metav1.GetControllerOf(e.sandbox("pool-1")); owner == nil || owner.Name != "second" {
		t.Errorf("the member belongs to %v", owner)
	}
}

// Garbage collection does not come, as long as a finalizer of its owner holds the claim.
func TestAClaimThatWasDeletedAndIsHeldEndsWhatServesIt(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.bound(func(c *extensionsv1beta1.SandboxClaim) { c.Finalizers = []string{"example.com/keep"} })
	apiserver.Change(e.Environment, "pool-1", &agentsv1beta1.Sandbox{}, func(s *agentsv1beta1.Sandbox) {
		s.Finalizers = []string{metav1.FinalizerOrphanDependents} // which would keep its Pod
	})
	e.Delete(e.claim("claim"))
	e.Gone("pool-1", &agentsv1beta1.Sandbox{})
}

// A pool that changes wakes the claims that may wait for it; a template that appears, all
// claims of its pools.
func TestAPoolWakesTheClaimsThatHaveNothing(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	stock := e.bound()
	e.Create(makeClaim("waiting"), makeClaim("elsewhere", func(c *extensionsv1beta1.SandboxClaim) { c.Spec.WarmPoolRef.Name = "other" }))
	e.Eventually("the second claim waits", func() error { return waits(e) })
	renamed, respecified := stock.template.DeepCopy(), stock.template.DeepCopy()
	renamed.Labels = map[string]string{"a": "b"}
	respecified.Generation++
	cases := map[string]struct {
		happens func(requests)
		want    []string
	}{
		"a pool that appears": {
			func(q requests) {
				e.reconciler.poolEvents().Create(t.Context(), event.CreateEvent{Object: stock.pool}, q)
			}, []string{"waiting"},
		},
		"a pool that goes": {
			func(q requests) {
				e.reconciler.poolEvents().Delete(t.Context(), event.DeleteEvent{Object: stock.pool}, q)
			}, []string{"waiting"},
		},
		"a template that appears": {
			func(q requests) {
				e.reconciler.templateEvents().Create(t.Context(), event.CreateEvent{Object: stock.template}, q)
			}, []string{"claim", "waiting"},
		},
		"a template that says something else": {
			func(q requests) {
				e.reconciler.templateEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: stock.template, ObjectNew: respecified}, q)
			}, []string{"waiting"},
		},
		"a template that says the same": {
			func(q requests) {
				e.reconciler.templateEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: stock.template, ObjectNew: renamed}, q)
			}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
			defer queue.ShutDown()
			tc.happens(queue)
			if diff := cmp.Diff(tc.want, namesIn(queue)); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

// namesIn empties a queue and sorts the names in it.
func namesIn(queue requests) []string {
	var names []string
	for queue.Len() > 0 {
		request, _ := queue.Get()
		queue.Done(request)
		names = append(names, request.Name)
	}
	slices.Sort(names)
	return names
}
