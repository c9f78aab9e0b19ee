// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	certmanagermeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/preflight"
)

var certificateKey = client.ObjectKey{Namespace: "platform", Name: "cert"}

// certificate is in its second generation and has a Ready condition, or none.
func certificate(conditions ...certmanagerv1.CertificateCondition) *certmanagerv1.Certificate {
	return &certmanagerv1.Certificate{
		ObjectMeta: metav1.ObjectMeta{Namespace: certificateKey.Namespace, Name: certificateKey.Name, Generation: 2},
		Status: certmanagerv1.CertificateStatus{
			Conditions: conditions, NotAfter: new(metav1.Unix(7200, 0)), RenewalTime: new(metav1.Unix(3600, 0)),
		},
	}
}

func ready(status certmanagermeta.ConditionStatus, generation int64) certmanagerv1.CertificateCondition {
	return certmanagerv1.CertificateCondition{
		Type: certmanagerv1.CertificateConditionReady, Status: status, Reason: "Pending", Message: "no Issuer", ObservedGeneration: generation,
	}
}

func TestAwaitCertificate(t *testing.T) {
	issuing := certmanagerv1.CertificateCondition{Type: certmanagerv1.CertificateConditionIssuing, Status: certmanagermeta.ConditionTrue}
	cases := map[string]struct {
		stored *certmanagerv1.Certificate
		err    error
		why    string
	}{
		"one that is ready":                     {certificate(issuing, ready(certmanagermeta.ConditionTrue, 2)), nil, ""},
		"one that is not":                       {certificate(ready(certmanagermeta.ConditionFalse, 2)), nil, "Pending: no Issuer"},
		"one that was ready before its change":  {certificate(ready(certmanagermeta.ConditionTrue, 1)), nil, "cert-manager has not looked at its last change"},
		"one that nobody looked at":             {certificate(), nil, "cert-manager has not looked at it: see whether its controller runs"},
		"none":                                  {nil, nil, "there is none of this name: upgrade the release"},
		"a cluster that does not know the kind": {nil, &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Certificate"}}, "the cluster does not know the kind: install cert-manager, or set certificates.provider to self"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, err := preflight.AwaitCertificate(t.Context(), reader(t, tc.stored, tc.err), certificateKey)
				if err != nil {
					t.Fatal(err)
				}
				want := preflight.Certificate{Name: "cert", Why: tc.why}
				if tc.stored != nil {
					want.NotAfter, want.Renewal = time.Unix(7200, 0), time.Unix(3600, 0)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("state (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// reader knows one Certificate, or fails.
func reader(t *testing.T, stored *certmanagerv1.Certificate, fails error) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := certmanagerv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	if stored != nil {
		builder.WithObjects(stored)
	}
	if fails != nil {
		builder.WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return fails
			},
		})
	}
	return builder.Build()
}
