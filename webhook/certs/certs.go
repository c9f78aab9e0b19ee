// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"fmt"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Providers of the certificate.
const (
	// ProviderSelf makes and rotates the certificate in this process.
	ProviderSelf = "self"
	// ProviderCertManager serves what cert-manager puts into the mounted Secret.
	ProviderCertManager = "cert-manager"
)

// Options say whose certificate is served to whom.
type Options struct {
	// Provider is ProviderSelf or ProviderCertManager.
	Provider string
	// Namespace is where Secret and Service are.
	Namespace string
	// Secret is the name of the Secret that holds the certificate.
	Secret string
	// Service is the name of the Service that the apiserver calls.
	Service string
	// Dir is where the certificate is mounted or written.
	Dir string
	// MutatingWebhook and ValidatingWebhook name the webhook configurations that have
	// to trust the certificate; empty for one that is not installed.
	MutatingWebhook, ValidatingWebhook string
}

func (o Options) dnsName() string {
	return o.Service + "." + o.Namespace + ".svc"
}

// Source serves a certificate that the manager it was made for keeps.
type Source struct {
	o      Options
	keeper *keeper
}

// NewSource prepares what the server has to know before there is a manager.
func NewSource(o Options) *Source {
	key := client.ObjectKey{Namespace: o.Namespace, Name: o.Secret}
	return &Source{o: o, keeper: &keeper{key: key, dir: o.Dir}}
}

// TLSOptions are those of the webhook server.
func (s *Source) TLSOptions() []func(*tls.Config) {
	return []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion = tls.VersionTLS12
		if s.o.Provider == ProviderSelf {
			c.GetCertificate = s.keeper.GetCertificate
		}
	}}
}

// AddTo lets the manager keep the certificate.
func (s *Source) AddTo(mgr manager.Manager, c clock.PassiveClock) (*Trust, error) {
	trust := &Trust{live: mgr.GetAPIReader(), clock: c, o: s.o, certificate: s.keeper.certificate}
	if s.o.Provider == ProviderCertManager {
		trust.certificate = directory(s.o.Dir).certificate
		return trust, nil
	}
	s.keeper.reader = mgr.GetClient()
	ours := predicate.NewPredicateFuncs(func(object client.Object) bool {
		return client.ObjectKeyFromObject(object) == s.keeper.key
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("serving-certificate").
		For(&corev1.Secret{}, builder.WithPredicates(ours)).Complete(s.keeper)
	if err != nil {
		return nil, fmt.Errorf("watch the Secret of the certificate: %w", err)
	}
	if err := rotator.AddRotator(mgr, s.rotator()); err != nil {
		return nil, fmt.Errorf("add the certificate rotator: %w", err)
	}
	return trust, nil
}

func (s *Source) rotator() *rotator.CertRotator {
	r := &rotator.CertRotator{
		SecretKey:      s.keeper.key,
		CertDir:        s.o.Dir,
		CAName:         s.o.Service + "-ca",
		CAOrganization: "agent-sandbox",
		DNSName:        s.o.dnsName(),
		ExtraDNSNames:  []string{s.o.Service, s.o.Service + "." + s.o.Namespace},
		IsReady:        make(chan struct{}),
		FieldOwner:     "agent-sandbox-webhook",
	}
	if s.o.MutatingWebhook != "" {
		r.Webhooks = append(r.Webhooks, rotator.WebhookInfo{Name: s.o.MutatingWebhook, Type: rotator.Mutating})
	}
	if s.o.ValidatingWebhook != "" {
		r.Webhooks = append(r.Webhooks, rotator.WebhookInfo{Name: s.o.ValidatingWebhook, Type: rotator.Validating})
	}
	return r
}
