// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// backdate is how long before now a certificate becomes valid, for apiservers whose
// clock is behind.
const backdate = time.Hour

// serialBits is how long a serial number is.
const serialBits = 120

// pair is a certificate with its key.
type pair struct {
	certificate *x509.Certificate
	key         crypto.Signer
	// certPEM and keyPEM are both as a Secret holds them.
	certPEM, keyPEM []byte
}

// readPair reads a pair; it is nil when there is none.
func readPair(certPEM, keyPEM []byte) (*pair, error) {
	if len(certPEM) == 0 && len(keyPEM) == 0 {
		return nil, nil
	}
	read, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	key, ok := read.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	return &pair{certificate: read.Leaf, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// newAuthority makes an authority that signs itself.
func newAuthority(name string, now time.Time, lifetime time.Duration) (*pair, error) {
	return sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: []string{"agent-sandbox"}},
		// Apiservers that hold both the old and the new one tell them apart by the key.
		NotBefore: now.Add(-backdate), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}, nil)
}

// issue makes a serving certificate that the authority vouches for, valid no longer
// than the authority itself.
func (p *pair) issue(names []string, now time.Time, lifetime time.Duration) (*pair, error) {
	end := now.Add(lifetime)
	if end.After(p.certificate.NotAfter) {
		end = p.certificate.NotAfter
	}
	return sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: now.Add(-backdate), NotAfter: end,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, p)
}

// sign makes a key and a certificate for it, signed by the authority, or by itself
// when there is none.
func sign(template *x509.Certificate, authority *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	parent, signer := template, crypto.Signer(key)
	if authority != nil {
		parent, signer = authority.certificate, authority.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return readPair(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	)
}

// holds reports whether a bundle of certificates has this one.
func holds(bundle []byte, certificate *x509.Certificate) bool {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if bytes.Equal(block.Bytes, certificate.Raw) {
			return true
		}
	}
	return false
}
