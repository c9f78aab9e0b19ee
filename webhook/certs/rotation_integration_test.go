// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package certs

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	// askers send requests one after the other, each as fast as it is answered.
	askers = 4
	// patience bounds a hang; no verdict depends on it.
	patience = 3 * time.Minute
)

// installation is an apiserver that calls a webhook for every ConfigMap.
type installation struct {
	client.Client

	server *apiserver.Server
	port   int32
	served atomic.Int64
}

// install starts an apiserver, and a webhook that serves what the keeper keeps.
func install(t *testing.T, o Options) *installation {
	t.Helper()
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
	i := &installation{Client: admin, server: server}
	i.serve(t, NewSource(o, clock.RealClock{}))
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}},
		// The apiserver follows a Service of this type to the test's own process.
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Service}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1", Ports: []corev1.ServicePort{{Port: i.port}},
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Secret}},
		i.configuration(o),
	}
	for _, object := range objects {
		if err := i.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

func (i *installation) configuration(o Options) *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: o.ValidatingWebhook},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "configmaps.example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "tenant"}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: o.Namespace, Name: o.Service, Port: new(i.port)},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
}

// serve answers every request with yes. Connections are not kept, so that every
// request has to trust the certificate of the moment.
func (i *installation) serve(t *testing.T, source *Source) {
	t.Helper()
	hook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.served.Add(1)
		var review admissionv1.AdmissionReview
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // the apiserver says what it did not get
	}))
	hook.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	for _, option := range source.TLSOptions() {
		option(hook.TLS)
	}
	hook.Config.SetKeepAlivesEnabled(false)
	hook.Config.ErrorLog = log.New(io.Discard, "", 0)
	// Unlike httptest, which has a certificate of its own to offer.
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	i.port = int32(address.Port)
	go func() { _ = hook.Config.Serve(tls.NewListener(listener, hook.TLS)) }()
	t.Cleanup(func() { _ = hook.Config.Close() })
	i.manage(t, source)
}

func (i *installation) manage(t *testing.T, source *Source) {
	t.Helper()
	scheme, err := apiserver.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(i.server.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{ByObject: source.Watched()},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.AddTo(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// ask sends one request that calls the webhook.
func (i *installation) ask(ctx context.Context) error {
	return i.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", GenerateName: "asked-"}}, client.DryRunAll)
}

// awaitAnswer waits until the webhook itself answers: before the apiserver knows of it, all
// is admitted.
func (i *installation) awaitAnswer(t *testing.T) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = i.ask(ctx)
		return last == nil && i.served.Load() > 0, nil
	})
	if err != nil {
		t.Fatalf("the apiserver never trusted the webhook: %v", last)
	}
}

// underLoad asks all the time while something happens, and returns how many requests
// were answered and what was refused.
func (i *installation) underLoad(t *testing.T, happens func()) (answered int64, refused []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var count atomic.Int64
	var mu sync.Mutex
	var group sync.WaitGroup
	for range askers {
		group.Go(func() {
			for ctx.Err() == nil {
				err := i.ask(context.WithoutCancel(ctx))
				if err == nil {
					count.Add(1)
					continue
				}
				mu.Lock()
				refused = append(refused, err.Error())
				mu.Unlock()
			}
		})
	}
	happens()
	cancel()
	group.Wait()
	return count.Load(), refused
}

func (i *installation) authority(ctx context.Context, t *testing.T, o Options) string {
	t.Helper()
	var secret corev1.Secret
	if err := i.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Secret}, &secret); err != nil {
		t.Fatal(err)
	}
	return string(secret.Data[authorityCert])
}

// Authorities live for seconds here, and requests come all the time: none of them is
// refused while authority and certificate are replaced again and again. As a check of
// the test itself, replacing both at once refuses some.
func TestRotationRefusesNoRequest(t *testing.T) {
	o := options()
	o.MutatingWebhook = ""
	// The overlap is what a busy apiserver may take to see a new authority.
	o.Lifetimes = Lifetimes{
		Authority: time.Hour, AuthorityRenewal: time.Hour - 2*time.Second, Overlap: 5 * time.Second,
		Leaf: 10 * time.Minute, LeafRenewal: 10*time.Minute - 3*time.Second,
	}
	i := install(t, o)
	i.awaitAnswer(t)

	const rotations = 3
	answered, refused := i.underLoad(t, func() {
		seen := map[string]bool{}
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			seen[i.authority(ctx, t, o)] = true
			return len(seen) > rotations, nil
		})
		if err != nil {
			t.Errorf("%d authorities in %s", len(seen), patience)
		}
	})
	t.Logf("%d rotations of authority and certificate: %d requests admitted, %d refused", rotations, answered, len(refused))
	if len(refused) > 0 {
		t.Errorf("%d requests were refused, the first with: %s", len(refused), refused[0])
	}
	if served := i.served.Load(); served < answered {
		t.Errorf("%d requests were admitted, the webhook saw %d", answered, served)
	}
	if answered < 100 {
		t.Errorf("%d requests were answered: the test proves little", answered)
	}

	for swaps := 0; swaps < 10 && len(refused) == 0; swaps++ { // a request must come in the moment between the two
		_, refused = i.underLoad(t, func() { i.swap(t, o) })
	}
	t.Logf("authority and certificate at once: %d refused", len(refused))
	if len(refused) == 0 || !strings.Contains(refused[0], "x509") {
		t.Errorf("replacing both at once refused %d, so the test would not see it: %q", len(refused), refused[:min(1, len(refused))])
	}
}

// swap replaces authority and certificate at once, and returns when the new one is
// published.
func (i *installation) swap(t *testing.T, o Options) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var secret corev1.Secret
		if err := i.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Secret}, &secret); err != nil {
			return false, err
		}
		secret.Data = nil
		return i.Update(ctx, &secret) == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var secret corev1.Secret
		if err := i.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Secret}, &secret); err != nil {
			return false, err
		}
		made, err := readPair(secret.Data[authorityCert], secret.Data[authorityKey])
		if err != nil || made == nil {
			return false, err
		}
		found, _, err := readConfigurations(ctx, i, o)
		return err == nil && trusted(found, made.certificate), err
	})
	if err != nil {
		t.Fatal(err)
	}
}
