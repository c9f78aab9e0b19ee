// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

var serverAuth = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

func options(dir string) Options {
	return Options{
		Provider: ProviderSelf, Namespace: "ns", Secret: "cert", Service: "svc", Dir: dir, MutatingWebhook: "m", ValidatingWebhook: "v",
	}
}

// issued is what the rotator would write for the options, valid for an hour.
func issued(t *testing.T, o Options) (ca, certificate, key []byte) {
	t.Helper()
	r := NewSource(o).rotator()
	usages := rotator.CertRotator{CAName: r.CAName, CAOrganization: r.CAOrganization, DNSName: r.DNSName, ExtraDNSNames: r.ExtraDNSNames, ExtKeyUsages: &serverAuth}
	authority, err := usages.CreateCACert(now.Add(-time.Hour), now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err = usages.CreateCertPEM(authority, now.Add(-time.Hour), now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return authority.CertPEM, certificate, key
}

func secret(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cert"}, Data: data}
}

func TestKeeperServesWhatTheSecretHolds(t *testing.T) {
	dir := t.TempDir()
	_, certificate, key := issued(t, options(dir))
	pair := map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
	unwritable := filepath.Join(dir, "file")
	if err := os.WriteFile(unwritable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		secret          *corev1.Secret
		dir             string
		served, written bool
		failed          bool
	}{
		"a Secret that is not there yet":            {nil, dir, false, false, false},
		"a Secret that is still empty":              {secret(nil), dir, false, false, false},
		"a Secret that holds rubbish":               {secret(map[string][]byte{corev1.TLSCertKey: {1}, corev1.TLSPrivateKeyKey: {2}}), dir, false, false, true},
		"a certificate is served and copied":        {secret(pair), filepath.Join(dir, "new"), true, true, false},
		"it is served where it cannot be copied to": {secret(pair), unwritable, true, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			if tc.secret != nil {
				builder.WithObjects(tc.secret)
			}
			source := NewSource(options(tc.dir))
			source.keeper.reader = builder.Build()
			if _, err := source.keeper.Reconcile(t.Context(), reconcile.Request{}); (err != nil) != tc.failed {
				t.Fatalf("Reconcile() = %v, want an error: %t", err, tc.failed)
			}
			var config tls.Config
			for _, option := range source.TLSOptions() {
				option(&config)
			}
			if got, err := config.GetCertificate(nil); (err == nil) != tc.served || (got != nil) != tc.served {
				t.Errorf("GetCertificate() = %v, %v, want one: %t", got, err, tc.served)
			}
			written, err := directory(tc.dir).certificate()
			if (err == nil) != tc.written || (written != nil) != tc.written {
				t.Errorf("the copy is %v, %v, want one: %t", written, err, tc.written)
			}
		})
	}
}

func TestTrust(t *testing.T) {
	o := options(t.TempDir())
	ca, certificate, key := issued(t, o)
	otherCA, _, _ := issued(t, o)
	other := o
	other.Service = "other"
	otherNameCA, otherName, otherNameKey := issued(t, other)
	cases := map[string]struct {
		certificate, key     []byte
		mutating, validating []byte
		at                   time.Time
		// want is part of the reason; empty when it is ready.
		want string
	}{
		"both configurations trust it":           {certificate, key, ca, ca, now, ""},
		"there is no certificate":                {nil, nil, ca, ca, now, "no serving certificate"},
		"one configuration has no bundle yet":    {certificate, key, ca, nil, now, "webhook configuration v/w does not trust"},
		"one trusts another authority":           {certificate, key, otherCA, ca, now, "webhook configuration m/w does not trust"},
		"a bundle with both authorities":         {certificate, key, append(append([]byte{}, otherCA...), ca...), ca, now, ""},
		"the certificate is for another service": {otherName, otherNameKey, otherNameCA, otherNameCA, now, "does not trust"},
		"the certificate is too old":             {certificate, key, ca, ca, now.Add(2 * time.Hour), "expired"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live := fake.NewClientBuilder().WithObjects(configurations(tc.mutating, tc.validating)...).Build()
			trust := &Trust{live: live, clock: testclock.NewFakeClock(tc.at), o: o, certificate: func() (*tls.Certificate, error) {
				if tc.certificate == nil {
					return nil, errNoCertificate
				}
				pair, err := tls.X509KeyPair(tc.certificate, tc.key)
				return &pair, err
			}}
			err := trust.Ready(probe(t))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Ready() = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTrustWaitsForTheConfigurationsAndAsksOnce(t *testing.T) {
	o := options(t.TempDir())
	ca, certificate, key := issued(t, o)
	live := fake.NewClientBuilder().Build()
	trust := &Trust{live: live, clock: testclock.NewFakeClock(now), o: o, certificate: func() (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(certificate, key)
		return &pair, err
	}}
	if err := trust.Ready(probe(t)); err == nil {
		t.Error("Ready() before there are configurations")
	}
	for _, object := range configurations(ca, ca) {
		if err := live.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := trust.Ready(probe(t)); err != nil {
		t.Errorf("Ready() = %v with configurations", err)
	}
	for _, object := range configurations(ca, ca) {
		if err := live.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := trust.Ready(probe(t)); err != nil {
		t.Errorf("Ready() = %v after an administrator removed the configurations, want it to stay", err)
	}
}

func configurations(mutating, validating []byte) []client.Object {
	return []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "m"},
			Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "w", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: mutating}}},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "v"},
			Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "w", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: validating}}},
		},
	}
}

func probe(t *testing.T) *http.Request {
	t.Helper()
	return httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", http.NoBody)
}
