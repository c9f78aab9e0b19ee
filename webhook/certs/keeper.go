// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var errNoCertificate = errors.New("there is no serving certificate yet")

const (
	// soon is when the step after the one just taken is looked for.
	soon = 50 * time.Millisecond
	// longest is how long it is counted on that nothing changes unseen.
	longest = time.Hour
)

// keeper serves the certificate of a Secret and keeps it and the webhook
// configurations up to date. Every replica has one; an optimistic lock on each object
// lets one of them write.
type keeper struct {
	// live reads and writes without a cache.
	live     client.Client
	clock    clock.PassiveClock
	o        Options
	rotation rotation
	current  atomic.Pointer[tls.Certificate]
}

// Reconcile serves what the Secret holds and takes the next step when there is one.
func (k *keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	result, err := k.keep(ctx)
	if apierrors.IsConflict(err) {
		// Another replica was quicker. Its write brings the next event.
		return ctrl.Result{RequeueAfter: soon}, nil
	}
	return result, err
}

// keep reads the configurations before the Secret: what is published is then never
// younger than the Secret that decides what to publish, so that a replica which lags
// cannot take back what another one published.
func (k *keeper) keep(ctx context.Context) (reconcile.Result, error) {
	configurations, _, err := readConfigurations(ctx, k.live, k.o)
	if err != nil {
		return ctrl.Result{}, err
	}
	var secret corev1.Secret
	if err := k.live.Get(ctx, client.ObjectKey{Namespace: k.o.Namespace, Name: k.o.Secret}, &secret); err != nil {
		return ctrl.Result{}, fmt.Errorf("read the Secret of the certificate, which the chart makes: %w", err)
	}
	m, err := readMaterial(secret.Data)
	if err != nil {
		logf.FromContext(ctx).Error(err, "the Secret of the certificate cannot be read in part, which is replaced", "secret", k.o.Secret)
	}
	k.serve(m)
	published := func(certificate *x509.Certificate) bool { return trusted(configurations, certificate) }
	asked := secret.Annotations[AnnotationRotate] == "true"
	next, stepped, err := k.rotation.step(m, published, asked, k.clock.Now())
	if err != nil {
		return ctrl.Result{}, err
	}
	if stepped {
		if m.next == nil && next.next != nil { // a later step leaves what was asked for meanwhile
			delete(secret.Annotations, AnnotationRotate)
		}
		return ctrl.Result{RequeueAfter: soon}, k.store(ctx, &secret, next)
	}
	for _, c := range configurations {
		if !c.publish(m.bundle()) {
			continue
		}
		if err := k.live.Update(ctx, c.Object); err != nil {
			return ctrl.Result{}, fmt.Errorf("publish the authority in webhook configuration %q: %w", c.GetName(), err)
		}
		stepped = true
	}
	if stepped {
		return ctrl.Result{RequeueAfter: soon}, nil
	}
	return ctrl.Result{RequeueAfter: min(k.rotation.wait(m, k.clock.Now()), longest)}, nil
}

// store writes one step into the Secret.
func (k *keeper) store(ctx context.Context, secret *corev1.Secret, m material) error {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	m.write(secret.Data)
	if err := k.live.Update(ctx, secret); err != nil {
		return fmt.Errorf("write the Secret of the certificate: %w", err)
	}
	k.serve(m)
	return nil
}

// serve takes over the serving certificate.
func (k *keeper) serve(m material) {
	if m.leaf == nil {
		return
	}
	k.current.Store(&tls.Certificate{
		Certificate: [][]byte{m.leaf.certificate.Raw}, PrivateKey: m.leaf.key, Leaf: m.leaf.certificate,
	})
}

// GetCertificate is for the TLS configuration of the server.
func (k *keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return k.certificate()
}

func (k *keeper) certificate() (*tls.Certificate, error) {
	if served := k.current.Load(); served != nil {
		return served, nil
	}
	return nil, errNoCertificate
}

// directory serves nothing itself but knows the certificate in a mounted directory.
type directory string

func (d directory) certificate() (*tls.Certificate, error) {
	served, err := tls.LoadX509KeyPair(filepath.Join(string(d), corev1.TLSCertKey), filepath.Join(string(d), corev1.TLSPrivateKeyKey))
	if err != nil {
		return nil, fmt.Errorf("read the mounted certificate: %w", err)
	}
	return &served, nil
}
