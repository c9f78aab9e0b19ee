// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var errNoCertificate = errors.New("there is no serving certificate yet")

// keeper serves the certificate of a Secret.
type keeper struct {
	reader  client.Reader
	key     client.ObjectKey
	dir     string
	current atomic.Pointer[tls.Certificate]
}

// Reconcile takes over what the Secret holds.
func (k *keeper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var secret corev1.Secret
	if err := k.reader.Get(ctx, k.key, &secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	certificate, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(certificate) == 0 || len(key) == 0 {
		return ctrl.Result{}, nil // the rotator has yet to fill it
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read the certificate of Secret %s: %w", k.key, err)
	}
	k.current.Store(&pair)
	if err := k.write(certificate, key); err != nil {
		// Where the Secret itself is mounted there, the kubelet writes.
		logf.FromContext(ctx).Info("no copy of the certificate is written, a mount of the Secret has to bring it", "reason", err.Error())
	}
	return ctrl.Result{}, nil
}

// GetCertificate is for the TLS configuration of the server.
func (k *keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return k.certificate()
}

func (k *keeper) certificate() (*tls.Certificate, error) {
	if pair := k.current.Load(); pair != nil {
		return pair, nil
	}
	return nil, errNoCertificate
}

// write leaves the files for the rotator, each as a whole.
func (k *keeper) write(certificate, key []byte) error {
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return fmt.Errorf("make the certificate directory: %w", err)
	}
	for name, content := range map[string][]byte{corev1.TLSPrivateKeyKey: key, corev1.TLSCertKey: certificate} {
		path := filepath.Join(k.dir, name)
		if err := os.WriteFile(path+".new", content, 0o600); err != nil {
			return fmt.Errorf("write the certificate: %w", err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			return fmt.Errorf("write the certificate: %w", err)
		}
	}
	return nil
}

// directory serves nothing itself but knows the certificate in a mounted directory.
type directory string

func (d directory) certificate() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(string(d), corev1.TLSCertKey), filepath.Join(string(d), corev1.TLSPrivateKeyKey))
	if err != nil {
		return nil, fmt.Errorf("read the mounted certificate: %w", err)
	}
	return &pair, nil
}
