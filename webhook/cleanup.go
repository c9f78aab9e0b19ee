// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cleanup deletes the webhook configurations by name, so that nothing calls a
// webhook that is about to go. It needs no replica of the webhook, may be repeated,
// and says in one line each what it did.
func Cleanup(ctx context.Context, c client.Client, o Options, out io.Writer) error {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	targets := []struct {
		what   string
		object client.Object
	}{
		{"MutatingWebhookConfiguration", &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: named(o.MutatingWebhookName)}},
		{"ValidatingWebhookConfiguration", &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named(o.ValidatingWebhookName)}},
	}
	var errs []error
	for _, target := range targets {
		name := target.object.GetName()
		if name == "" {
			continue
		}
		line := "deleted"
		if err := c.Delete(ctx, target.object); apierrors.IsNotFound(err) {
			line = "was not there"
		} else if err != nil {
			errs = append(errs, fmt.Errorf("delete %s %q: %w", target.what, name, err))
			continue
		}
		if _, err := fmt.Fprintf(out, "%s %q: %s\n", target.what, name, line); err != nil {
			errs = append(errs, fmt.Errorf("report: %w", err))
		}
	}
	return errors.Join(errs...)
}
