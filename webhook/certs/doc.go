// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs gives the webhook its serving certificate and tells when the
// apiserver can trust it.
//
// With the provider self, every replica keeps the certificate: authority and serving
// certificate are in the Secret, which the chart renders without data, and the
// authority in the caBundle of both webhook configurations. Optimistic locks let one
// replica write, and every one serves what the Secret holds from memory, the moment
// it changes. With the provider cert-manager, the mounted directory is served and
// cainjector writes the caBundle.
//
// An authority is replaced in steps, each of which leaves what is served trusted: the
// next one is published beside the old, after an overlap it signs the certificate,
// and after another overlap the old one goes. The annotation
// platform.agents.x-k8s.io/rotate=true on the Secret asks for it.
//
// A replica is ready once both configurations trust the certificate that it serves,
// so that an installation which waits for readiness can be used at once. This is
// asked once: a configuration that is changed later does not take replicas out of
// service.
//
// # Decisions
//
// 2026-11-29, no library: the one that we used replaced authority and certificate
// together, so every request that met the new certificate before the new caBundle was
// refused. A test shows how many those are under load, and that there are none now.
//
// 2026-11-29, no lease: the configurations are read before the Secret and written
// with the version that was read, so a replica that lags meets a conflict instead of
// taking back what another one published.
package certs
