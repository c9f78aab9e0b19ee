// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secret besides those of the serving certificate.
const (
	authorityCert = "ca.crt"
	authorityKey  = "ca.key"
	// nextCert and nextKey are the authority that is published but does not sign yet.
	nextCert = "next-ca.crt"
	nextKey  = "next-ca.key"
	// previousCert is the authority that signs no more but is trusted still.
	previousCert = "previous-ca.crt"
	// sinceKey is when the step that is waited for was taken, as RFC 3339.
	sinceKey = "rotation-since"
)

// AnnotationRotate is an annotation of the Secret: "true" replaces the authority now,
// as when its key became known. It is removed when the rotation begins.
const AnnotationRotate = "platform.agents.x-k8s.io/rotate"

// Lifetimes say how long certificates are valid and when they are replaced.
type Lifetimes struct {
	// Authority is how long an authority is valid, AuthorityRenewal how long before its
	// end another one is prepared: longer than Leaf.
	Authority, AuthorityRenewal time.Duration
	// Leaf is how long a serving certificate is valid, LeafRenewal how long before its
	// end it is replaced.
	Leaf, LeafRenewal time.Duration
	// Overlap is how long each step of a rotation waits for every apiserver and replica
	// to have seen the one before.
	Overlap time.Duration
}

const day = 24 * time.Hour

// DefaultLifetimes are those of a cluster in use.
func DefaultLifetimes() Lifetimes {
	return Lifetimes{Authority: 3 * 365 * day, AuthorityRenewal: 365 * day, Leaf: 90 * day, LeafRenewal: 30 * day, Overlap: time.Minute}
}

// material is what the Secret holds.
type material struct {
	authority, leaf, next *pair
	// previous is PEM.
	previous []byte
	// since is when the next authority was seen published, or the previous one signed
	// last.
	since time.Time
}

// readMaterial reads the Secret. What cannot be read counts as absent, and is replaced.
func readMaterial(data map[string][]byte) (material, error) {
	var m material
	var errs []error
	for _, part := range []struct {
		into      **pair
		cert, key string
	}{
		{&m.authority, authorityCert, authorityKey}, {&m.leaf, corev1.TLSCertKey, corev1.TLSPrivateKeyKey}, {&m.next, nextCert, nextKey},
	} {
		var err error
		if *part.into, err = readPair(data[part.cert], data[part.key]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", part.cert, err))
		}
	}
	m.previous = data[previousCert]
	if text := string(data[sinceKey]); text != "" {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", sinceKey, err))
		}
		m.since = at
	}
	return m, errors.Join(errs...)
}

// write puts the material into the data of the Secret, whose other keys stay.
func (m material) write(data map[string][]byte) {
	set := func(key string, value []byte) {
		if len(value) == 0 {
			delete(data, key)
			return
		}
		data[key] = value
	}
	setPair := func(cert, key string, p *pair) {
		if p == nil {
			p = &pair{}
		}
		set(cert, p.certPEM)
		set(key, p.keyPEM)
	}
	setPair(authorityCert, authorityKey, m.authority)
	setPair(corev1.TLSCertKey, corev1.TLSPrivateKeyKey, m.leaf)
	setPair(nextCert, nextKey, m.next)
	set(previousCert, m.previous)
	var since []byte
	if !m.since.IsZero() {
		since = []byte(m.since.UTC().Format(time.RFC3339Nano))
	}
	set(sinceKey, since)
}

// bundle is what the webhook configurations have to trust.
func (m material) bundle() []byte {
	bundle := slices.Clone(m.authority.certPEM)
	if m.next != nil {
		bundle = append(bundle, m.next.certPEM...)
	}
	return append(bundle, m.previous...)
}

// rotation decides on the next step. It reads and writes nothing.
type rotation struct {
	lifetimes Lifetimes
	// authorityName is the name of authorities, names those of the leaf.
	authorityName string
	names         []string
}

// step returns the material after one step, and whether there was one to take. Every
// step leaves what is served trusted by what was published before it:
//
//  1. the next authority is made, and published beside the one that signs;
//  2. after the overlap it signs, the leaf is replaced, and the previous authority
//     stays published;
//  3. after the overlap the previous authority goes.
func (r rotation) step(m material, published func(*x509.Certificate) bool, asked bool, now time.Time) (material, bool, error) {
	var err error
	if m.authority == nil || !now.Before(m.authority.certificate.NotAfter) {
		// Nothing that could be kept up.
		m = material{}
		if m.authority, err = newAuthority(r.authorityName, now, r.lifetimes.Authority); err == nil {
			m.leaf, err = r.issue(m.authority, now)
		}
		return m, true, err
	}
	if !r.serves(m.leaf, m.authority, now) {
		m.leaf, err = r.issue(m.authority, now)
		return m, true, err
	}
	waited := !now.Before(m.since.Add(r.lifetimes.Overlap))
	switch {
	case m.next != nil:
		return r.promote(m, published(m.next.certificate), waited, now)
	case m.previous != nil && waited:
		m.previous, m.since = nil, time.Time{}
		return m, true, nil
	case m.previous == nil && (asked || due(m.authority, r.lifetimes.AuthorityRenewal, now)):
		m.since = time.Time{}
		m.next, err = newAuthority(r.authorityName, now, r.lifetimes.Authority)
		return m, true, err
	}
	return m, false, nil
}

// promote lets the next authority sign once it has been published for the overlap.
func (r rotation) promote(m material, published, waited bool, now time.Time) (material, bool, error) {
	switch counting := !m.since.IsZero(); {
	case counting && !published:
		// Somebody took it back: the overlap begins anew.
		m.since = time.Time{}
	case !counting && published:
		m.since = now
	case counting && waited:
		m.previous, m.authority, m.next, m.since = m.authority.certPEM, m.next, nil, now
		var err error
		m.leaf, err = r.issue(m.authority, now)
		return m, true, err
	default:
		return m, false, nil
	}
	return m, true, nil
}

func (r rotation) issue(authority *pair, now time.Time) (*pair, error) {
	return authority.issue(r.names, now, r.lifetimes.Leaf)
}

// serves reports whether the leaf may be served on: by its names, its age and its
// authority. One that ends with its authority cannot be renewed before that is.
func (r rotation) serves(leaf, authority *pair, now time.Time) bool {
	if leaf == nil || leaf.certificate.CheckSignatureFrom(authority.certificate) != nil {
		return false
	}
	if due(leaf, r.lifetimes.LeafRenewal, now) && leaf.certificate.NotAfter.Before(authority.certificate.NotAfter) {
		return false
	}
	for _, name := range r.names {
		if leaf.certificate.VerifyHostname(name) != nil {
			return false
		}
	}
	return true
}

func due(p *pair, before time.Duration, now time.Time) bool {
	return !now.Before(p.certificate.NotAfter.Add(-before))
}

// wait is how long nothing has to be done, unless somebody changes something.
func (r rotation) wait(m material, now time.Time) time.Duration {
	at := m.leaf.certificate.NotAfter.Add(-r.lifetimes.LeafRenewal)
	for _, other := range []time.Time{m.authority.certificate.NotAfter.Add(-r.lifetimes.AuthorityRenewal), m.since.Add(r.lifetimes.Overlap)} {
		if other.After(now) && other.Before(at) {
			at = other
		}
	}
	if !at.After(now) {
		return r.lifetimes.Overlap
	}
	return at.Sub(now)
}
