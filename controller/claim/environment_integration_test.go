// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	// hang bounds a hang; no verdict depends on it.
	hang    = time.Minute
	glimpse = 25 * time.Millisecond
)

// server is the apiserver of all tests of this package; TestMain starts it.
var server *apiserver.Server

func TestMain(m *testing.M) {
	logger := zap.New(zap.WriteTo(logTo()))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// logTo is the file that CLAIM_LOG names. What goes wrong is in the statuses otherwise.
func logTo() io.Writer {
	if path := os.Getenv("CLAIM_LOG"); path != "" {
		if file, err := os.Create(path); err == nil {
			return file
		}
	}
	return io.Discard
}

func runTests(m *testing.M) (code int, err error) {
	server, err = apiserver.Start(context.Background(), apiserver.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return m.Run(), nil
}

// jumpingClock runs with the machine's clock, ahead of it by all jumps.
type jumpingClock struct {
	clock.RealClock
	ahead atomic.Int64
}

func (c *jumpingClock) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.ahead.Load())) }

// environment is a namespace with a controller of its own. The test plays pools,
// Sandbox controller and kubelet.
type environment struct {
	t         *testing.T
	namespace string
	// node is the healthy node of the namespace's Pods.
	node string
	// user is who the controller is to the apiserver.
	user    string
	client  client.WithWatch
	clock   *jumpingClock
	faults  *apiserver.Faults
	lag     *lag
	setting Settings

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
		t: t, namespace: namespace.Name, node: "node-of-" + namespace.Name, user: "controller-of-" + namespace.Name,
		client: admin, clock: &jumpingClock{},
		setting: Settings{
			Platform: testPlatform(), ConcurrentWorkers: 8, ColdStartAfter: 2 * time.Second,
		},
	}
	for _, edit := range edits {
		edit(e)
	}
	e.makeNode(e.node)
	e.start()
	return e
}

func testPlatform() *config.Platform {
	return &config.Platform{
		DefaultTier:    "standard",
		Tiers:          map[string]config.Tier{"standard": {Egress: config.TierEgress{Profile: "public"}}},
		EgressProfiles: map[string]config.EgressProfile{"public": {DNS: true, Internet: true}},
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
	e.reconciler, e.stop = e.launch()
}

// launch starts a controller that works once no other of the namespace does.
func (e *environment) launch() (*Reconciler, func()) {
	e.t.Helper()
	connection := server.As(e.user, apiserver.Controllers)
	connection.QPS, connection.ContentType = -1, runtime.ContentTypeJSON // lag tells events apart by their lines
	if e.faults != nil {
		connection.Wrap(e.faults.Wrap)
	}
	if e.lag != nil {
		connection.Wrap(e.lag.wrap)
	}
	mgr, err := newTestManager(connection, e.namespace)
	if err != nil {
		e.t.Fatal(err)
	}
	reconciler := New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("test"), e.clock, e.setting)
	ctx, cancel := context.WithCancel(context.Background())
	if err := reconciler.SetupWithManager(ctx, mgr); err != nil {
		e.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			e.t.Errorf("the controller ended with: %v", err)
		}
	})
	e.t.Cleanup(stop)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		e.t.Fatal("the caches were not filled")
	}
	return reconciler, stop
}

func newTestManager(connection *rest.Config, namespace string) (ctrl.Manager, error) {
	scheme, err := apiserver.NewScheme()
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(connection, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(), DefaultNamespaces: map[string]cache.Config{namespace: {}},
			ByObject: CacheByObject(),
		},
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: controllerconfig.Controller{SkipNameValidation: new(true)},

		LeaderElection: true, LeaderElectionID: "claims", LeaderElectionNamespace: namespace,
		LeaderElectionConfig: server.Config, LeaderElectionReleaseOnCancel: true, RetryPeriod: new(200 * time.Millisecond),
	})
}

// restart ends the controller and starts another one, which knows nothing.
func (e *environment) restart() {
	e.t.Helper()
	e.stop()
	e.start()
}

// standBy starts another controller, whose caches fill while the first one works.
func (e *environment) standBy() (takeOver func()) {
	e.t.Helper()
	reconciler, stop := e.launch()
	return func() {
		e.stop()
		e.reconciler, e.stop = reconciler, stop
	}
}

// jump moves the controller's clock ahead and lets it look at the claim.
func (e *environment) jump(claim string, by time.Duration) {
	e.clock.ahead.Add(int64(by))
	e.reconciler.wakeups.now(client.ObjectKey{Namespace: e.namespace, Name: claim})
}

