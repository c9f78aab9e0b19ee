// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes the certificates, keys and kubeconfigs of one cluster. They
// live as long as the cluster does, which is not long, so nothing rotates.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity of every certificate.
const validity = 5 * 365 * 24 * time.Hour

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  time.Time
}

// Identity is who a certificate speaks for.
type Identity struct {
	// Name is the user and Groups its groups, as Kubernetes reads them.
	Name   string
	Groups []string
	// DNS and IPs are the names a server answers to; with neither the
	// certificate is a client's only.
	DNS []string
	IPs []string
}

// Pair is a certificate and its key in PEM.
type Pair struct {
	Cert, Key []byte
}

// NewAuthority makes a certificate authority; now is the start of its validity.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	template := base(name, now)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.SerialNumber = big.NewInt(1)
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	return &Authority{cert: cert, key: key, now: now}, nil
}

// Pair is the authority's own certificate and key.
func (a *Authority) Pair() (Pair, error) { return encode(a.cert.Raw, a.key) }

// Issue signs a certificate for an identity.
func (a *Authority) Issue(id Identity) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("certificate of %s: %w", id.Name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Pair{}, fmt.Errorf("certificate of %s: %w", id.Name, err)
	}
	template := base(id.Name, a.now)
	template.SerialNumber = serial
	template.Subject.Organization = id.Groups
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(id.DNS)+len(id.IPs) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	template.DNSNames = id.DNS
	for _, ip := range id.IPs {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("certificate of %s: %w", id.Name, err)
	}
	return encode(raw, key)
}

// base leaves an hour for clocks that differ.
func base(name string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
	}
}

// ServiceAccountKey makes the key that signs ServiceAccount tokens: the public
// half is in Cert.
func ServiceAccountKey() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("service account key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, fmt.Errorf("service account key: %w", err)
	}
	pair, err := encode(nil, key)
	pair.Cert = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	return pair, err
}

func encode(cert []byte, key *ecdsa.PrivateKey) (Pair, error) {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode key: %w", err)
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}),
	}, nil
}

// Save writes NAME.crt and NAME.key into a folder, readable by root only.
func (p Pair) Save(dir, name string) error {
	for ext, content := range map[string][]byte{".crt": p.Cert, ".key": p.Key} {
		if err := os.WriteFile(filepath.Join(dir, name+ext), content, 0o600); err != nil {
			return fmt.Errorf("save %s: %w", name, err)
		}
	}
	return nil
}
