// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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
	// Dir is where the certificate of cert-manager is mounted.
	Dir string
	// MutatingWebhook and ValidatingWebhook name the webhook configurations that have
	// to trust the certificate; empty for one that is not installed.
	MutatingWebhook, ValidatingWebhook string
	// Lifetimes are those of certificates made here.
	Lifetimes Lifetimes
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
func NewSource(o Options, c clock.PassiveClock) *Source {
	return &Source{o: o, keeper: &keeper{o: o, clock: c, rotation: rotation{
		lifetimes: o.Lifetimes, authorityName: o.Service + "-ca",
		names: []string{o.dnsName(), o.Service, o.Service + "." + o.Namespace},
	}}}
}

// Watched says which objects of their kinds the manager's cache has to hold.
func (s *Source) Watched() map[client.Object]cache.ByObject {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{s.o.Namespace: {FieldSelector: named(s.o.Secret)}}},
		&admissionregistrationv1.MutatingWebhookConfiguration{}:   {Field: named(s.o.MutatingWebhook)},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Field: named(s.o.ValidatingWebhook)},
	}
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
func (s *Source) AddTo(mgr manager.Manager) (*Trust, error) {
	trust := &Trust{live: mgr.GetAPIReader(), clock: s.keeper.clock, o: s.o, certificate: s.keeper.certificate}
	if s.o.Provider == ProviderCertManager {
		trust.certificate = directory(s.o.Dir).certificate
		return trust, nil
	}
	var err error
	s.keeper.live, err = client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("make a client for certificates: %w", err)
	}
	once := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
	keeps := ctrl.NewControllerManagedBy(mgr).Named("serving-certificate").Watches(&corev1.Secret{}, once)
	if s.o.MutatingWebhook != "" {
		keeps.Watches(&admissionregistrationv1.MutatingWebhookConfiguration{}, once)
	}
	if s.o.ValidatingWebhook != "" {
		keeps.Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, once)
	}
	if err := keeps.Complete(s.keeper); err != nil {
		return nil, fmt.Errorf("watch the Secret of the certificate: %w", err)
	}
	return trust, nil
}
