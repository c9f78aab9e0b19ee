// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
	"github.com/agent-sandbox-platform/agent-sandbox/policies"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

const (
	validating  = "agent-sandbox-validate." + releaseNamespace
	webhookUser = "system:serviceaccount:" + releaseNamespace + ":agent-sandbox-webhook"
)

// hook is an apiserver that calls the webhook as it is shipped, installed by the chart
// but for its Pod: with the chart's roles, configurations and policies.
type hook struct {
	testing.TB

	server *apiserver.Server
	admin  client.WithWatch
	daemon *apiserver.Daemon
	// metrics and probes are addresses.
	metrics, probes string
	// others are the addresses of the metrics of other replicas.
	others []string
	// policies replace the chart's configuration of the rules unless they are empty.
	policies string
	// rules is how many rules judge.
	rules int
	// binary and config are the webhook's and its configuration, for another replica.
	binary, config string
}

func inNamespace(name string) client.ListOption { return client.InNamespace(name) }

// newWebhook starts both and waits until the webhook is ready; they end with the test.
func newWebhook(tb testing.TB) *hook {
	tb.Helper()
	w := startWebhook(tb, "")
	w.await(tb.Context(), "the webhook is ready", func(ctx context.Context) error { return w.ready(ctx) })
	return w
}

// startWebhook starts both, with another policy configuration unless it is empty.
func startWebhook(tb testing.TB, policies string) *hook {
	tb.Helper()
	ctx := tb.Context()
	server, err := apiserver.Start(ctx, apiserver.Options{})
	check(tb, err)
	tb.Cleanup(func() { check(tb, server.Stop()) })
	w := &hook{TB: tb, server: server, policies: policies}
	w.admin, err = apiserver.NewClient(server.Config)
	check(tb, err)
	ports, err := apiserver.FreePorts(ctx, 3)
	check(tb, err)
	w.metrics, w.probes = "127.0.0.1:"+ports[1], "127.0.0.1:"+ports[2]
	for _, name := range []string{releaseNamespace, judged, exempt} {
		check(tb, w.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	port, err := strconv.ParseInt(ports[0], 10, 32)
	check(tb, err)
	// The apiserver follows a Service of this type to a process of this machine.
	check(tb, w.admin.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: releaseNamespace, Name: "agent-sandbox-webhook"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1", Ports: []corev1.ServicePort{{Port: int32(port)}},
		},
	}))
	config := w.installChart(ctx, port)
	w.start(ctx, ports[0], config)
	return w
}

// installChart creates the chart's objects that the webhook needs and returns its
// configuration.
func (w *hook) installChart(ctx context.Context, port int64) string {
	w.Helper()
	config := ""
	for _, object := range rendered(w, map[string]any{"webhook": map[string]any{"exemptNamespaces": []any{exempt}}}) {
		switch object.GetKind() {
		case "ConfigMap":
			w.switchOn(ctx, object)
			if text, found, err := unstructured.NestedString(object.Object, "data", "platform.yaml"); err == nil && found {
				config = text
			}
		case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
			w.redirect(object, port)
		case "Secret", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
		default:
			continue
		}
		check(w, w.admin.Create(ctx, object))
	}
	if config == "" || w.rules == 0 {
		w.Fatalf("the chart has no configuration, or no rules: %d", w.rules)
	}
	return config
}

// switchOn lets the rules judge that the values leave off: they only record. Those that
// need a list of what is allowed stay off.
func (w *hook) switchOn(ctx context.Context, configMap *unstructured.Unstructured) {
	w.Helper()
	text, found, err := unstructured.NestedString(configMap.Object, "data", "policy.yaml")
	check(w, err)
	if !found {
		return
	}
	var policy map[string]any
	check(w, yaml.Unmarshal([]byte(text), &policy))
	rules, _, err := unstructured.NestedMap(policy, "rules")
	check(w, err)
	needing := needingEntries(ctx, w)
	for id, rule := range rules {
		settings, _ := rule.(map[string]any)
		if needing[id] {
			continue
		}
		w.rules++
		if settings["enforcement"] == "Off" {
			settings["enforcement"] = "Audit"
		}
	}
	policy["rules"] = rules
	changed, err := yaml.Marshal(policy)
	check(w, err)
	if w.policies != "" {
		changed = []byte(w.policies)
	}
	check(w, unstructured.SetNestedField(configMap.Object, string(changed), "data", "policy.yaml"))
}

// needingEntries are the rules that cannot be switched on without a list.
func needingEntries(ctx context.Context, tb testing.TB) map[string]bool {
	tb.Helper()
	library, err := policies.Library()
	check(tb, err)
	rules, err := engine.New()
	check(tb, err)
	_, err = rules.Load(ctx, library, engine.Configuration{})
	check(tb, err)
	needing := map[string]bool{}
	for _, rule := range rules.Catalogue() {
		needing[rule.ID] = len(rule.AtLeastOne) > 0
	}
	return needing
}

