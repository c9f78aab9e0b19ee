// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

func TestGlancingWaitsForNoWriteAndCopiesNothing(t *testing.T) {
	var asked client.GetOptions
	reader := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, options ...client.GetOption) error {
			asked.ApplyOptions(options)
			return nil
		},
	}).Build()
	if _, err := lookup.Object(t.Context(), lookup.Glancing(reader), "", "team-a", &corev1.Namespace{}); err != nil {
		t.Fatal(err)
	}
	if !asked.DisableReadYourWritesConsistency || asked.UnsafeDisableDeepCopy == nil || !*asked.UnsafeDisableDeepCopy {
		t.Errorf("it was read with %+v", asked)
	}
}