func (e *environment) makeNode(name string) {
	e.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	status := node.Status
	if err := e.client.Create(e.t.Context(), node); err != nil {
		e.t.Fatal(err)
	}
	node.Spec.Taints = nil // admission marks a new node as not ready
	if err := e.client.Update(e.t.Context(), node); err != nil {
		e.t.Fatal(err)
	}
	node.Status = status
	if err := e.client.Status().Update(e.t.Context(), node); err != nil {
		e.t.Fatal(err)
	}
}

// create stores objects as the user.
func (e *environment) create(objects ...client.Object) {
	e.t.Helper()
	for _, object := range objects {
		object.SetNamespace(e.namespace)
		object.SetUID("")
		object.SetGeneration(0)
		object.SetCreationTimestamp(metav1.Time{})
		if err := e.client.Create(e.t.Context(), object); err != nil {
			e.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// pool makes a template and a pool of that name and returns both.
func (e *environment) pool(edits ...func(*extensionsv1beta1.SandboxTemplate, *extensionsv1beta1.SandboxWarmPool)) *stock {
	e.t.Helper()
	template, pool := makeTemplate(), makePool()
	for _, edit := range edits {
		edit(template, pool)
	}
	e.create(template, pool)
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
	s.e.t.Helper()
	sandbox, err := s.e.newMember(s.e.t.Context(), s, name, edits...)
	if err != nil {
		s.e.t.Fatal(err)
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
	sandbox.Namespace = e.namespace
	sandbox.Status = readyStatus()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name}, Spec: *sandbox.Spec.PodTemplate.Spec.DeepCopy()}
	pod.Spec.NodeName = e.node
	apiserver.Running(&pod.Status)
	for _, edit := range edits {
		edit(sandbox, pod)
	}
	status, podStatus := sandbox.Status, pod.Status
	if err := e.client.Create(ctx, sandbox); err != nil {
		return nil, err
	}
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(sandbox, agentsv1beta1.GroupVersion.WithKind(agentsv1beta1.SandboxKind)),
	}
	if err := e.client.Create(ctx, pod); err != nil {
		return nil, err
	}
	pod.Status, sandbox.Status = podStatus, status
	return sandbox, errors.Join(e.client.Status().Update(ctx, pod), e.client.Status().Update(ctx, sandbox))
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

// report writes the status of a Sandbox as its controller would.
func (e *environment) report(name string, change func(*agentsv1beta1.SandboxStatus)) {
	e.t.Helper()
	sandbox := &agentsv1beta1.Sandbox{}
	e.get(name, sandbox)
	before := sandbox.DeepCopy()
	change(&sandbox.Status)
	if err := e.client.Status().Patch(e.t.Context(), sandbox, client.MergeFrom(before)); err != nil {
		e.t.Fatal(err)
	}
}

// edit changes a claim as the user.
func (e *environment) edit(name string, change func(*extensionsv1beta1.SandboxClaim)) {
	e.t.Helper()
	claim := e.claim(name)
	before := claim.DeepCopy()
	change(claim)
	if err := e.client.Patch(e.t.Context(), claim, client.MergeFrom(before)); err != nil {
		e.t.Fatal(err)
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

func (e *environment) claim(name string) *extensionsv1beta1.SandboxClaim {
	e.t.Helper()
	claim := &extensionsv1beta1.SandboxClaim{}
	e.get(name, claim)
	return claim
}

// eventually waits until the check is content.
func (e *environment) eventually(what string, check func() error) {
	e.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(e.t.Context(), glimpse, hang, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		e.t.Fatalf("gave up waiting until %s: %v", what, last)
	}
}

// gone waits until there is no object of that name.
func (e *environment) gone(name string, like client.Object) {
	e.t.Helper()
	e.eventually(fmt.Sprintf("%T %s is gone", like, name), func() error {
		if e.exists(name, like) {
			return errors.New("it is there")
		}
		return nil
	})
}

// says waits until the Ready condition of the claim "claim" is what is wanted, for its
// newest generation, and returns the claim.
func (e *environment) says(want string) *extensionsv1beta1.SandboxClaim {
	e.t.Helper()
	var claim *extensionsv1beta1.SandboxClaim
	e.eventually("the claim says what is wanted", func() error {
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

// sandboxes lists those of the namespace.
func (e *environment) sandboxes() []agentsv1beta1.Sandbox {
	e.t.Helper()
	var list agentsv1beta1.SandboxList
	if err := e.client.List(e.t.Context(), &list, client.InNamespace(e.namespace)); err != nil {
		e.t.Fatal(err)
	}
	return list.Items
}
