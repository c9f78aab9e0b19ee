// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs gives the webhook its serving certificate and tells when the
// apiserver can trust it.
//
// With the provider self, a rotator in this process writes a certificate authority
// and a certificate into the Secret, which the chart renders without data, and the
// authority into the caBundle of both webhook configurations. Every replica serves
// what the Secret holds from memory, the moment it changes, and leaves a copy in the
// directory where the rotator looks for it. With the provider cert-manager, the
// mounted directory is served and cainjector writes the caBundle.
//
// A replica is ready once both configurations trust the certificate that it serves,
// so that an installation which waits for readiness can be used at once. This is
// asked once: a configuration that is changed later does not take replicas out of
// service.
//
// 2026-11-29: the rotator replaces authority and certificate together, so a request
// that meets the new certificate before the new caBundle is refused once in ten
// years (the lifetime of the authority, renewed 90 days early). The certificate
// alone, renewed every year, is signed by the same authority and refuses nothing.
package certs
