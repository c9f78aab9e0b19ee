// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// configuration is a webhook configuration with the places of its caBundles.
type configuration struct {
	client.Object

	// bundles are by a name for messages.
	bundles map[string]*[]byte
}

// readConfigurations reads the configurations of the options. Those that do not exist
// are named in missing: an administrator may have removed them.
func readConfigurations(ctx context.Context, reader client.Reader, o Options) (found []configuration, missing, err error) {
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, wanted := range []struct {
		what, name string
		object     client.Object
		bundles    func(name string) map[string]*[]byte
	}{
		{"mutating", o.MutatingWebhook, mutating, func(name string) map[string]*[]byte {
			bundles := map[string]*[]byte{}
			for i := range mutating.Webhooks {
				bundles[name+"/"+mutating.Webhooks[i].Name] = &mutating.Webhooks[i].ClientConfig.CABundle
			}
			return bundles
		}},
		{"validating", o.ValidatingWebhook, validating, func(name string) map[string]*[]byte {
			bundles := map[string]*[]byte{}
			for i := range validating.Webhooks {
				bundles[name+"/"+validating.Webhooks[i].Name] = &validating.Webhooks[i].ClientConfig.CABundle
			}
			return bundles
		}},
	} {
		if wanted.name == "" {
			continue
		}
		err := reader.Get(ctx, client.ObjectKey{Name: wanted.name}, wanted.object)
		switch {
		case apierrors.IsNotFound(err):
			missing = errors.Join(missing, fmt.Errorf("there is no %s webhook configuration %q", wanted.what, wanted.name))
		case err != nil:
			return nil, nil, fmt.Errorf("read %s webhook configuration %q: %w", wanted.what, wanted.name, err)
		default:
			found = append(found, configuration{wanted.object, wanted.bundles(wanted.name)})
		}
	}
	return found, missing, nil
}

// trusted reports whether every bundle has the certificate.
func trusted(configurations []configuration, certificate *x509.Certificate) bool {
	for _, c := range configurations {
		for _, bundle := range c.bundles {
			if !holds(*bundle, certificate) {
				return false
			}
		}
	}
	return true
}

// publish sets every bundle and reports whether that changed any.
func (c configuration) publish(bundle []byte) bool {
	changed := false
	for _, place := range c.bundles {
		if !bytes.Equal(*place, bundle) {
			*place, changed = bytes.Clone(bundle), true
		}
	}
	return changed
}
