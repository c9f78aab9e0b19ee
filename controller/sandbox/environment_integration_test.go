// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	// patience bounds a hang; no verdict depends on it.
	patience = time.Minute
	glimpse  = 25 * time.Millisecond
	// boxName is the name of the Sandbox that most tests are about.
	boxName = "box"
)

// server is the apiserver of all tests of this package; TestMain starts it.
var server *apiserver.Server

func TestMain(m *testing.M) {
	silent := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard))) // what goes wrong is in the statuses
	ctrl.SetLogger(silent)
	klog.SetLogger(silent)
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	server, err = apiserver.Start(context.Background(), apiserver.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return m.Run(), nil
}

// jumpingClock runs with the machine's clock, ahead of it by all jumps, unless it was
// stopped.
type jumpingClock struct {
	clock.RealClock
	ahead   atomic.Int64
	stopped atomic.Pointer[time.Time]
}

func (c *jumpingClock) Now() time.Time {
	if at := c.stopped.Load(); at != nil {
		return *at
	}
	return c.RealClock.Now().Add(time.Duration(c.ahead.Load()))
}

// resume goes on from where the clock was stopped.
func (c *jumpingClock) resume() {
	if at := c.stopped.Swap(nil); at != nil {
		c.ahead.Store(int64(at.Sub(c.RealClock.Now())))
	}
}

// stop lets time stand still.
func (c *jumpingClock) stop() {
	now := c.Now()
	c.stopped.Store(&now)
}

// environment is a namespace with a controller of its own.
type environment struct {
	t         *testing.T
	namespace string
	// user is who the controller is to the apiserver.
	user string
	// client is the test's own, of an administrator.
	client  client.WithWatch
	kubelet apiserver.Kubelet
	clock   *jumpingClock
	// faults disturb the controller, if there are any.
	faults *apiserver.Faults

	reconciler *Reconciler
	stop       func()
}

// newEnvironment makes the namespace, changed by the edits, and starts the controller.
func newEnvironment(t *testing.T, edits ...func(*environment)) *environment {
	t.Helper()
	admin, err := apiserver.NewClient(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	e := &environment{
		t: t, namespace: namespace.Name, user: "controller-of-" + namespace.Name, client: admin, clock: &jumpingClock{},
		kubelet: apiserver.Kubelet{Client: admin, Node: "node-1"},
	}
	for _, edit := range edits {
		edit(e)
	}
	e.start()
	t.Cleanup(func() { e.stop() })
	return e
}

func disturbedBy(faults *apiserver.Faults) func(*environment) {
	return func(e *environment) { e.faults = faults }
}

func testPlatform() *config.Platform {
	return &config.Platform{
		DefaultTier: "standard",
		Tiers: map[string]config.Tier{
			"standard": {Egress: config.TierEgress{Profile: "public", Allowed: []string{"none"}}},
		},
		EgressProfiles: map[string]config.EgressProfile{"public": {DNS: true, Internet: true}, "none": {}},
		Cluster: config.Cluster{
			CIDRs: []string{"10.244.0.0/16"},
			DNS:   config.Peer{Namespace: "kube-system", PodLabels: map[string]string{"k8s-app": "kube-dns"}},
		},
		Router: config.Router{Namespace: "agent-sandbox-system", PodLabels: map[string]string{"app": "sandbox-router"}},
	}
}

// start runs a controller that sees this namespace only.
func (e *environment) start() {
	e.t.Helper()
	connection := server.As(e.user, apiserver.Controllers)
	if e.faults != nil {
		connection.Wrap(e.faults.Wrap)
	}
	mgr, err := newTestManager(connection, e.namespace)
	if err != nil {
		e.t.Fatal(err)
	}
	e.reconciler = New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("test"), e.clock,
		Settings{Platform: testPlatform(), ClusterDomain: "cluster.local", ConcurrentWorkers: 4})
	ctx, cancel := context.WithCancel(context.Background())
	if err := e.reconciler.SetupWithManager(ctx, mgr); err != nil {
		e.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	e.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			e.t.Errorf("the controller ended with: %v", err)
		}
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		e.t.Fatal("the caches were not filled")
	}
}

func newTestManager(connection *rest.Config, namespace string) (ctrl.Manager, error) {
	scheme, err := apiserver.NewScheme()
	if err != nil {
		return nil, err
	}
	byObject, err := CacheByObject(false)
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(connection, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(), ByObject: byObject,
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
		},
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: controllerconfig.Controller{SkipNameValidation: new(true)},
	})
}

// restart ends the controller and starts another one, which knows nothing.
func (e *environment) restart() {
	e.t.Helper()
	e.stop()
	e.start()
}

// jump moves the controller's clock ahead and lets it look at the Sandbox.
func (e *environment) jump(by time.Duration) {
	e.clock.ahead.Add(int64(by))
	e.reconciler.timers.wake(e.request(boxName), 0)
}

func (e *environment) request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: e.namespace, Name: name}}
}

// here puts an object as a builder made it into this namespace.
func (e *environment) here(object client.Object) {
	object.SetNamespace(e.namespace)
	object.SetUID("")
	object.SetGeneration(0)
}

