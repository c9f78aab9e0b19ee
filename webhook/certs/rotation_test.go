// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/x509"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// replicas are webhooks that keep one certificate.
type replicas struct {
	client  client.WithWatch
	clock   *testclock.FakeClock
	keepers []*keeper
}

func newReplicas(t *testing.T, count int, funcs interceptor.Funcs) *replicas {
	t.Helper()
	objects := append(configurations(nil, nil), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cert"}, Data: map[string][]byte{"other": {1}}})
	r := &replicas{client: fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(funcs).Build(), clock: testclock.NewFakeClock(now)}
	for range count {
		k := NewSource(options(), r.clock).keeper
		k.live = r.client
		r.keepers = append(r.keepers, k)
	}
	return r
}

// settle lets every replica work until none has a step to take.
func (r *replicas) settle(t *testing.T) {
	t.Helper()
	for range 20 {
		busy := false
		for _, k := range r.keepers {
			result, err := k.Reconcile(t.Context(), reconcile.Request{})
			if err != nil {
				t.Fatal(err)
			}
			r.mustTrust(t)
			busy = busy || result.RequeueAfter == soon
		}
		if !busy {
			return
		}
	}
	t.Fatal("the replicas never come to rest")
}

// mustTrust fails when the published authorities do not vouch for what a replica
// serves.
func (r *replicas) mustTrust(t *testing.T) {
	t.Helper()
	for i, k := range r.keepers {
		served, err := k.certificate()
		if err != nil {
			continue
		}
		for name, bundle := range r.published(t) {
			if len(bundle) == 0 {
				continue
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(bundle)
			if _, err := served.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "svc.ns.svc", CurrentTime: r.clock.Now()}); err != nil {
				t.Errorf("at %s, %s does not trust replica %d: %v", r.clock.Now(), name, i, err)
			}
		}
	}
}

func (r *replicas) published(t *testing.T) map[string][]byte {
	t.Helper()
	found, missing, err := readConfigurations(t.Context(), r.client, options())
	if err != nil || missing != nil {
		t.Fatal(err, missing)
	}
	bundles := map[string][]byte{}
	for _, c := range found {
		for name, bundle := range c.bundles {
			bundles[name] = *bundle
		}
	}
	return bundles
}

func (r *replicas) material(t *testing.T) (material, corev1.Secret) {
	t.Helper()
	var secret corev1.Secret
	if err := r.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "cert"}, &secret); err != nil {
		t.Fatal(err)
	}
	m, err := readMaterial(secret.Data)
	if err != nil {
		t.Fatal(err)
	}
	return m, secret
}

// Whatever the replicas do and in whatever order, what each of them serves is trusted
// at every moment of a year in which every certificate is replaced again and again.
func TestWhatIsServedIsTrustedAtEveryMoment(t *testing.T) {
	r := newReplicas(t, 3, interceptor.Funcs{})
	r.settle(t)
	authorities, leaves := map[string]bool{}, map[string]bool{}
	for range 40 * 20 {
		r.clock.Step(3 * time.Minute)
		for _, k := range r.keepers {
			if _, err := k.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
			r.mustTrust(t)
		}
		m, _ := r.material(t)
		authorities[string(m.authority.certPEM)], leaves[string(m.leaf.certPEM)] = true, true
	}
	if len(authorities) < 4 || len(leaves) < 15 {
		t.Errorf("%d authorities and %d certificates in 40 hours: the test proves little", len(authorities), len(leaves))
	}
	m, secret := r.material(t)
	for name, bundle := range r.published(t) {
		if len(bundle) > 3*len(m.authority.certPEM) {
			t.Errorf("%s keeps authorities that are gone: %d bytes", name, len(bundle))
		}
	}
	if string(secret.Data["other"]) != "\x01" {
		t.Error("a key of somebody else was removed from the Secret")
	}
}

