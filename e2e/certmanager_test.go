// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	certmanagermeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/preflight"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// certificateKey and authorityKey name the webhook's Certificate and that of the chart's own
// authority, and the Secrets that they are kept in.
var (
	certificateKey = client.ObjectKey{Namespace: kit.ReleaseNamespace, Name: "agent-sandbox-webhook-tls"}
	authorityKey   = client.ObjectKey{Namespace: kit.ReleaseNamespace, Name: "agent-sandbox-webhook-ca"}
)

// The platform engineer leaves the certificate to cert-manager: it is issued, cainjector
// tells the apiserver, and the webhook answers. A renewal, of the authority too, is served
// without a restart and without a refused request.
func TestPlatformEngineerLeavesTheCertificateToCertManager(t *testing.T) {
	ctx := t.Context()
	cluster.CertManager(ctx, t)
	release := cluster.Helm("agent-sandbox", kit.ReleaseNamespace)
	t.Cleanup(func() {
		if err := release.Install(context.WithoutCancel(ctx), nil); err != nil {
			t.Errorf("return to the default values: %v", err)
		}
	})
	if err := release.Install(ctx, nil, "certificates.provider=cert-manager", "webhook.replicas=2"); err != nil {
		t.Fatalf("leave the certificate to cert-manager: %v", err)
	}
	cluster.AwaitWebhook(ctx, t)
	state, err := preflight.AwaitCertificate(ctx, cluster, certificateKey)
	if err != nil || state.Why != "" || !state.Renewal.Before(state.NotAfter) {
		t.Fatalf("the Certificate is %+v, %v; want it ready and renewed before its end", state, err)
	}
	first, authority := mustBeTrusted(ctx, t), storedCertificate(ctx, t, certmanagermeta.TLSCAKey)
	load := admission(ctx, t)
	pods := podNames(ctx, t)
	found := load.During(ctx, t, func() {
		renew(ctx, t, authorityKey)
		renew(ctx, t, certificateKey)
		kit.Eventually(ctx, t, "every replica serves the renewed certificate", func(ctx context.Context) error {
			return servedEverywhere(ctx, t)
		})
	})
	mustAnswer(t, "a renewal by cert-manager", found, fewest)
	for _, wrong := range found.With(kit.Wrong) {
		t.Errorf("refused in error: %s", wrong.Why)
	}
	if second := mustBeTrusted(ctx, t); bytes.Equal(first.Raw, second.Raw) {
		t.Error("the certificate was not renewed")
	}
	if after := storedCertificate(ctx, t, certmanagermeta.TLSCAKey); bytes.Equal(authority.Raw, after.Raw) {
		t.Error("the authority was not renewed, or the certificate is still of the old one")
	}
	if after := podNames(ctx, t); after != pods {
		t.Errorf("the replicas were %s and are %s: a renewal must not restart any", pods, after)
	}
	preflightSaysReady(ctx, t, release)
}

// renew asks cert-manager to issue a certificate anew, as cmctl renew does.
func renew(ctx context.Context, t *testing.T, key client.ObjectKey) {
	t.Helper()
	var certificate certmanagerv1.Certificate
	if err := cluster.Get(ctx, key, &certificate); err != nil {
		t.Fatal(err)
	}
	revision := certificate.Status.Revision
	certificate.Status.Conditions = append(certificate.Status.Conditions, certmanagerv1.CertificateCondition{
		Type: certmanagerv1.CertificateConditionIssuing, Status: certmanagermeta.ConditionTrue, Reason: "ManuallyTriggered", Message: "a story asks",
	})
	if err := cluster.Status().Update(ctx, &certificate); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(ctx, t, "cert-manager has renewed "+key.Name, func(ctx context.Context) error {
		if err := cluster.Get(ctx, key, &certificate); err != nil {
			return err
		}
		if revision == nil || certificate.Status.Revision == nil || *certificate.Status.Revision <= *revision {
			return fmt.Errorf("the conditions are %+v", certificate.Status.Conditions)
		}
		return nil
	})
}

// mustBeTrusted fails the story unless every webhook configuration carries an authority
// that vouches for the certificate of the Secret, which it returns.
func mustBeTrusted(ctx context.Context, t *testing.T) *x509.Certificate {
	t.Helper()
	served := storedCertificate(ctx, t, corev1.TLSCertKey)
	kit.Eventually(ctx, t, "the configurations trust the certificate", func(ctx context.Context) error {
		var validating admissionregistrationv1.ValidatingWebhookConfiguration
		var mutating admissionregistrationv1.MutatingWebhookConfiguration
		name := func(what string) client.ObjectKey {
			return client.ObjectKey{Name: "agent-sandbox-" + what + "." + kit.ReleaseNamespace}
		}
		if err := errors.Join(cluster.Get(ctx, name("validate"), &validating), cluster.Get(ctx, name("mutate"), &mutating)); err != nil {
			return err
		}
		bundles := [][]byte{mutating.Webhooks[0].ClientConfig.CABundle}
		for i := range validating.Webhooks {
			bundles = append(bundles, validating.Webhooks[i].ClientConfig.CABundle)
		}
		for _, bundle := range bundles {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(bundle)
			if _, err := served.Verify(x509.VerifyOptions{Roots: roots, DNSName: "agent-sandbox-webhook." + kit.ReleaseNamespace + ".svc"}); err != nil {
				return err
			}
		}
		return nil
	})
	return served
}

// storedCertificate is what a member of the webhook's Secret holds.
func storedCertificate(ctx context.Context, t *testing.T, of string) *x509.Certificate {
	t.Helper()
	var secret corev1.Secret
	if err := cluster.Get(ctx, certificateKey, &secret); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(secret.Data[of])
	if block == nil {
		t.Fatalf("the Secret holds no certificate in %s", of)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// servedEverywhere says which replica does not serve the certificate of the Secret yet.
func servedEverywhere(ctx context.Context, t *testing.T) error {
	t.Helper()
	stored := storedCertificate(ctx, t, corev1.TLSCertKey)
	for _, pod := range cluster.WebhookPods(ctx, t) {
		served, err := kit.Served(ctx, pod.Status.PodIP+":9443")
		if err != nil {
			return err
		}
		if !bytes.Equal(served.Raw, stored.Raw) {
			return fmt.Errorf("Pod %s serves number %s, the Secret has %s", pod.Name, served.SerialNumber, stored.SerialNumber)
		}
	}
	return nil
}

func podNames(ctx context.Context, t *testing.T) string {
	t.Helper()
	var names []string
	for _, pod := range cluster.WebhookPods(ctx, t) {
		names = append(names, fmt.Sprintf("%s with %d restarts", pod.Name, pod.Status.ContainerStatuses[0].RestartCount))
	}
	return strings.Join(names, ", ")
}

// preflightSaysReady runs the chart's test and reads what it says of the Certificate.
func preflightSaysReady(ctx context.Context, t *testing.T, release kit.Helm) {
	t.Helper()
	if err := release.Test(); err != nil {
		t.Errorf("helm test: %v", err)
	}
	said, err := cluster.Logs(ctx, kit.ReleaseNamespace, "agent-sandbox-preflight")
	if err != nil || !strings.Contains(said, "Certificate agent-sandbox-webhook-tls: ready, valid until ") {
		t.Errorf("the preflight does not say that the Certificate is ready, %v:\n%s", err, said)
	}
}