// redirect makes the configuration call the process's port.
func (w *hook) redirect(configuration *unstructured.Unstructured, port int64) {
	w.Helper()
	webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	check(w, err)
	for i := range webhooks {
		webhook, _ := webhooks[i].(map[string]any)
		check(w, unstructured.SetNestedField(webhook, port, "clientConfig", "service", "port"))
	}
	check(w, unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks"))
}

// start builds the webhook as it is shipped and runs it.
func (w *hook) start(ctx context.Context, port, config string) {
	w.Helper()
	root, err := apiserver.Root()
	check(w, err)
	dir := w.TempDir()
	w.binary, w.config = filepath.Join(dir, "agent-sandbox-webhook"), filepath.Join(dir, "platform.yaml")
	build := exec.CommandContext(ctx, "go", "build", "-o", w.binary, "./cmd/agent-sandbox-webhook")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		w.Fatalf("build the webhook: %v\n%s", err, out)
	}
	check(w, os.WriteFile(w.config, []byte(config), 0o600))
	kubeconfig, err := w.server.Kubeconfig(webhookUser, "system:serviceaccounts")
	check(w, err)
	w.Setenv("KUBECONFIG", kubeconfig)
	w.daemon = w.launch(port, w.metrics, w.probes)
}

// launch runs a replica until the test ends.
func (w *hook) launch(port, metrics, probes string) *apiserver.Daemon {
	w.Helper()
	daemon, err := apiserver.Launch("the webhook", w.binary, filepath.Join(w.TempDir(), "log"),
		"--config="+w.config, "--namespace="+releaseNamespace, "--port="+port,
		"--mutating-webhook-name=agent-sandbox-mutate."+releaseNamespace, "--validating-webhook-name="+validating,
		"--metrics-bind-address="+metrics, "--health-probe-bind-address="+probes, "--drain-delay=0s")
	check(w, err)
	w.Cleanup(func() { check(w, daemon.Stop()) })
	return daemon
}

// await asks again and again until done has no error.
func (w *hook) await(ctx context.Context, what string, done func(context.Context) error) {
	w.Helper()
	var last error
	err := wait.PollUntilContextTimeout(ctx, glimpse, patience, true, func(ctx context.Context) (bool, error) {
		if err := errors.Join(w.daemon.Failure(), w.server.Failure()); err != nil {
			return false, err
		}
		last = done(ctx)
		return last == nil, nil
	})
	if err != nil {
		w.Fatalf("gave up waiting until %s: %v: %v", what, err, last)
	}
}

// ready asks the webhook whether it is ready, as a whole or by one check.
func (w *hook) ready(ctx context.Context, check ...string) error {
	response, err := fetch(ctx, "http://"+w.probes+strings.Join(append([]string{"/readyz"}, check...), "/"))
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// fetch reads an address; the caller closes the body.
func fetch(ctx context.Context, url string) (*http.Response, error) {
	return fetchAs(ctx, http.DefaultClient, url)
}

// fetchAs is fetch by another client.
func fetchAs(ctx context.Context, as *http.Client, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := as.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s answers %s", url, response.Status), response.Body.Close())
	}
	return response, nil
}

// histogram is what the webhook counted of itself: how many requests took at most so
// many seconds.
type histogram struct {
	count   uint64
	buckets map[float64]uint64
}

// familiesAt reads the metrics at an address.
func familiesAt(ctx context.Context, address string) (map[string]*dto.MetricFamily, error) {
	response, err := fetch(ctx, "http://"+address+"/metrics")
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it is read
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// histograms are those of Sandboxes by path.
func (w *hook) histograms(ctx context.Context) map[string]histogram {
	w.Helper()
	families, err := familiesAt(ctx, w.metrics)
	check(w, err)
	found := map[string]histogram{}
	for _, metric := range families["agent_sandbox_admission_duration_seconds"].GetMetric() {
		path := labelOf(metric, "webhook")
		if labelOf(metric, "kind") != "Sandbox" {
			continue
		}
		h := histogram{count: metric.GetHistogram().GetSampleCount(), buckets: map[float64]uint64{}}
		for _, bucket := range metric.GetHistogram().GetBucket() {
			h.buckets[bucket.GetUpperBound()] = bucket.GetCumulativeCount()
		}
		found[path] = h
	}
	return found
}

func labelOf(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// combine counts bucket by bucket.
func (h histogram) combine(other histogram, add func(a, b uint64) uint64) histogram {
	sum := histogram{count: add(h.count, other.count), buckets: map[float64]uint64{}}
	for bound, count := range h.buckets {
		sum.buckets[bound] = add(count, other.buckets[bound])
	}
	return sum
}

func (h histogram) since(before histogram) histogram {
	return h.combine(before, func(a, b uint64) uint64 { return a - b })
}

func (h histogram) plus(other histogram) histogram {
	return h.combine(other, func(a, b uint64) uint64 { return a + b })
}

// within is the share of requests that took at most so long.
func (h histogram) within(limit time.Duration) float64 {
	return float64(h.buckets[limit.Seconds()]) / float64(h.count)
}

// quantile is the value below which that share of the requests is, in proportion within
// its bucket.
func (h histogram) quantile(q float64) time.Duration {
	rank := q * float64(h.count)
	lower, below, upper := 0.0, 0.0, math.Inf(1)
	for bound, count := range h.buckets {
		if float64(count) >= rank {
			upper = min(upper, bound)
		} else if bound > lower {
			lower, below = bound, float64(count)
		}
	}
	if math.IsInf(upper, 1) {
		return time.Duration(lower * float64(time.Second))
	}
	share := (rank - below) / (float64(h.buckets[upper]) - below)
	return time.Duration((lower + share*(upper-lower)) * float64(time.Second))
}
