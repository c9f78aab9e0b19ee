// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"testing"

	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// notebook keeps the Secret that Helm stores a release in.
type notebook struct {
	corev1client.SecretInterface
	size int
}

func (n *notebook) Create(_ context.Context, s *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	n.size = len(s.Data["release"])
	return s, nil
}

// releaseSize is how large Helm's record of a release is, in bytes.
func releaseSize(t *testing.T, r rendered) int {
	t.Helper()
	secrets := &notebook{}
	if err := driver.NewSecrets(secrets).Create("release", &r.Release); err != nil {
		t.Fatal(err)
	}
	if secrets.size == 0 {
		t.Fatal("Helm stored no release")
	}
	return secrets.size
}
