// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

func TestACertificateIsTrustedForItsNamesAndUsesOnly(t *testing.T) {
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	authority, err := NewAuthority("test", now)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := authority.Pair()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.Cert) {
		t.Fatal("the authority's certificate is not PEM")
	}
	server := Identity{Name: "kube-apiserver", DNS: []string{"kubernetes.default"}, IPs: []string{"10.96.0.1"}}
	client := Identity{Name: "admin", Groups: []string{"system:masters"}}
	tests := map[string]struct {
		id     Identity
		verify x509.VerifyOptions
		ok     bool
	}{
		"a server by its name":       {id: server, verify: x509.VerifyOptions{DNSName: "kubernetes.default"}, ok: true},
		"a server by its address":    {id: server, verify: x509.VerifyOptions{DNSName: "10.96.0.1"}, ok: true},
		"a server by another name":   {id: server, verify: x509.VerifyOptions{DNSName: "example.org"}},
		"a client as a client":       {id: client, verify: x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, ok: true},
		"a client posing as server":  {id: client, verify: x509.VerifyOptions{}},
		"a certificate out of date":  {id: server, verify: x509.VerifyOptions{CurrentTime: now.Add(2 * validity)}},
		"a certificate of strangers": {id: server, verify: x509.VerifyOptions{Roots: x509.NewCertPool()}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pair, err := authority.Issue(tc.id)
			if err != nil {
				t.Fatal(err)
			}
			loaded, err := tls.X509KeyPair(pair.Cert, pair.Key)
			if err != nil {
				t.Fatal(err)
			}
			if tc.verify.Roots == nil {
				tc.verify.Roots = roots
			}
			if tc.verify.CurrentTime.IsZero() {
				tc.verify.CurrentTime = now
			}
			if _, err := loaded.Leaf.Verify(tc.verify); (err == nil) != tc.ok {
				t.Errorf("verify: got %v, want success %t", err, tc.ok)
			}
		})
	}
}