// create stores objects as the user.
func (e *environment) create(objects ...client.Object) {
	e.t.Helper()
	for _, object := range objects {
		e.here(object)
		if err := e.client.Create(e.t.Context(), object); err != nil {
			e.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// edit changes the Sandbox as the user.
func (e *environment) edit(edits ...func(*agentsv1beta1.Sandbox)) {
	e.t.Helper()
	sandbox := e.sandbox(boxName)
	before := sandbox.DeepCopy()
	for _, edit := range edits {
		edit(sandbox)
	}
	if err := e.client.Patch(e.t.Context(), sandbox, client.MergeFrom(before)); err != nil {
		e.t.Fatalf("edit the Sandbox: %v", err)
	}
}

func (e *environment) delete(object client.Object) {
	e.t.Helper()
	if err := e.client.Delete(e.t.Context(), object); err != nil {
		e.t.Fatalf("delete %T %s: %v", object, object.GetName(), err)
	}
}

// get reads an object that has to be there.
func (e *environment) get(name string, into client.Object) {
	e.t.Helper()
	if err := e.client.Get(e.t.Context(), client.ObjectKey{Namespace: e.namespace, Name: name}, into); err != nil {
		e.t.Fatalf("get %T %s: %v", into, name, err)
	}
}

// exists says whether there is an object of that name.
func (e *environment) exists(name string, like client.Object) bool {
	e.t.Helper()
	err := e.client.Get(e.t.Context(), client.ObjectKey{Namespace: e.namespace, Name: name}, like)
	if err != nil && !apierrors.IsNotFound(err) {
		e.t.Fatalf("get %T %s: %v", like, name, err)
	}
	return err == nil
}

func (e *environment) sandbox(name string) *agentsv1beta1.Sandbox {
	e.t.Helper()
	sandbox := &agentsv1beta1.Sandbox{}
	e.get(name, sandbox)
	return sandbox
}

// eventually waits until the check is content.
func (e *environment) eventually(what string, check func() error) {
	e.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(e.t.Context(), glimpse, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		e.t.Fatalf("gave up waiting until %s: %v", what, last)
	}
}

// gone waits until there is no object of that kind that has the Sandbox's name.
func (e *environment) gone(like client.Object) {
	e.t.Helper()
	e.eventually(fmt.Sprintf("%T %s is gone", like, boxName), func() error {
		if e.exists(boxName, like) {
			return errors.New("it is there")
		}
		return nil
	})
}

// appears waits until there is an object of that name and reads it.
func (e *environment) appears(name string, into client.Object) {
	e.t.Helper()
	e.eventually(fmt.Sprintf("%T %s is there", into, name), func() error {
		if !e.exists(name, into) {
			return fmt.Errorf("there is none; Sandboxes: %s", e.summary())
		}
		return nil
	})
}

// summary lists the Ready conditions of the namespace.
func (e *environment) summary() string {
	var list agentsv1beta1.SandboxList
	if err := e.client.List(context.Background(), &list, client.InNamespace(e.namespace)); err != nil {
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
	e.t.Helper()
	var sandbox *agentsv1beta1.Sandbox
	e.eventually(fmt.Sprintf("%s of %s is as wanted", kind, name), func() error {
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
	e.t.Helper()
	return e.says(name, agentsv1beta1.ConditionReady, want)
}

// runPod waits for the Pod of that name and lets it run.
func (e *environment) runPod(name string) *corev1.Pod {
	e.t.Helper()
	pod := &corev1.Pod{}
	e.appears(name, pod)
	if err := e.kubelet.Run(e.t.Context(), pod); err != nil {
		e.t.Fatal(err)
	}
	return pod
}

// running creates a Sandbox and brings it to Ready.
func (e *environment) running(sandbox *agentsv1beta1.Sandbox) *corev1.Pod {
	e.t.Helper()
	e.create(sandbox)
	pod := e.runPod(sandbox.Name)
	e.eventually("the Sandbox is Ready", func() error {
		if got := e.sandbox(sandbox.Name); !meta.IsStatusConditionTrue(got.Status.Conditions, agentsv1beta1.ConditionReady) {
			return errors.New(sayCondition(got, agentsv1beta1.ConditionReady))
		}
		return nil
	})
	return pod
}

// report changes the status of a Pod as the kubelet does.
func (e *environment) report(pod *corev1.Pod, change func(*corev1.PodStatus)) {
	e.t.Helper()
	e.get(pod.Name, pod)
	if err := e.kubelet.Report(e.t.Context(), pod, change); err != nil {
		e.t.Fatal(err)
	}
}

// release lets a Pod go that is being deleted.
func (e *environment) release(pod *corev1.Pod) {
	e.t.Helper()
	if err := e.kubelet.Remove(e.t.Context(), pod); err != nil {
		e.t.Fatal(err)
	}
}

// writes are those of the controller in this namespace until now.
func (e *environment) writes() apiserver.Counts {
	e.t.Helper()
	if err := server.Audit.Settle(e.t.Context(), server.Config); err != nil {
		e.t.Fatal(err)
	}
	counts, err := server.Audit.Writes(apiserver.Filter{User: e.user, Namespace: e.namespace})
	if err != nil {
		e.t.Fatal(err)
	}
	return counts
}

// idle fails the test if passes over the Sandbox go on writing. What is under way may
// end first.
func (e *environment) idle(name string) {
	e.t.Helper()
	const rounds = 4
	diff := ""
	for range rounds {
		before := e.writes()
		for range 3 {
			if _, err := e.reconciler.Reconcile(e.t.Context(), e.request(name)); err != nil {
				e.t.Logf("a pass over %s ends with: %v", name, err)
			}
		}
		if diff = cmp.Diff(before, e.writes()); diff == "" {
			return
		}
	}
	e.t.Errorf("passes that have nothing to do write (-before +after):\n%s", diff)
}

// untouched fails the test if an object is not what it was.
func (e *environment) untouched(before, now client.Object) {
	e.t.Helper()
	e.get(before.GetName(), now)
	if before.GetUID() != now.GetUID() || before.GetResourceVersion() != now.GetResourceVersion() {
		e.t.Errorf("somebody else's %T %s was touched (-before +after):\n%s", before, before.GetName(), cmp.Diff(before, now))
	}
}
