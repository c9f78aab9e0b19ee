// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

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
	daemon := w.launch(ports[0], "127.0.0.1:"+ports[1], probes)
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
func (w *hook) versions(ctx context.Context, asking client.Client) []int {
	w.Helper()
	h := &heard{}
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: judged, Name: "paced"}}
	sandbox.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
	if err := asking.Create(context.WithValue(ctx, heardKey{}, h), sandbox, client.DryRunAll); err != nil {
		w.Errorf("a request during a reload: %v", err)
	}
	var versions []int
	for _, text := range h.texts {
		if _, said, ok := strings.Cut(text, "version: version "); ok {
			number, _, _ := strings.Cut(said, ".")
			version, err := strconv.Atoi(number)
			check(w, err)
			versions = append(versions, version)
		}
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

// While requests come at a pace of 50 a second, a rule changes: none fails, each replica judges by the old rule and
// then by the new one and never turns back, and of the requests that come after the change was taken, no more than
// those of a second for each replica are judged by the old rule anywhere: both compile on the machine of the test.
func TestAChangedRuleIsInForceEverywhereAfterFewRequests(t *testing.T) {
	const pace, changes, replicas = 20 * time.Millisecond, 3, 2
	const most = replicas * int(time.Second/pace)
	ctx := t.Context()
	w := newWebhook(t)
	w.second(ctx)
	config := rest.CopyConfig(w.server.Config)
	config.WarningHandlerWithContext = &heard{}
	asking, err := apiserver.NewClient(config)
	check(t, err)
	check(t, w.admin.Create(ctx, versioned(0)))
	w.await(ctx, "both replicas know the rule", func(ctx context.Context) error {
		if got := w.versions(ctx, asking); !slices.Equal(got, []int{0}) {
			return fmt.Errorf("versions %v", got)
		}
		return nil
	})
	watch := clock.RealClock{}
	ticker := watch.NewTicker(pace)
	defer ticker.Stop()
	for version := 1; version <= changes; version++ {
		check(t, w.admin.Update(ctx, versioned(version)))
		taken, old, current := watch.Now(), 0, 0
		for current < 5 {
			<-ticker.C()
			got := w.versions(ctx, asking)
			switch {
			case slices.Equal(got, []int{version}):
				current++
				continue
			case current > 0:
				t.Fatalf("versions %v judge after all replicas judged by %d", got, version)
			case slices.ContainsFunc(got, func(v int) bool { return v != version && v != version-1 }), len(got) == 0:
				t.Fatalf("versions %v judge while %d follows %d", got, version, version-1)
			}
			if old++; old > most {
				t.Fatalf("%d requests after the change are judged by the old rule", old)
			}
		}
		t.Logf("version %d is in force everywhere after %d requests, and %s with those that show it", version, old, watch.Since(taken).Round(time.Millisecond))
	}
}
