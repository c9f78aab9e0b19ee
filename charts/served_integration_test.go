// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package charts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
	"github.com/agent-sandbox-platform/agent-sandbox/webhook"
)

const (
	corpusDir = "../e2e/corpus"
	// patience bounds a hang; no verdict depends on it.
	patience = 2 * time.Minute
)

// served is an apiserver that asks the webhook of an install.
type served struct {
	client.Client
	server *apiserver.Server
}

// serve starts an apiserver, and the webhook as the chart installs it with a file of
// values, with its flags, its configuration and its policies.
func serve(t *testing.T, valuesFile string) served {
	t.Helper()
	text, err := os.ReadFile(valuesFile)
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	values["crds"] = map[string]any{"install": false}
	r, err := install{}.tryValues(values)
	if err != nil {
		t.Fatal(err)
	}
	ctrl.SetLogger(logr.Discard()) // what goes wrong is in the answers
	server, err := apiserver.Start(t.Context(), apiserver.Options{NoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := apiserver.NewClient(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	s := served{Client: admin, server: server}
	port := s.run(t, r)
	s.prepare(t, r, port)
	s.awaitWebhook(t)
	return s
}

// run starts the webhook and returns its port.
func (s served) run(t *testing.T, r rendered) int32 {
	t.Helper()
	ports, err := apiserver.FreePorts(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(ports[0], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	var o webhook.Options
	parseArgs(t, r, "agent-sandbox-webhook", o.Bind)
	o.Namespace, o.Port, o.MetricsBindAddress, o.HealthProbeBindAddress, o.DrainDelay = defaultNamespace, int(port), "0", "0", 0
	o.Config, o.CertDir = filepath.Join(t.TempDir(), "platform.yaml"), t.TempDir()
	for _, c := range all[*corev1.ConfigMap](r) {
		if text, is := c.Data["platform.yaml"]; is {
			if err := os.WriteFile(o.Config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- webhook.Run(ctx, s.server.Config, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("the webhook: %v", err)
		}
	})
	return int32(port)
}

// prepare makes what the chart installs around the webhook, and the world of the corpus.
func (s served) prepare(t *testing.T, r rendered, port int32) {
	t.Helper()
	s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: defaultNamespace}})
	// The apiserver follows a Service of this type to the test's own process.
	s.create(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: defaultNamespace, Name: "agent-sandbox-webhook"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1", Ports: []corev1.ServicePort{{Port: port}},
		},
	})
	for _, secret := range all[*corev1.Secret](r) {
		secret.Namespace = defaultNamespace
		s.create(t, secret)
	}
	for _, configMap := range all[*corev1.ConfigMap](r) {
		configMap.Namespace = defaultNamespace
		s.create(t, configMap)
	}
	for name, handler := range map[string]string{"gvisor": "runsc", "runc": "runc"} {
		s.create(t, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: handler})
	}
	for name, labels := range corpus.Namespaces {
		s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
		s.fill(t, name)
	}
	s.configure(t, r, port)
}

// configure makes the webhook configurations.
func (s served) configure(t *testing.T, r rendered, port int32) {
	t.Helper()
	for _, configuration := range all[*admissionregistrationv1.MutatingWebhookConfiguration](r) {
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].ClientConfig.Service.Port = new(port)
			configuration.Webhooks[i].TimeoutSeconds = new(int32(30)) // the machine may be busy
		}
		s.create(t, configuration)
	}
	for _, configuration := range all[*admissionregistrationv1.ValidatingWebhookConfiguration](r) {
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].ClientConfig.Service.Port = new(port)
			configuration.Webhooks[i].TimeoutSeconds = new(int32(30))
		}
		s.create(t, configuration)
	}
}

func (s served) create(t *testing.T, object client.Object) {
	t.Helper()
	object.SetResourceVersion("")
	if err := s.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// awaitWebhook waits until the apiserver reaches the webhook, and that has its policies.
func (s served) awaitWebhook(t *testing.T) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		probe := written(t, "trusted", "agents.x-k8s.io/v1beta1", "Sandbox", `{"podTemplate": {"spec": {"containers": [{"name": "a", "image": "a"}]}}}`)
		last = s.Create(ctx, probe, client.DryRunAll)
		if apierrors.IsForbidden(last) { // it judges
			return true, nil
		}
		if last == nil && probe.GetAnnotations()["platform.agents.x-k8s.io/defaulted"] == "" {
			last = fmt.Errorf("nothing is set on %v", probe.Object)
		}
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("the webhook does not answer: %v", last)
	}
}

// written is an object as somebody writes it.
func written(t *testing.T, namespace, apiVersion, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "probe", "namespace": namespace},
	}}
	var content map[string]any
	if err := json.Unmarshal([]byte(spec), &content); err != nil {
		t.Fatal(err)
	}
	object.Object["spec"] = content
	return object
}

// fill makes the templates and pools of the corpus in a namespace, before anybody judges
// them.
func (s served) fill(t *testing.T, namespace string) {
	t.Helper()
	world, err := corpus.World(os.DirFS(corpusDir), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range world {
		if object["kind"] == "RuntimeClass" {
			continue
		}
		copied := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
		copied.SetNamespace(namespace)
		s.create(t, copied)
	}
}
