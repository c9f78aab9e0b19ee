// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	namespace = "team-a"
	user      = "controller"
	// patience bounds a hang.
	patience = 10 * time.Minute
	glimpse  = 100 * time.Millisecond
	// clients create Sandboxes at once, each one after the other.
	clients = 8
)

const platform = `
defaultTier: standard
tiers:
  standard:
    podSecurity: {deny: baseline, warn: restricted, version: v1.37}
    runtimeClass: {}
    egress: {profile: public}
    creates: [Sandbox, SandboxClaim]
egressProfiles:
  public: {dns: true, internet: true}
cluster:
  cidrs: [10.244.0.0/16]
  dns: {namespace: kube-system, podLabels: {k8s-app: kube-dns}}
router: {namespace: agent-sandbox-system, podLabels: {app: sandbox-router}}
`

// figures are what a load cost.
type figures struct {
	writes apiserver.Counts
	// heapBefore and heapAfter are bytes in use, after a collection.
	heapBefore, heapAfter int
}

// A hundred Sandboxes in every run, so that the budget is held between benchmarks.
func TestAHundredSandboxesKeepTheBudget(t *testing.T) {
	got := load(t, 100)
	t.Logf("heap %d bytes a Sandbox; writes:\n%s", (got.heapAfter-got.heapBefore)/100, got.writes)
}

// A thousand Sandboxes on fake nodes: run with -benchtime=1x.
func BenchmarkThousandSandboxes(b *testing.B) {
	const count = 1000
	for b.Loop() {
		got := load(b, count)
		b.ReportMetric(float64(got.writes.Total())/count, "writes/sandbox")
		b.ReportMetric(float64(got.heapAfter)/count, "heap-B/sandbox")
		b.ReportMetric(float64(got.heapAfter-got.heapBefore)/count, "heap-growth-B/sandbox")
	}
}

// load brings so many Sandboxes to Ready and holds their cost to the budget.
func load(tb testing.TB, count int) figures {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	server, err := apiserver.Start(ctx, apiserver.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { check(tb, server.Stop()) }()
	admin, err := apiserver.NewClient(server.Config)
	check(tb, err)
	check(tb, admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	controller, debug := startController(ctx, tb, server)
	defer func() { check(tb, controller.Stop()) }()

	played, stopPlaying := context.WithCancel(ctx)
	var kubelet errgroup.Group
	kubelet.Go(func() error { return apiserver.Kubelet{Client: admin, Node: "node-1"}.Serve(played, namespace) })
	got := figures{heapBefore: heap(ctx, tb, debug)}
	check(tb, create(ctx, admin, count))
	awaitReady(ctx, tb, admin, controller, count)
	got.heapAfter = heap(ctx, tb, debug)
	stopPlaying()
	check(tb, kubelet.Wait())

	check(tb, server.Audit.Settle(ctx, server.Config))
	got.writes, err = server.Audit.Writes(apiserver.Filter{User: user})
	check(tb, err)
	holdToBudget(tb, got.writes, count)
	return got
}

// holdToBudget: POST Pod and one status write; where the Pod took longer than a second,
// on a busy machine, the status may show it as pending and as scheduled before. The
// policies are the namespace's.
func holdToBudget(tb testing.TB, writes apiserver.Counts, count int) {
	tb.Helper()
	status := writes["patch sandboxes/status"]
	want := apiserver.Counts{"create pods": count, "create networkpolicies": 2, "patch sandboxes/status": status}
	if writes.Total() != want.Total() || writes["create pods"] != count || status < count || status > 3*count {
		tb.Errorf("writes for %d Sandboxes are over budget:\n%s", count, writes)
	}
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// startController builds the controller as it is shipped and runs it. It returns the
// address of its profiles.
func startController(ctx context.Context, tb testing.TB, server *apiserver.Server) (controller *apiserver.Daemon, debug string) {
	tb.Helper()
	root, err := apiserver.Root()
	check(tb, err)
	dir := tb.TempDir()
	binary, config := filepath.Join(dir, "agent-sandbox-controller"), filepath.Join(dir, "platform.yaml")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/agent-sandbox-controller")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build the controller: %v\n%s", err, out)
	}
	check(tb, os.WriteFile(config, []byte(platform), 0o600))
	kubeconfig, err := server.Kubeconfig(user, apiserver.Controllers)
	check(tb, err)
	ports, err := apiserver.FreePorts(ctx, 1)
	check(tb, err)
	debug = "127.0.0.1:" + ports[0]
	controller, err = apiserver.Launch("the controller", binary, filepath.Join(dir, "log"),
		"--kubeconfig="+kubeconfig, "--config="+config, "--leader-elect=false",
		"--metrics-bind-address="+debug, "--health-probe-bind-address=0", "--enable-pprof-debug")
	check(tb, err)
	await(ctx, tb, "the controller serves its profiles", controller, func(ctx context.Context) error {
		_, err := readHeap(ctx, debug)
		return err
	})
	return controller, debug
}

func await(ctx context.Context, tb testing.TB, what string, controller *apiserver.Daemon, done func(context.Context) error) {
	tb.Helper()
	var last error
	err := wait.PollUntilContextTimeout(ctx, glimpse, patience, true, func(ctx context.Context) (bool, error) {
		if err := controller.Failure(); err != nil {
			return false, err
		}
		last = done(ctx)
		return last == nil, nil
	})
	if err != nil {
		tb.Fatalf("gave up waiting until %s: %v: %v", what, err, last)
	}
}

// heap is how many bytes the controller uses after a collection.
func heap(ctx context.Context, tb testing.TB, debug string) int {
	tb.Helper()
	bytes, err := readHeap(ctx, debug)
	check(tb, err)
	return bytes
}

func readHeap(ctx context.Context, debug string) (int, error) {
	const mark = "# HeapAlloc = "
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+debug+"/debug/pprof/heap?gc=1&debug=1", http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	var seen bytes.Buffer
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), mark); found {
			return strconv.Atoi(value)
		}
		seen.Write(lines.Bytes())
	}
	return 0, errors.Join(lines.Err(), fmt.Errorf("the profile does not say %q: %.200s", mark, seen.String()))
}

func makeSandbox(name string) *agentsv1beta1.Sandbox {
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{keys.PodName: name}, // as admission sets it
	}}
	sandbox.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
	return sandbox
}

func create(ctx context.Context, admin client.Client, count int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(clients)
	for i := range count {
		group.Go(func() error { return createAndWait(ctx, admin, makeSandbox(fmt.Sprintf("box-%d", i))) })
	}
	return group.Wait()
}

// createAndWait is one client: the next Sandbox comes when this one is Ready, so that
// the load is one that the apiserver and the played kubelet can follow.
func createAndWait(ctx context.Context, admin client.Client, sandbox *agentsv1beta1.Sandbox) error {
	if err := admin.Create(ctx, sandbox); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, glimpse, patience, false, func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(sandbox), sandbox)
		return meta.IsStatusConditionTrue(sandbox.Status.Conditions, agentsv1beta1.ConditionReady), err
	})
}

func awaitReady(ctx context.Context, tb testing.TB, admin client.Client, controller *apiserver.Daemon, count int) {
	tb.Helper()
	await(ctx, tb, "all Sandboxes are Ready", controller, func(ctx context.Context) error {
		var list agentsv1beta1.SandboxList
		if err := admin.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, agentsv1beta1.ConditionReady) {
				ready++
			}
		}
		if ready != count {
			return fmt.Errorf("%d of %d are", ready, count)
		}
		return nil
	})
}
