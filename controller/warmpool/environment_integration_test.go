// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package warmpool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/sandbox"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/template"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// server is the apiserver of all tests of this package; TestMain starts it.
var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Options{NoFsync: true}, &server)) }

// environment is a namespace with a pool controller of its own, and with controllers of
// Sandboxes and templates and a kubelet that nothing disturbs.
type environment struct {
	*apiserver.Environment

	settings Settings
	// changed tells the controller of templates that what the settings say of the platform
	// is something else.
	changed    chan event.GenericEvent
	reconciler *Reconciler
	stop       func()
}

func newEnvironment(t *testing.T, edits ...func(*environment)) *environment {
	t.Helper()
	e := &environment{
		Environment: server.NewEnvironment(t), changed: make(chan event.GenericEvent),
		settings: Settings{
			Current: apiserver.Platform, ConcurrentWorkers: 1, Refill: Refill{MaxBatch: 300},
			Yield:          Yield{ToBindings: time.Second, ToColdStarts: 10 * time.Second, ColdStartAfter: 2 * time.Second},
			ReadinessGrace: 5 * time.Minute, UnschedulableRecheck: time.Minute, SafeToEvict: true,
		},
	}
	for _, change := range edits {
		change(e)
	}
	e.ServeKubelet("node-1")
	byObject, err := sandbox.CacheByObject(false)
	if err != nil {
		t.Fatal(err)
	}
	e.Run(apiserver.Setup{Add: e.setUpOthers, ByObject: byObject, Undisturbed: true})
	e.start()
	return e
}

// start runs the pool controller.
func (e *environment) start() {
	e.Helper()
	e.stop = e.Run(apiserver.Setup{
		Add: func(ctx context.Context, mgr ctrl.Manager) error {
			e.reconciler = New(mgr.GetClient(), mgr.GetAPIReader(), e.Recorder(mgr), e.Clock, e.settings)
			return e.reconciler.SetupWithManager(ctx, mgr)
		},
	})
}

func (e *environment) setUpOthers(ctx context.Context, mgr ctrl.Manager) error {
	pods := sandbox.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("test"), clock.RealClock{},
		sandbox.Settings{Platform: e.settings.Current(), Current: e.settings.Current, ClusterDomain: "cluster.local", ConcurrentWorkers: 10})
	templates := template.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("test"), clock.RealClock{},
		template.Settings{Current: e.settings.Current, Changed: e.changed, ConcurrentWorkers: 1})
	return errors.Join(pods.SetupWithManager(ctx, mgr), templates.SetupWithManager(ctx, mgr))
}

// restart ends the pool controller and starts another one, which knows nothing.
func (e *environment) restart() {
	e.Helper()
	e.stop()
	e.start()
}

// change changes an object as the user.
func change[T client.Object](e *environment, object T, edit func(T)) T {
	e.Helper()
	return apiserver.Change(e.Environment, object.GetName(), object, edit)
}

// members are the Sandboxes that the pool controls and that are not being deleted.
func (e *environment) members() []agentsv1beta1.Sandbox {
	e.Helper()
	var list agentsv1beta1.SandboxList
	if err := e.Client.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		e.Fatal(err)
	}
	var members []agentsv1beta1.Sandbox
	for i := range list.Items {
		if relations.Pool(&list.Items[i]) != nil && list.Items[i].DeletionTimestamp == nil {
			members = append(members, list.Items[i])
		}
	}
	return members
}

func (e *environment) pool() *extensionsv1beta1.SandboxWarmPool {
	e.Helper()
	pool := makePool(0)
	e.Get(pool.GetName(), pool)
	return pool
}

// settled waits until the pool has so many Ready members and its status says so.
func (e *environment) settled(want int32) {
	e.Helper()
	e.Eventually(fmt.Sprintf("the pool has %d Ready members", want), func() error {
		pool := e.pool()
		if pool.Status.Replicas != want || pool.Status.ReadyReplicas != want || len(e.members()) != int(want) ||
			pool.Status.ObservedGeneration != pool.Generation {
			return fmt.Errorf("%d members, status: %+v", len(e.members()), pool.Status)
		}
		return nil
	})
}

// saysProgressing waits until the condition Progressing has a reason.
func (e *environment) saysProgressing(reason string) *metav1.Condition {
	e.Helper()
	var found *metav1.Condition
	e.Eventually("Progressing is "+reason, func() error {
		found = meta.FindStatusCondition(e.pool().Status.Conditions, extensionsv1beta1.PoolConditionProgressing)
		if found == nil || found.Reason != reason {
			return fmt.Errorf("it is %+v", found)
		}
		return nil
	})
	return found
}

// event waits for an Event and returns its note.
func (e *environment) event(reason string) string {
	e.Helper()
	var note string
	e.Eventually("there is an Event "+reason, func() error {
		var list eventsv1.EventList
		if err := e.Client.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if list.Items[i].Reason == reason {
				note = list.Items[i].Note
				return nil
			}
		}
		return errors.New("there is none")
	})
	return note
}

// makeTemplate gives the template of the pools.
func makeTemplate() *extensionsv1beta1.SandboxTemplate {
	made := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: "python"}}
	made.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
	return made
}
