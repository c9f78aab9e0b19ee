// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// lifetimes let an authority rotate every ten hours.
var lifetimes = Lifetimes{
	Authority: 15 * time.Hour, AuthorityRenewal: 5 * time.Hour, Leaf: 3 * time.Hour, LeafRenewal: time.Hour, Overlap: time.Minute,
}

func options() Options {
	return Options{
		Provider: ProviderSelf, Namespace: "ns", Secret: "cert", Service: "svc", MutatingWebhook: "m", ValidatingWebhook: "v", Lifetimes: lifetimes,
	}
}

// issued is what a keeper with the options makes.
func issued(t *testing.T, o Options) (ca, certificate, key []byte) {
	t.Helper()
	m, stepped, err := NewSource(o, testclock.NewFakeClock(now)).keeper.rotation.step(material{}, nil, false, now)
	if err != nil || !stepped {
		t.Fatalf("first step: %t, %v", stepped, err)
	}
	return m.authority.certPEM, m.leaf.certPEM, m.leaf.keyPEM
}

func TestTrust(t *testing.T) {
	o := options()
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
		"the certificate is too old":             {certificate, key, ca, ca, now.Add(4 * time.Hour), "expired"},
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
	o := options()
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
