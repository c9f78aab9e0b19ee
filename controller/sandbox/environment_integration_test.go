// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// boxName is the name of the Sandbox that most tests are about.
const boxName = "box"

// workers are how many Sandboxes the controller works on at once.
const workers = 4

// server is the apiserver of all tests of this package; TestMain starts it.
var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Options{}, &server)) }

// environment is a namespace with a controller of its own.
type environment struct {
	*apiserver.Environment

	kubelet    apiserver.Kubelet
	platform   *config.Platform
	reconciler *Reconciler
	stop       func()
}

// newEnvironment makes the namespace, changed by the edits, and starts the controller.
func newEnvironment(t *testing.T, edits ...func(*environment)) *environment {
	t.Helper()
	e := &environment{Environment: server.NewEnvironment(t), platform: apiserver.Platform()}
	e.kubelet = apiserver.Kubelet{Client: e.Client, Node: "node-1"}
	for _, edit := range edits {
		edit(e)
	}
	e.start()
	return e
}

func disturbedBy(faults *apiserver.Faults) func(*environment) {
	return func(e *environment) { e.Faults = faults }
}

// passing lets the requests of the controller pass through a transport.
func passing(wrap func(http.RoundTripper) http.RoundTripper) func(*environment) {
	return func(e *environment) { e.Wrap = wrap }
}

// start runs a controller that sees this namespace only.
func (e *environment) start() {
	e.Helper()
	byObject, err := CacheByObject(false)
	if err != nil {
		e.Fatal(err)
	}
	e.stop = e.Run(apiserver.Setup{
		Add: func(ctx context.Context, mgr ctrl.Manager) error {
			e.reconciler = New(mgr.GetClient(), mgr.GetAPIReader(), e.Recorder(mgr), e.Clock,
				Settings{Platform: e.platform, Current: func() *config.Platform { return e.platform }, ClusterDomain: "cluster.local", ConcurrentWorkers: workers})
			return e.reconciler.SetupWithManager(ctx, mgr)
		},
		ByObject: byObject,
	})
}

// restart ends the controller and starts another one, which knows nothing.
func (e *environment) restart() {
	e.Helper()
	e.stop()
	e.start()
}

// jump moves the controller's clock ahead and lets it look at the Sandbox.
func (e *environment) jump(by time.Duration) {
	e.Clock.Jump(by)
	e.reconciler.waker.Now(e.Key(boxName))
}

func (e *environment) request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: e.Key(name)}
}

// edit changes the Sandbox as the user.
func (e *environment) edit(edits ...func(*agentsv1beta1.Sandbox)) {
	e.Helper()
	apiserver.Change(e.Environment, boxName, &agentsv1beta1.Sandbox{}, func(sandbox *agentsv1beta1.Sandbox) {
		for _, edit := range edits {
			edit(sandbox)
		}
	})
}

func (e *environment) sandbox(name string) *agentsv1beta1.Sandbox {
	e.Helper()
	sandbox := &agentsv1beta1.Sandbox{}
	e.Get(name, sandbox)
	return sandbox
}

// appears waits until there is an object of that name and reads it.
func (e *environment) appears(name string, into client.Object) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%T %s is there", into, name), func() error {
		if !e.Exists(name, into) {
			return fmt.Errorf("there is none; Sandboxes: %s", e.summary())
		}
		return nil
	})
}

// summary lists the Ready conditions of the namespace.
func (e *environment) summary() string {
	var list agentsv1beta1.SandboxList
	if err := e.Client.List(context.Background(), &list, client.InNamespace(e.Namespace)); err != nil {
		return err.Error()
	}
	var out strings.Builder
	for i := range list.Items {
		fmt.Fprintf(&out, "%s %s\n", list.Items[i].Name, sayCondition(&list.Items[i], agentsv1beta1.ConditionReady))
	}
	return out.String()
}

// sayCondition puts a condition into one line: status, reason and message.
func sayCondition(sandbox *agentsv1beta1.Sandbox, kind string) string {
	c := meta.FindStatusCondition(sandbox.Status.Conditions, kind)
	if c == nil {
		return "absent"
	}
	return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
}

// says waits until a condition of the Sandbox is what is wanted, for the newest
// generation, and returns the Sandbox.
func (e *environment) says(name, kind, want string) *agentsv1beta1.Sandbox {
	e.Helper()
	var sandbox *agentsv1beta1.Sandbox
	e.Eventually(fmt.Sprintf("%s of %s is as wanted", kind, name), func() error {
		sandbox = e.sandbox(name)
		if diff := cmp.Diff(want, sayCondition(sandbox, kind)); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		if c := meta.FindStatusCondition(sandbox.Status.Conditions, kind); c != nil && c.ObservedGeneration != sandbox.Generation {
			return fmt.Errorf("it speaks of generation %d of %d", c.ObservedGeneration, sandbox.Generation)
		}
		return nil
	})
	return sandbox
}

func (e *environment) saysReady(name, want string) *agentsv1beta1.Sandbox {
	e.Helper()
	return e.says(name, agentsv1beta1.ConditionReady, want)
}

// runPod waits for the Pod of that name and lets it run.
func (e *environment) runPod(name string) *corev1.Pod {
	e.Helper()
	pod := &corev1.Pod{}
	e.appears(name, pod)
	if err := e.kubelet.Run(e.Context(), pod); err != nil {
		e.Fatal(err)
	}
	return pod
}

// running creates a Sandbox and brings it to Ready.
func (e *environment) running(sandbox *agentsv1beta1.Sandbox) *corev1.Pod {
	e.Helper()
	e.Create(sandbox)
	pod := e.runPod(sandbox.Name)
	e.Eventually("the Sandbox is Ready", func() error {
		if got := e.sandbox(sandbox.Name); !meta.IsStatusConditionTrue(got.Status.Conditions, agentsv1beta1.ConditionReady) {
			return errors.New(sayCondition(got, agentsv1beta1.ConditionReady))
		}
		return nil
	})
	return pod
}

// report changes the status of a Pod as the kubelet does.
func (e *environment) report(pod *corev1.Pod, change func(*corev1.PodStatus)) {
	e.Helper()
	e.Get(pod.Name, pod)
	if err := e.kubelet.Report(e.Context(), pod, change); err != nil {
		e.Fatal(err)
	}
}

// release lets a Pod go that is being deleted.
func (e *environment) release(pod *corev1.Pod) {
	e.Helper()
	if err := e.kubelet.Remove(e.Context(), pod); err != nil {
		e.Fatal(err)
	}
}

// idle fails the test if passes over the Sandbox go on writing. What is under way may
// end first.
func (e *environment) idle(name string) {
	e.Helper()
	const rounds = 4
	diff := ""
	for range rounds {
		before := e.Writes()
		for range 3 {
			if _, err := e.reconciler.Reconcile(e.Context(), e.request(name)); err != nil {
				e.Logf("a pass over %s ends with: %v", name, err)
			}
		}
		if diff = cmp.Diff(before, e.Writes()); diff == "" {
			return
		}
	}
	e.Errorf("passes that have nothing to do write (-before +after):\n%s", diff)
}

// untouched fails the test if an object is not what it was.
func (e *environment) untouched(before, now client.Object) {
	e.Helper()
	e.Get(before.GetName(), now)
	if before.GetUID() != now.GetUID() || before.GetResourceVersion() != now.GetResourceVersion() {
		e.Errorf("somebody else's %T %s was touched (-before +after):\n%s", before, before.GetName(), cmp.Diff(before, now))
	}
}
