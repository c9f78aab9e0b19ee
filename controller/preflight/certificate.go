// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	certmanagermeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Certificate is what cert-manager says of the webhook's certificate.
type Certificate struct {
	// Name is that of the Certificate; empty where the webhook keeps its own.
	Name string
	// Why says what keeps it from being ready; empty if it is.
	Why string
	// NotAfter is when it ends, Renewal when it is renewed.
	NotAfter, Renewal time.Time
}

// AwaitCertificate waits until a Certificate is ready for its present spec, and says
// what cert-manager says of it. That it never becomes ready is no error.
func AwaitCertificate(ctx context.Context, reader client.Reader, key client.ObjectKey) (Certificate, error) {
	found := Certificate{Name: key.Name}
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		var certificate certmanagerv1.Certificate
		err := reader.Get(ctx, key, &certificate)
		switch {
		case meta.IsNoMatchError(err):
			found.Why = "the cluster does not know the kind: install cert-manager, or set certificates.provider to self"
			return true, nil
		case apierrors.IsNotFound(err):
			found.Why = "there is none of this name: upgrade the release"
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read Certificate %s: %w", key, err)
		}
		found = stateOf(&certificate)
		return found.Why == "", nil
	})
	if err != nil && !wait.Interrupted(err) {
		return found, err
	}
	return found, context.Cause(ctx)
}

// stateOf reads the conditions of a Certificate. Ready alone may still speak of an older
// spec.
func stateOf(certificate *certmanagerv1.Certificate) Certificate {
	state := Certificate{Name: certificate.Name, Why: "cert-manager has not looked at it: see whether its controller runs"}
	if at := certificate.Status.NotAfter; at != nil {
		state.NotAfter = at.Time
	}
	if at := certificate.Status.RenewalTime; at != nil {
		state.Renewal = at.Time
	}
	for i := range certificate.Status.Conditions {
		switch c := &certificate.Status.Conditions[i]; {
		case c.Type != certmanagerv1.CertificateConditionReady:
		case c.Status != certmanagermeta.ConditionTrue:
			state.Why = c.Reason + ": " + c.Message
		case c.ObservedGeneration < certificate.Generation:
			state.Why = "cert-manager has not looked at its last change"
		default:
			state.Why = ""
		}
	}
	return state
}

// line puts the state into words, or nothing where there is no Certificate.
func (c Certificate) line() (line string, fault bool) {
	switch {
	case c.Name == "":
		return "", false
	case c.Why != "":
		return fmt.Sprintf("Certificate %s: not ready: %s. Look at kubectl describe certificate,certificaterequest,issuer.", c.Name, c.Why), true
	default:
		return fmt.Sprintf("Certificate %s: ready, valid until %s, renewed from %s on.",
			c.Name, c.NotAfter.UTC().Format(time.RFC3339), c.Renewal.UTC().Format(time.RFC3339)), false
	}
}
