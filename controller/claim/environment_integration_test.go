// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// server is the apiserver of all tests of this package; TestMain starts it.
var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Options{NoFsync: true}, &server)) }

// environment is a namespace with a claim controller of its own. The test plays pools,
// Sandbox controller and kubelet.
type environment struct {
	*apiserver.Environment

	// node is the healthy node of the namespace's Pods.
	node    string
	setting Settings

	reconciler *Reconciler
	stop       func()
}

// newEnvironment makes the namespace, changed by the edits, and starts the controller.
func newEnvironment(t *testing.T, edits ...func(*environment)) *environment {
	t.Helper()
	platform := apiserver.Platform()
	e := &environment{
		Environment: server.NewEnvironment(t),
		// However slow the machine is, a claim for which there is a member does not start cold.
		setting: Settings{Current: func() *config.Platform { return platform }, ConcurrentWorkers: 8, ColdStartAfter: time.Hour},
	}
	e.node = "node-of-" + e.Namespace
	for _, edit := range edits {
		edit(e)
	}
	e.MakeNode(e.node)
	e.reconciler, e.stop = e.launch(false)
	return e
}

// launch starts a controller that works once no other of the namespace does, and waits for that
// unless it is to stand by.
func (e *environment) launch(standsBy bool) (reconciler *Reconciler, stop func()) {
	e.Helper()
	stop = e.Run(apiserver.Setup{
		Add: func(ctx context.Context, mgr ctrl.Manager) error {
			reconciler = New(mgr.GetClient(), mgr.GetAPIReader(), e.Recorder(mgr), e.Clock, e.setting)
			return reconciler.SetupWithManager(ctx, mgr)
		},
		ByObject: CacheByObject(), Elected: "claims", StandsBy: standsBy,
	})
	return reconciler, stop
}

// restart ends the controller and starts another one, which knows nothing.
func (e *environment) restart() {
	e.Helper()
	e.stop()
	e.reconciler, e.stop = e.launch(false)
}

// standBy starts another controller, whose caches fill while the first one works.
func (e *environment) standBy() (takeOver func()) {
	e.Helper()
	reconciler, stop := e.launch(true)
	return func() { e.handOverTo(reconciler, stop) }
}

// handOverTo ends the controller and waits until one that stood by has taken the lead: one that
// is started meanwhile might take it else.
func (e *environment) handOverTo(heir *Reconciler, stop func()) {
	e.Helper()
	e.stop()
	e.reconciler, e.stop = heir, stop
	e.Eventually("the replica that stood by leads", func() error {
		if !heir.waker.Started() {
			return errors.New("it does not")
		}
		return nil
	})
}

// jump moves the controller's clock ahead and lets it look at the claim.
func (e *environment) jump(claim string, by time.Duration) {
	e.Clock.Jump(by)
	e.reconciler.waker.Now(e.Key(claim))
}

// pool makes a template and a pool of that name and returns both.
func (e *environment) pool(edits ...func(*extensionsv1beta1.SandboxTemplate, *extensionsv1beta1.SandboxWarmPool)) *stock {
	e.Helper()
	template, pool := makeTemplate(), makePool()
	for _, edit := range edits {
		edit(template, pool)
	}
	e.Create(template, pool)
	return &stock{e: e, template: template, pool: pool}
}

// stock is a pool whose members the test makes.
type stock struct {
	e        *environment
	template *extensionsv1beta1.SandboxTemplate
	pool     *extensionsv1beta1.SandboxWarmPool
}

// add makes a member that a claim can have now.
func (s *stock) add(name string, edits ...func(*agentsv1beta1.Sandbox, *corev1.Pod)) *agentsv1beta1.Sandbox {
	s.e.Helper()
	sandbox, err := s.e.newMember(s.e.Context(), s, name, edits...)
	if err != nil {
		s.e.Fatal(err)
	}
	return sandbox
}

