// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/sandbox"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/template"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/warmpool"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// noOldImages is a rule that refuses what the template of the tests has at first.
const noOldImages = `# METADATA
# title: No old images
# description: A rule of the platform team.
# custom:
#   id: no-old-images
#   severity: high
#   enforcement: Deny
#   remediation: Take the new one.
#   kinds: [Sandbox]
package policies.team.no_old_images

deny contains {"message": "the image is old"} if {
	some container in input.pod.spec.containers
	contains(container.image, ":old")
}
`

// readinessGrace must be over once before a pool replaces anything.
const readinessGrace = time.Minute

// patience is how long a claim waits for its pool.
const patience = time.Hour

// withPools runs the controllers of Sandboxes, pools and claims beside the audit, and a
// kubelet. Time passes for pools and claims only when the test lets it.
func withPools(e *environment) {
	e.settings.Reports = false
	e.pools.Halt()
	e.claims.Halt()
	node := "node-of-" + e.Namespace
	e.MakeNode(node)
	e.ServeKubelet(node)
	e.beside = func(ctx context.Context, mgr ctrl.Manager, e *environment) error {
		pods := sandbox.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("test"), clock.RealClock{},
			sandbox.Settings{Platform: platform(), Current: platform, ClusterDomain: "cluster.local", ConcurrentWorkers: 10})
		templates := template.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("test"), clock.RealClock{},
			template.Settings{Current: platform, Changed: make(chan event.GenericEvent), ConcurrentWorkers: 1})
		pools := warmpool.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("test"), &e.pools, warmpool.Settings{
			Current: platform, ConcurrentWorkers: 1, Refill: warmpool.Refill{MaxBatch: 300},
			ReadinessGrace: readinessGrace, UnschedulableRecheck: time.Minute, SafeToEvict: true, Verdicts: e.auditor.Members(),
		})
		e.witness = &witness{Judge: e.auditor.Members(), engine: e.engine}
		claims := claim.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("test"), &e.claims, claim.Settings{
			Current: platform, ConcurrentWorkers: 8, ColdStartAfter: patience, Verdicts: e.witness,
		})
		return errors.Join(pods.SetupWithManager(ctx, mgr), templates.SetupWithManager(ctx, mgr), pools.SetupWithManager(ctx, mgr), claims.SetupWithManager(ctx, mgr))
	}
}

// pool makes a pool of a template with an image of the tag "old".
func (e *environment) pool(replicas int32) {
	e.Helper()
	template := makeTemplate()
	template.Spec.PodTemplate.Spec.Containers[0].Image = "registry.example.com/main:old"
	pool := poolOfTemplate()
	pool.Spec.Replicas = &replicas
	e.Create(template, pool)
}

// members are the Sandboxes of the pool that are Ready, by UID with their image.
func (e *environment) members() map[types.UID]string {
	e.Helper()
	var list agentsv1beta1.SandboxList
	if err := e.Client.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		e.Fatal(err)
	}
	found := map[types.UID]string{}
	for i := range list.Items {
		member := &list.Items[i]
		ready := meta.IsStatusConditionTrue(member.Status.Conditions, agentsv1beta1.ConditionReady)
		if relations.Pool(member) != nil && member.DeletionTimestamp == nil && ready {
			found[member.UID] = member.Spec.PodTemplate.Spec.Containers[0].Image
		}
	}
	return found
}

func (e *environment) filled(count int) map[types.UID]string {
	e.Helper()
	var found map[types.UID]string
	e.Eventually(fmt.Sprintf("the pool has %d Ready members", count), func() error {
		if found = e.members(); len(found) != count {
			return fmt.Errorf("it has %d", len(found))
		}
		return nil
	})
	return found
}

// launched makes a claim, waits until it is Ready and says how its Sandbox came about. An
// impatient one starts cold unless it has a Sandbox at once.
func (e *environment) launched(name string, impatient bool) string {
	e.Helper()
	made := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	made.Spec.WarmPoolRef.Name = "pool"
	e.Create(made)
	if impatient {
		return e.settles(name)
	}
	e.Eventually("claim "+name+" is Ready", func() error { return e.ready(name) })
	return e.served(name).Labels[keys.LaunchType]
}

