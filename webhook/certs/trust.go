// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Trust tells whether the apiserver can trust what is served.
type Trust struct {
	live        client.Reader
	certificate func() (*tls.Certificate, error)
	clock       clock.PassiveClock
	o           Options
	proven      atomic.Bool
}

// Ready is a readiness check: nil once every webhook configuration carries an
// authority that vouches for the certificate served.
func (t *Trust) Ready(request *http.Request) error {
	if t.proven.Load() {
		return nil
	}
	served, err := t.certificate()
	if err != nil {
		return err
	}
	bundles, err := t.bundles(request.Context())
	if err != nil {
		return err
	}
	for name, bundle := range bundles {
		if err := t.vouches(bundle, served); err != nil {
			return fmt.Errorf("webhook configuration %s does not trust the certificate yet: %w", name, err)
		}
	}
	t.proven.Store(true)
	return nil
}

// bundles are the caBundles of all webhooks by a name for messages.
func (t *Trust) bundles(ctx context.Context) (map[string][]byte, error) {
	bundles := map[string][]byte{}
	if name := t.o.MutatingWebhook; name != "" {
		var configuration admissionregistrationv1.MutatingWebhookConfiguration
		if err := t.live.Get(ctx, client.ObjectKey{Name: name}, &configuration); err != nil {
			return nil, fmt.Errorf("read mutating webhook configuration %q: %w", name, err)
		}
		for i := range configuration.Webhooks {
			bundles[name+"/"+configuration.Webhooks[i].Name] = configuration.Webhooks[i].ClientConfig.CABundle
		}
	}
	if name := t.o.ValidatingWebhook; name != "" {
		var configuration admissionregistrationv1.ValidatingWebhookConfiguration
		if err := t.live.Get(ctx, client.ObjectKey{Name: name}, &configuration); err != nil {
			return nil, fmt.Errorf("read validating webhook configuration %q: %w", name, err)
		}
		for i := range configuration.Webhooks {
			bundles[name+"/"+configuration.Webhooks[i].Name] = configuration.Webhooks[i].ClientConfig.CABundle
		}
	}
	return bundles, nil
}

func (t *Trust) vouches(bundle []byte, served *tls.Certificate) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return errors.New("its caBundle holds no certificate")
	}
	intermediates := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(served.Certificate[0])
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	for _, raw := range served.Certificate[1:] {
		if certificate, err := x509.ParseCertificate(raw); err == nil {
			intermediates.AddCert(certificate)
		}
	}
	_, err = leaf.Verify(x509.VerifyOptions{
		DNSName: t.o.dnsName(), Roots: roots, Intermediates: intermediates, CurrentTime: t.clock.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}