func TestARotationThatIsAskedForTakesItsSteps(t *testing.T) {
	r := newReplicas(t, 2, interceptor.Funcs{})
	r.settle(t)
	before, secret := r.material(t)
	secret.Annotations = map[string]string{AnnotationRotate: "true"}
	if err := r.client.Update(t.Context(), &secret); err != nil {
		t.Fatal(err)
	}
	r.settle(t)
	m, secret := r.material(t)
	if m.next == nil || string(m.leaf.certPEM) != string(before.leaf.certPEM) || secret.Annotations[AnnotationRotate] != "" {
		t.Fatalf("next authority: %t, the old certificate serves on and the annotation is gone", m.next != nil)
	}
	r.mustPublish(t, m.next, true)
	r.clock.Step(lifetimes.Overlap)
	r.settle(t)
	second, _ := r.material(t)
	if second.next != nil || string(second.authority.certPEM) != string(m.next.certPEM) || string(second.leaf.certPEM) == string(m.leaf.certPEM) {
		t.Fatal("after the overlap the next authority signs and the certificate is new")
	}
	r.mustPublish(t, before.authority, true)
	r.clock.Step(lifetimes.Overlap)
	r.settle(t)
	r.mustPublish(t, before.authority, false)
	r.mustPublish(t, second.authority, true)
}

// Who asks again while one authority is on its way, as that may have leaked, gets another after it.
func TestARotationThatIsAskedForDuringAnotherFollowsIt(t *testing.T) {
	r := newReplicas(t, 2, interceptor.Funcs{})
	r.settle(t)
	ask := func() {
		_, secret := r.material(t)
		secret.Annotations = map[string]string{AnnotationRotate: "true"}
		if err := r.client.Update(t.Context(), &secret); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	r.settle(t)
	first, _ := r.material(t)
	ask()
	for range 4 {
		r.settle(t)
		r.clock.Step(lifetimes.Overlap)
	}
	r.settle(t)
	last, secret := r.material(t)
	if string(last.authority.certPEM) == string(first.next.certPEM) || last.next != nil || secret.Annotations[AnnotationRotate] != "" {
		t.Errorf("the authority that was on its way still signs: %t, another is on its way: %t, asked for: %q",
			string(last.authority.certPEM) == string(first.next.certPEM), last.next != nil, secret.Annotations[AnnotationRotate])
	}
}

func (r *replicas) mustPublish(t *testing.T, authority *pair, want bool) {
	t.Helper()
	for name, bundle := range r.published(t) {
		if holds(bundle, authority.certificate) != want {
			t.Errorf("%s has the authority: %t, want %t", name, !want, want)
		}
	}
}

// An authority signs only once it has been published without a break for the overlap.
func TestAnAuthorityThatIsTakenBackDoesNotSign(t *testing.T) {
	r := newReplicas(t, 1, interceptor.Funcs{})
	r.settle(t)
	r.clock.Step(lifetimes.Authority - lifetimes.AuthorityRenewal)
	r.settle(t)
	m, _ := r.material(t)
	if m.next == nil {
		t.Fatal("there is no next authority")
	}
	var taken admissionregistrationv1.ValidatingWebhookConfiguration
	if err := r.client.Get(t.Context(), client.ObjectKey{Name: "v"}, &taken); err != nil {
		t.Fatal(err)
	}
	taken.Webhooks[0].ClientConfig.CABundle = m.authority.certPEM
	if err := r.client.Update(t.Context(), &taken); err != nil {
		t.Fatal(err)
	}
	r.clock.Step(lifetimes.Overlap)
	r.settle(t)
	if after, _ := r.material(t); after.next == nil {
		t.Error("the next authority signs although an apiserver may not know it")
	}
	r.mustPublish(t, m.next, true)
	r.clock.Step(lifetimes.Overlap)
	r.settle(t)
	if after, _ := r.material(t); after.next != nil {
		t.Error("the next authority does not sign after a whole overlap")
	}
}

// A replica that read the Secret before another one wrote it must not undo anything.
func TestAReplicaThatLagsChangesNothing(t *testing.T) {
	var other *keeper
	r := newReplicas(t, 2, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			if quick := other; quick != nil {
				other = nil
				if _, err := quick.Reconcile(ctx, reconcile.Request{}); err != nil {
					return err
				}
			}
			return c.Update(ctx, object, opts...)
		},
	})
	other = r.keepers[1]
	r.settle(t)
	first, secret := r.material(t)
	secret.Annotations = map[string]string{AnnotationRotate: "true"}
	if err := r.client.Update(t.Context(), &secret); err != nil {
		t.Fatal(err)
	}
	other = r.keepers[1]
	r.settle(t)
	m, _ := r.material(t)
	if m.next == nil || string(m.authority.certPEM) != string(first.authority.certPEM) {
		t.Error("two replicas at the same time made more than one next authority")
	}
	r.mustPublish(t, m.next, true)
}

