// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package warmpool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
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
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/sandbox"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/template"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	// patience bounds a hang; no verdict depends on it.
	patience = 2 * time.Minute
	glimpse  = 25 * time.Millisecond
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
	server, err = apiserver.Start(context.Background(), apiserver.Options{NoFsync: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return m.Run(), nil
}

// environment is a namespace with controllers of its own.
type environment struct {
	t         *testing.T
	namespace string
	user      string
	// client is the test's own, of an administrator.
	client client.WithWatch
	// wrap are disturbances of the pool controller's connection.
	wrap     []func(*rest.Config)
	settings Settings
	// lag delays what the pool controller sees, once its caches are filled.
	lag *apiserver.Lag

	stop func()
}

func newEnvironment(t *testing.T, edits ...func(*environment)) *environment {
	t.Helper()
	admin, err := apiserver.NewClient(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "pool-"}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	e := &environment{
		t: t, namespace: namespace.Name, user: "controller-of-" + namespace.Name, client: admin,
		settings: Settings{
			Platform: testPlatform(), ConcurrentWorkers: 1, Refill: Refill{MaxBatch: 300},
			ReadinessGrace: 5 * time.Minute, UnschedulableRecheck: time.Minute, SafeToEvict: true,
		},
	}
	for _, change := range edits {
		change(e)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- apiserver.Kubelet{Client: admin, Node: "node-1"}.Serve(ctx, e.namespace)
	}()
	t.Cleanup(e.run(server.As(e.user, apiserver.Controllers), setUpOthers))
	e.start()
	t.Cleanup(func() {
		e.stop()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the kubelet ended with: %v", err)
		}
	})
	return e
}

func disturbedBy(faults *apiserver.Faults) func(*environment) {
	return func(e *environment) { e.wrap = append(e.wrap, func(c *rest.Config) { c.Wrap(faults.Wrap) }) }
}

// lagging lets the pool controller see everything late. Delays count in lines, which
// only JSON has.
func lagging(lag *apiserver.Lag) func(*environment) {
	return func(e *environment) {
		e.lag = lag
		e.wrap = append(e.wrap, func(c *rest.Config) {
			c.ContentType, c.AcceptContentTypes = "application/json", "application/json"
			c.Wrap(lag.Wrap)
		})
	}
}

func testPlatform() *config.Platform {
	return &config.Platform{
		DefaultTier: "standard",
		Tiers: map[string]config.Tier{
			"standard": {Egress: config.TierEgress{Profile: "public", Allowed: []string{"none"}}},
		},
		EgressProfiles: map[string]config.EgressProfile{"public": {DNS: true, Internet: true}, "none": {}},
		Cluster:        config.Cluster{DNS: config.Peer{Namespace: "kube-system", PodLabels: map[string]string{"k8s-app": "kube-dns"}}},
		Router:         config.Router{Namespace: "agent-sandbox-system", PodLabels: map[string]string{"app": "sandbox-router"}},
	}
}

// start runs the pool controller.
func (e *environment) start() {
	e.t.Helper()
	connection := server.As(e.user, apiserver.Controllers)
	for _, wrap := range e.wrap {
		wrap(connection)
	}
	e.stop = e.run(connection, func(ctx context.Context, mgr ctrl.Manager) error {
		reconciler := New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("test"), clock.RealClock{}, e.settings)
		return reconciler.SetupWithManager(ctx, mgr)
	})
	if e.lag != nil {
		e.lag.Begin()
	}
}

func setUpOthers(ctx context.Context, mgr ctrl.Manager) error {
	pods := sandbox.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("test"), clock.RealClock{},
		sandbox.Settings{Platform: testPlatform(), ClusterDomain: "cluster.local", ConcurrentWorkers: 10})
	templates := template.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("test"), clock.RealClock{},
		template.Settings{Platform: testPlatform(), ConcurrentWorkers: 1})
	return errors.Join(pods.SetupWithManager(ctx, mgr), templates.SetupWithManager(ctx, mgr))
}

// run starts controllers and returns what ends them.
func (e *environment) run(connection *rest.Config, setUp func(context.Context, ctrl.Manager) error) func() {
	e.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var mgr ctrl.Manager
	e.eventually("the controllers are set up", func() (err error) {
		if mgr, err = newTestManager(connection, e.namespace); err != nil {
			return err // a disturbed connection
		}
		return setUp(ctx, mgr)
	})
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	<-mgr.Elected() // a cache that has not started waits for nothing
	for _, kind := range []client.Object{
		&agentsv1beta1.Sandbox{}, &extensionsv1beta1.SandboxWarmPool{}, &extensionsv1beta1.SandboxTemplate{}, &corev1.Namespace{},
	} {
		if _, err := mgr.GetCache().GetInformer(ctx, kind); err != nil { // waits until it is filled
			e.t.Fatal(err)
		}
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			e.t.Errorf("a controller ended with: %v", err)
		}
	}
}

func newTestManager(connection *rest.Config, namespace string) (ctrl.Manager, error) {
	scheme, err := apiserver.NewScheme()
	if err != nil {
		return nil, err
	}
	byObject, err := sandbox.CacheByObject(false)
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(connection, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(), ByObject: byObject,
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
		},
		Client:                  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		GracefulShutdownTimeout: new(10 * time.Second),
		Controller:              controllerconfig.Controller{SkipNameValidation: new(true)},
	})
}

// restart ends the pool controller and starts another one, which knows nothing.
func (e *environment) restart() {
	e.t.Helper()
	if e.lag != nil {
		e.lag.Stop()
	}
	e.stop()
	e.start()
}

func (e *environment) create(objects ...client.Object) {
	e.t.Helper()
	for _, object := range objects {
		object.SetNamespace(e.namespace)
		object.SetUID("")
		object.SetGeneration(0)
		if err := e.client.Create(e.t.Context(), object); err != nil {
			e.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// change changes an object as the user.
func change[T client.Object](e *environment, object T, edit func(T)) T {
	e.t.Helper()
	e.get(object)
	before := object.DeepCopyObject().(client.Object)
	edit(object)
	if err := e.client.Patch(e.t.Context(), object, client.MergeFrom(before)); err != nil {
		e.t.Fatalf("change %T %s: %v", object, object.GetName(), err)
	}
	return object
}

func (e *environment) get(object client.Object) {
	e.t.Helper()
	if err := e.client.Get(e.t.Context(), client.ObjectKey{Namespace: e.namespace, Name: object.GetName()}, object); err != nil {
		e.t.Fatalf("get %T %s: %v", object, object.GetName(), err)
	}
}

// members are the Sandboxes that the pool controls and that are not being deleted.
func (e *environment) members() []agentsv1beta1.Sandbox {
	e.t.Helper()
	var list agentsv1beta1.SandboxList
	if err := e.client.List(e.t.Context(), &list, client.InNamespace(e.namespace)); err != nil {
		e.t.Fatal(err)
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
	e.t.Helper()
	pool := makePool(0)
	e.get(pool)
	return pool
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

// settled waits until the pool has so many Ready members and its status says so.
func (e *environment) settled(want int32) {
	e.t.Helper()
	e.eventually(fmt.Sprintf("the pool has %d Ready members", want), func() error {
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
	e.t.Helper()
	var found *metav1.Condition
	e.eventually("Progressing is "+reason, func() error {
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
	e.t.Helper()
	var note string
	e.eventually("there is an Event "+reason, func() error {
		var list eventsv1.EventList
		if err := e.client.List(e.t.Context(), &list, client.InNamespace(e.namespace)); err != nil {
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