// settles makes a claim impatient until it is Ready, and says how its Sandbox came about.
func (e *environment) settles(name string) string {
	e.Helper()
	e.Eventually("claim "+name+" is Ready", func() error {
		err := e.ready(name)
		if err != nil {
			e.claims.Jump(patience)
			apiserver.Change(e.Environment, name, &extensionsv1beta1.SandboxClaim{}, func(c *extensionsv1beta1.SandboxClaim) { // so that its controller looks at it
				c.Annotations = map[string]string{"at": e.claims.Now().String()}
			})
		}
		return err
	})
	return e.served(name).Labels[keys.LaunchType]
}

func (e *environment) ready(name string) error {
	var found extensionsv1beta1.SandboxClaim
	e.Get(name, &found)
	if !meta.IsStatusConditionTrue(found.Status.Conditions, agentsv1beta1.ConditionReady) {
		return fmt.Errorf("its status is %+v", found.Status)
	}
	return nil
}

// served is the Sandbox of a claim that is Ready.
func (e *environment) served(name string) *agentsv1beta1.Sandbox {
	e.Helper()
	var found extensionsv1beta1.SandboxClaim
	e.Get(name, &found)
	var served agentsv1beta1.Sandbox
	e.Get(found.Status.SandboxStatus.Name, &served)
	return &served
}

// A rule that comes is in force for what waits, and one that goes is not: whatever comes
// in whatever order, no claim gets a Sandbox of the pool while it is refused, every
// claim gets one, and those of the pool are had again at once when the rule goes.
func TestNoClaimGetsAWaitingSandboxThatTodaysRulesRefuse(t *testing.T) {
	for seed := range apiserver.Seeds(t, 1) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			e := newEnvironment(t, withPools)
			e.pool(3)
			e.filled(3)
			e.claimWhileTheRuleComesAndGoes(rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func (e *environment) claimWhileTheRuleComesAndGoes(random *rand.Rand) {
	e.Helper()
	refused, launched := false, map[string]int{}
	for i := range 12 {
		if random.IntN(2) == 0 {
			refused = !refused
			rules := map[string]string{}
			if refused {
				rules["no-old-images.rego"] = noOldImages
			}
			e.configure(rules)
		} else {
			e.filled(3)
		}
		want := "warm"
		if refused {
			want = "cold"
		}
		if got := e.launched(fmt.Sprintf("claim-%d", i), refused); got != want {
			e.Errorf("claim %d had a %s start while the rule refused the pool's: %t; want %s", i, got, refused, want)
		}
		launched[want]++
	}
	if len(launched) != 2 {
		e.Errorf("launches: %v, want some of each: choose another seed", launched)
	}
}

// A member that the rules refuse is replaced by one that they admit, and no more than one
// in a grace period where the pool is small. The claim that comes gets the new one.
func TestRefusedMembersAreReplacedAtABoundedPace(t *testing.T) {
	e := newEnvironment(t, withPools)
	e.pool(3)
	before := e.filled(3)
	apiserver.Change(e.Environment, "template", &extensionsv1beta1.SandboxTemplate{}, func(t *extensionsv1beta1.SandboxTemplate) {
		t.Spec.PodTemplate.Spec.Containers[0].Image = "registry.example.com/main:new"
	})
	e.pools.Jump(readinessGrace)
	e.configure(map[string]string{"no-old-images.rego": noOldImages})
	var after map[types.UID]string
	e.Eventually("a member is replaced", func() error {
		after = e.members()
		fresh := sets.KeySet(after).Difference(sets.KeySet(before))
		if fresh.Len() != 1 || len(after) != 3 {
			return fmt.Errorf("%d of %d members are new", fresh.Len(), len(after))
		}
		return nil
	})
	if got := e.launched("claim", false); got != "warm" {
		t.Errorf("the claim had a %s start, want the new member", got)
	}
	e.Eventually("the pool is full again", func() error {
		if after = e.members(); len(after) != 3 {
			return fmt.Errorf("it has %d", len(after))
		}
		return nil
	})
	if kept := sets.KeySet(before).Intersection(sets.KeySet(after)).Len(); kept != 2 {
		t.Errorf("%d members of before are left within the grace period, want 2", kept)
	}
}