func TestWhatCannotBeUsedIsReplaced(t *testing.T) {
	cases := map[string]func(data map[string][]byte, clock *testclock.FakeClock){
		"a certificate that is rubbish": func(data map[string][]byte, _ *testclock.FakeClock) { data[corev1.TLSCertKey] = []byte("x") },
		"an authority that is rubbish":  func(data map[string][]byte, _ *testclock.FakeClock) { data[authorityKey] = []byte("x") },
		"a certificate that is gone": func(data map[string][]byte, _ *testclock.FakeClock) {
			delete(data, corev1.TLSCertKey)
			delete(data, corev1.TLSPrivateKeyKey)
		},
		"an empty Secret":                      func(data map[string][]byte, _ *testclock.FakeClock) { clear(data) },
		"an authority that expired meanwhile":  func(_ map[string][]byte, clock *testclock.FakeClock) { clock.Step(2 * lifetimes.Authority) },
		"a certificate that expired meanwhile": func(_ map[string][]byte, clock *testclock.FakeClock) { clock.Step(lifetimes.Leaf) },
		"a certificate for another service": func(data map[string][]byte, _ *testclock.FakeClock) {
			authority, _ := readPair(data[authorityCert], data[authorityKey])
			leaf, _ := authority.issue([]string{"other.ns.svc"}, now, time.Hour)
			data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey] = leaf.certPEM, leaf.keyPEM
		},
		"a certificate of another authority": func(data map[string][]byte, _ *testclock.FakeClock) {
			authority, _ := newAuthority("svc-ca", now, time.Hour)
			leaf, _ := authority.issue([]string{"svc.ns.svc", "svc", "svc.ns"}, now, time.Hour)
			data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey] = leaf.certPEM, leaf.keyPEM
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			r := newReplicas(t, 1, interceptor.Funcs{})
			for range 4 {
				if _, err := r.keepers[0].Reconcile(t.Context(), reconcile.Request{}); err != nil {
					t.Fatal(err)
				}
			}
			_, secret := r.material(t)
			spoil(secret.Data, r.clock)
			if err := r.client.Update(t.Context(), &secret); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				if _, err := r.keepers[0].Reconcile(t.Context(), reconcile.Request{}); err != nil {
					t.Fatal(err)
				}
			}
			r.mustTrust(t)
			m, _ := r.material(t)
			if !r.keepers[0].rotation.serves(m.leaf, m.authority, r.clock.Now()) {
				t.Error("what is in the Secret cannot be served")
			}
		})
	}
}

func TestAnAdministratorWhoRemovesAConfigurationStopsNothing(t *testing.T) {
	r := newReplicas(t, 1, interceptor.Funcs{})
	if err := r.client.Delete(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "m"}}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := r.keepers[0].Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	var other admissionregistrationv1.ValidatingWebhookConfiguration
	if err := r.client.Get(t.Context(), client.ObjectKey{Name: "v"}, &other); err != nil {
		t.Fatal(err)
	}
	m, _ := r.material(t)
	if !holds(other.Webhooks[0].ClientConfig.CABundle, m.authority.certificate) {
		t.Error("the other configuration does not get the authority")
	}
}
