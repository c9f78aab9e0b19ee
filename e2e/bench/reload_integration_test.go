// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// versioned is a ConfigMap with a rule that tells its version of every Sandbox.
func versioned(version int) *corev1.ConfigMap {
	rule := fmt.Sprintf(`# METADATA
# title: Version
# description: Tells which version of it judges.
# custom:
#   id: version
#   severity: low
#   enforcement: Warn
#   remediation: None.
#   kinds: [Sandbox]
package policies.test.version

warn contains "version %d" if input.kind == "Sandbox"
`, version)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: releaseNamespace, Name: "version", Labels: map[string]string{keys.PolicySource: "true"}},
		Data:       map[string]string{"version.rego": rule},
	}
}

// second starts another replica, and has the apiserver ask it too whatever it asks the first one to validate.
func (w *hook) second(ctx context.Context) {
	w.Helper()
	ports, err := apiserver.FreePorts(ctx, 3)
	check(w, err)
	probes := "127.0.0.1:" + ports[2]
	metrics := "127.0.0.1:" + ports[1]
	daemon := w.launch(ports[0], metrics, probes)
	w.others = append(w.others, metrics)
	w.await(ctx, "the second replica is ready", func(ctx context.Context) error {
		if err := daemon.Failure(); err != nil {
			return err
		}
		response, err := fetch(ctx, "http://"+probes+"/readyz")
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	port, err := strconv.ParseInt(ports[0], 10, 32)
	check(w, err)
	first := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	check(w, w.admin.Get(ctx, client.ObjectKey{Name: validating}, first))
	another := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "second"}, Webhooks: first.Webhooks}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: releaseNamespace, Name: "second"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1", Ports: []corev1.ServicePort{{Port: int32(port)}}},
	}
	for i := range another.Webhooks {
		at := int32(port)
		another.Webhooks[i].ClientConfig.Service.Port = &at
	}
	check(w, w.admin.Create(ctx, service))
	check(w, w.admin.Create(ctx, another))
}

// heard collects the warnings of one request.
type heard struct {
	mu    sync.Mutex
	texts []string
}

type heardKey struct{}

// HandleWarningHeaderWithContext notes a warning with the request that it answers.
func (*heard) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if h, ok := ctx.Value(heardKey{}).(*heard); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.texts = append(h.texts, text)
	}
}

// versions are those that judged one request: of all replicas.
func (*hook) versions(ctx context.Context, asking client.Client) ([]int, error) {
	h := &heard{}
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: judged, Name: "paced"}}
	sandbox.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
	if err := asking.Create(context.WithValue(ctx, heardKey{}, h), sandbox, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("a request during a reload: %w", err)
	}
	var versions []int
	for _, text := range h.texts {
		if _, said, ok := strings.Cut(text, "version: version "); ok {
			number, _, _ := strings.Cut(said, ".")
			version, err := strconv.Atoi(number)
			if err != nil {
				return nil, fmt.Errorf("read the warning %q: %w", text, err)
			}
			versions = append(versions, version)
		}
	}
	slices.Sort(versions)
	return slices.Compact(versions), nil
}

// digest is that of the policies of all replicas, once they agree.
func (w *hook) digest(ctx context.Context) string {
	w.Helper()
	var digest string
	w.await(ctx, "all replicas have the same policies", func(ctx context.Context) error {
		digests := map[string]bool{}
		for _, address := range append([]string{w.metrics}, w.others...) {
			families, err := familiesAt(ctx, address)
			if err != nil {
				return err
			}
			for _, metric := range families["agent_sandbox_policy_info"].GetMetric() {
				digest = labelOf(metric, "digest")
				digests[digest] = true
			}
		}
		if len(digests) != 1 {
			return fmt.Errorf("digests %v", slices.Collect(maps.Keys(digests)))
		}
		return nil
	})
	return digest
}

// change is a rule that changes while several clients ask.
type change struct {
	asking  client.Client
	version int
	// most is how many requests may be judged by the old rule, old how many were.
	most, old int64
}

// follow asks at a pace until the new rule judges everywhere, and a few times more.
func (c *change) follow(ctx context.Context, w *hook, ticks <-chan time.Time) error {
	for current := 0; current < 5; {
		<-ticks
		got, err := w.versions(ctx, c.asking)
		switch {
		case err != nil:
			return err
		case slices.Equal(got, []int{c.version}):
			current++
			continue
		case current > 0:
			return fmt.Errorf("versions %v judge after all replicas judged by %d", got, c.version)
		case slices.ContainsFunc(got, func(v int) bool { return v != c.version && v != c.version-1 }), len(got) == 0:
			return fmt.Errorf("versions %v judge while %d follows %d", got, c.version, c.version-1)
		}
		if old := atomic.AddInt64(&c.old, 1); old > c.most {
			return fmt.Errorf("%d requests after the change are judged by the old rule", old)
		}
	}
	return nil
}

// While requests of several clients come at a pace of 50 a second in all, a rule changes: none fails, each replica judges
// by the old rule and then by the new one and never turns back, and each version is one digest, the same of all replicas.
// Of the requests that come after the change was taken, no more than those of a second are judged by the old rule anywhere,
// in the best of three changes, or of ten where that machine has too much else to do: both replicas compile on it. Ten
// times that is never passed.
func TestAChangedRuleIsInForceEverywhereAfterFewRequests(t *testing.T) {
	const pace, changes, most, clients = 20 * time.Millisecond, 3, 10, 3
	const second = int64(time.Second / pace)
	ctx := t.Context()
	w := newWebhook(t)
	w.second(ctx)
	config := rest.CopyConfig(w.server.Config)
	config.WarningHandlerWithContext = &heard{}
	asking, err := apiserver.NewClient(config)
	check(t, err)
	check(t, w.admin.Create(ctx, versioned(0)))
	w.await(ctx, "both replicas know the rule", func(ctx context.Context) error {
		got, err := w.versions(ctx, asking)
		if err == nil && !slices.Equal(got, []int{0}) {
			err = fmt.Errorf("versions %v", got)
		}
		return err
	})
	digests := map[string]int{w.digest(ctx): 0}
	watch, best := clock.RealClock{}, most*second
	for version := 1; version <= changes || version <= most && best > second; version++ {
		check(t, w.admin.Update(ctx, versioned(version)))
		taken, c := watch.Now(), &change{asking: asking, version: version, most: most * second}
		group, ctx := errgroup.WithContext(ctx)
		for range clients {
			group.Go(func() error {
				ticker := watch.NewTicker(clients * pace)
				defer ticker.Stop()
				return c.follow(ctx, w, ticker.C())
			})
		}
		check(t, group.Wait())
		t.Logf("version %d is in force everywhere after %d requests, and %s with those that show it", version, c.old, watch.Since(taken).Round(time.Millisecond))
		best = min(best, c.old)
		digest := w.digest(t.Context())
		if earlier, known := digests[digest]; known {
			t.Errorf("version %d has digest %s, which is that of version %d", version, digest, earlier)
		}
		digests[digest] = version
	}
	if best > second {
		t.Errorf("at least %d requests after each change are judged by the old rule, want at most %d in the best of %d", best, second, most)
	}
}
