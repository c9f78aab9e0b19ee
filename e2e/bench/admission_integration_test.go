// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

const (
	// judged and exempt are namespaces whose Sandboxes go through the webhooks, and do not.
	judged, exempt = "judged", "exempt"
	// atMost is the time within which 99 of 100 requests are to be answered by the webhook.
	atMost = 5 * time.Millisecond
)

// A create that is judged is hardened, asked about twice and no more often, and one that
// is exempt is neither: what the benchmark compares is what it says.
func TestWhatIsAddedToACreateIsMutateAndValidate(t *testing.T) {
	const count = 50
	hook := newWebhook(t)
	times := hook.createBoth(t.Context(), count)
	for _, name := range []string{judged, exempt} {
		if got := len(times[name]); got != count {
			t.Errorf("%d creates in namespace %s were timed, want %d", got, name, count)
		}
		var list agentsv1beta1.SandboxList
		check(t, hook.admin.List(t.Context(), &list, inNamespace(name)))
		hardened := 0
		for i := range list.Items {
			if list.Items[i].Annotations[keys.Defaulted] != "" {
				hardened++
			}
		}
		want := map[string]int{judged: count, exempt: 0}[name]
		if hardened != want || len(list.Items) != count {
			t.Errorf("%d of %d Sandboxes in namespace %s are hardened, want %d of %d", hardened, len(list.Items), name, want, count)
		}
	}
	asked := hook.histograms(t.Context())
	for _, path := range []string{"mutate", "validate"} {
		if got := asked[path].count; got != count {
			t.Errorf("%s was asked %d times, want %d", path, got, count)
		}
	}
}

// What mutate and validate add to a create, with every rule of the library on, as a
// table: creates that are judged and creates that are not take turns on one apiserver.
func BenchmarkAdmissionOfACreate(b *testing.B) {
	const count = 1000
	hook := newWebhook(b)
	for b.Loop() {
		hook.createBoth(b.Context(), count/10) // connections, caches
		before := hook.histograms(b.Context())
		times := hook.createBoth(b.Context(), count)
		own := hook.histograms(b.Context())
		for path := range own {
			own[path] = own[path].since(before[path])
		}
		b.ReportMetric(milliseconds(added(times, 50)), "added-p50-ms")
		b.ReportMetric(milliseconds(added(times, 99)), "added-p99-ms")
		both := own["mutate"].plus(own["validate"])
		publish(b, "admission", fmt.Sprintf("%s: %d rules, %d creates of each kind, one after the other.\n\n%s\n"+
			"%.1f %% of the webhook's answers took it at most %s; the 99th of 100 took it %.1f ms.\n",
			machine(b), hook.rules, count, admissionTable(times, own), 100*both.within(atMost), atMost, milliseconds(both.quantile(0.99))))
	}
}

// added is by how much a percentile of the judged creates is above that of the others.
func added(times map[string][]time.Duration, percent int) time.Duration {
	return percentile(times[judged], percent) - percentile(times[exempt], percent)
}

func percentile(times []time.Duration, percent int) time.Duration {
	return (&Result{Latencies: times}).Percentile(percent)
}

// admissionTable shows the times of the client, and those that the webhook counted of
// itself, in Markdown.
func admissionTable(times map[string][]time.Duration, own map[string]histogram) string {
	var out strings.Builder
	out.WriteString("| | p50 ms | p99 ms |\n|---|---|---|\n")
	row := func(what string, p50, p99 time.Duration) {
		fmt.Fprintf(&out, "| %s | %.1f | %.1f |\n", what, milliseconds(p50), milliseconds(p99))
	}
	row("a create without webhooks", percentile(times[exempt], 50), percentile(times[exempt], 99))
	row("the same with them", percentile(times[judged], 50), percentile(times[judged], 99))
	row("added by mutate and validate", added(times, 50), added(times, 99))
	for _, path := range []string{"mutate", "validate"} {
		row(path+" by itself, from its histogram", own[path].quantile(0.5), own[path].quantile(0.99))
	}
	return out.String()
}

// createBoth creates so many Sandboxes in each namespace, in turn, and times each.
func (w *hook) createBoth(ctx context.Context, count int) map[string][]time.Duration {
	w.Helper()
	c := clock.RealClock{}
	times := map[string][]time.Duration{}
	for range count {
		for _, name := range []string{judged, exempt} {
			sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: name, GenerateName: "box-"}}
			sandbox.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
			begun := c.Now()
			check(w, w.admin.Create(ctx, sandbox))
			times[name] = append(times[name], c.Since(begun))
		}
	}
	return times
}