func (e *environment) newMember(
	ctx context.Context, s *stock, name string, edits ...func(*agentsv1beta1.Sandbox, *corev1.Pod),
) (*agentsv1beta1.Sandbox, error) {
	sandbox, err := blueprint.ForPool(s.pool, s.template, blueprint.Options{SafeToEvict: true})
	if err != nil {
		return nil, err
	}
	blueprint.SetName(sandbox, name)
	sandbox.Namespace = e.Namespace
	sandbox.Status = readyStatus()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}, Spec: *sandbox.Spec.PodTemplate.Spec.DeepCopy()}
	pod.Spec.NodeName = e.node
	apiserver.Running(&pod.Status)
	for _, edit := range edits {
		edit(sandbox, pod)
	}
	status, podStatus := sandbox.Status, pod.Status
	if err := e.Client.Create(ctx, sandbox); err != nil {
		return nil, err
	}
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(sandbox, agentsv1beta1.GroupVersion.WithKind(agentsv1beta1.SandboxKind)),
	}
	if err := e.Client.Create(ctx, pod); err != nil {
		return nil, err
	}
	pod.Status, sandbox.Status = podStatus, status
	return sandbox, errors.Join(e.Client.Status().Update(ctx, pod), e.Client.Status().Update(ctx, sandbox))
}

// readyStatus is the status of a Sandbox that works.
func readyStatus() agentsv1beta1.SandboxStatus {
	return agentsv1beta1.SandboxStatus{
		PodIPs: []string{"10.1.2.3"},
		Conditions: []metav1.Condition{
			{
				Type: agentsv1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: agentsv1beta1.ReasonDependenciesReady,
				Message: "Pod is Ready", LastTransitionTime: metav1.NewTime(noon()),
			},
		},
	}
}

// offers waits until the controller would hand out so many of so many members.
func (s *stock) offers(want, members int) {
	s.e.Helper()
	s.e.Eventually("the controller knows the members", func() error {
		of, offered := s.e.reconciler.index.Size(s.e.Key(s.pool.Name))
		if of != members || offered != want {
			return fmt.Errorf("it would hand out %d of %d, want %d of %d", offered, of, want, members)
		}
		return nil
	})
}

// report writes the status of a Sandbox as its controller would.
func (e *environment) report(name string, change func(*agentsv1beta1.SandboxStatus)) {
	e.Helper()
	sandbox := &agentsv1beta1.Sandbox{}
	e.Get(name, sandbox)
	before := sandbox.DeepCopy()
	change(&sandbox.Status)
	if err := e.Client.Status().Patch(e.Context(), sandbox, client.MergeFrom(before)); err != nil {
		e.Fatal(err)
	}
}

// edit changes a claim as the user.
func (e *environment) edit(name string, change func(*extensionsv1beta1.SandboxClaim)) {
	e.Helper()
	apiserver.Change(e.Environment, name, &extensionsv1beta1.SandboxClaim{}, change)
}

func (e *environment) claim(name string) *extensionsv1beta1.SandboxClaim {
	e.Helper()
	claim := &extensionsv1beta1.SandboxClaim{}
	e.Get(name, claim)
	return claim
}

// says waits until the Ready condition of the claim "claim" is what is wanted, for its
// newest generation, and returns the claim.
func (e *environment) says(want string) *extensionsv1beta1.SandboxClaim {
	e.Helper()
	var claim *extensionsv1beta1.SandboxClaim
	e.Eventually("the claim says what is wanted", func() error {
		claim = e.claim("claim")
		if diff := cmp.Diff(want, sayReady(claim)); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		if c := meta.FindStatusCondition(claim.Status.Conditions, agentsv1beta1.ConditionReady); c.ObservedGeneration != claim.Generation {
			return fmt.Errorf("it speaks of generation %d of %d", c.ObservedGeneration, claim.Generation)
		}
		return nil
	})
	return claim
}

// sayReady puts the Ready condition into one line: status, reason and message.
func sayReady(claim *extensionsv1beta1.SandboxClaim) string {
	c := meta.FindStatusCondition(claim.Status.Conditions, agentsv1beta1.ConditionReady)
	if c == nil {
		return "absent"
	}
	return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
}

// sandboxes lists those of the namespace.
func (e *environment) sandboxes() []agentsv1beta1.Sandbox {
	e.Helper()
	var list agentsv1beta1.SandboxList
	if err := e.Client.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		e.Fatal(err)
	}
	return list.Items
}

// member reads a Sandbox of the pool.
func (s *stock) member(name string) *agentsv1beta1.Sandbox {
	s.e.Helper()
	sandbox := &agentsv1beta1.Sandbox{}
	s.e.Get(name, sandbox)
	return sandbox
}

// sandboxNamed is a Sandbox of the namespace to be changed by its name.
func (e *environment) sandboxNamed(name string) *agentsv1beta1.Sandbox {
	return &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
}
