// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

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
	found, missing, err := readConfigurations(request.Context(), t.live, t.o)
	if err = errors.Join(err, missing); err != nil {
		return err
	}
	for _, configuration := range found {
		for name, bundle := range configuration.bundles {
			if err := t.vouches(*bundle, served); err != nil {
				return fmt.Errorf("webhook configuration %s does not trust the certificate yet: %w", name, err)
			}
		}
	}
	t.proven.Store(true)
	return nil
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
