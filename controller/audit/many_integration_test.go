// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package audit

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/reports"
)

// objectsVariable says how many objects are audited; few by default.
const objectsVariable = "AUDIT_OBJECTS"

// reads counts requests that read something, by what they ask for. Watches are left out:
// an informer has one.
type reads struct {
	next http.RoundTripper

	mu     sync.Mutex
	counts map[string]int
}

func (r *reads) wrap(next http.RoundTripper) http.RoundTripper {
	r.next = next
	return r
}

// RoundTrip counts.
func (r *reads) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusOK && request.Method == http.MethodGet && request.URL.Query().Get("watch") == "" {
		r.mu.Lock()
		r.counts[request.URL.Path]++
		r.mu.Unlock()
	}
	return response, err
}

// total is how many there were.
func (r *reads) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, count := range r.counts {
		n += count
	}
	return n
}

// beyond lists reads that are neither discovery nor the one list that an informer may
// begin with.
func (r *reads) beyond(namespace string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var more []string
	for _, path := range slices.Sorted(maps.Keys(r.counts)) {
		parts := strings.Split(strings.Trim(path, "/"), "/")
		discovers := path == "/version" || parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" && len(parts) <= 3
		if !discovers && r.counts[path] > 1 {
			more = append(more, fmt.Sprintf("%d of %s", r.counts[path], strings.ReplaceAll(path, namespace, "NAMESPACE")))
		}
	}
	return more
}

// An audit reads from the caches that the controllers have anyway, however many objects
// there are, and writes one report a kind. AUDIT_OBJECTS=10000 says what that costs.
func TestAnAuditReadsFromCachesAndWritesAFewReports(t *testing.T) {
	count := 250
	if text := os.Getenv(objectsVariable); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s=%s: give a number of objects: %v", objectsVariable, text, err)
		}
	}
	admin := newEnvironmentClient(t)
	t.Cleanup(reports.Install(t, admin))
	seen := &reads{counts: map[string]int{}}
	e := newEnvironment(t, func(e *environment) {
		e.wrap, e.settings.Interval = seen.wrap, 24*time.Hour
		e.store(count)
	})
	e.audited(count)
	before, used := e.Writes(), allocated()
	listed, begun := seen.total(), clock.RealClock{}.Now()
	e.configure(enforce("Warn")) // everything is judged by other policies
	e.says("host-namespaces", fmt.Sprintf("host-namespaces critical Warn %d", (count/2+9)/10))
	took := clock.RealClock{}.Now().Sub(begun)
	t.Logf("%d objects audited in %s, %s each; %d KB allocated each, %d MB of heap in use after a collection; %d reads of the apiserver to begin with and %d more; writes:\n%s",
		count, took.Round(time.Millisecond), (took / time.Duration(count)).Round(time.Microsecond),
		(allocated()-used)/uint64(count)/1024, inUse()/1024/1024, listed, seen.total()-listed, e.Writes().Since(before))
	if more := seen.beyond(e.Namespace); len(more) > 0 {
		t.Errorf("the apiserver was read for %v, want one list a kind at most", more)
	}
	writes := e.Writes().Since(before)
	if total := writes["patch reports"]; total == 0 || total > 2*len(shards) || len(writes) != 1 {
		t.Errorf("writes of one audit:\n%s\nwant one or two a kind of object", writes)
	}
}

// audited waits until everything was judged once.
func (e *environment) audited(count int) {
	e.Helper()
	e.Eventually(fmt.Sprintf("%d objects are audited", count), func() error {
		if n := e.auditor.reconciler.ledger.size(); n != count {
			return fmt.Errorf("%d are", n)
		}
		if e.auditor.reconciler.lastPass(e.Namespace, e.Clock.Now()).IsZero() {
			return errors.New("the pass is not done")
		}
		return nil
	})
}

// store makes objects: half of them Sandboxes, of which each tenth breaks a rule, and
// the rest claims of a pool.
func (e *environment) store(count int) {
	e.Helper()
	e.Create(makeTemplate(), poolOfTemplate())
	group, ctx := errgroup.WithContext(e.Context())
	group.SetLimit(32)
	for i := range count - 2 {
		group.Go(func() error { return e.Client.Create(ctx, e.some(i, count)) })
	}
	if err := group.Wait(); err != nil {
		e.Fatal(err)
	}
}

func (e *environment) some(i, count int) client.Object {
	if i >= count/2 {
		made := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: fmt.Sprintf("claim-%d", i)}}
		made.Spec.WarmPoolRef.Name = "pool"
		return made
	}
	made := makeSandbox(fmt.Sprintf("sandbox-%d", i), func(pod *corev1.PodSpec) {
		pod.HostNetwork = i%10 == 0
		for name := range 3 {
			pod.Containers = append(pod.Containers, corev1.Container{
				Name: fmt.Sprintf("side-%d", name), Image: "registry.example.com/side:1.2",
				Env:       []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "C", Value: "d"}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
			})
		}
	})
	made.Namespace = e.Namespace
	return made
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

func inUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
