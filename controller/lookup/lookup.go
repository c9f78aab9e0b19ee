// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lookup reads objects for the controllers.
package lookup

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Eventually lets a list read the cache as it is, without waiting for every write of
// this process to be seen.
var Eventually = &client.ListOptions{DisableReadYourWritesConsistency: true}

// Shared is Eventually without copies: what is listed belongs to the cache and must
// not be changed.
var Shared = &client.ListOptions{DisableReadYourWritesConsistency: true, UnsafeDisableDeepCopy: new(true)}

// Glance reads the cache as it is and copies nothing.
var Glance = &client.GetOptions{DisableReadYourWritesConsistency: true, UnsafeDisableDeepCopy: new(true)}

// Glancing reads each object with Glance.
func Glancing(reader client.Reader) client.Reader { return glancing{reader} }

type glancing struct{ client.Reader }

// Get implements client.Reader.
func (g glancing) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return g.Reader.Get(ctx, key, into, append(options, Glance)...)
}

// Hold has a cache hold kinds from its start on, so that a replica that stands by has them when
// it takes the lead. It must run before the cache starts.
func Hold(ctx context.Context, in cache.Cache, kinds ...client.Object) error {
	for _, kind := range kinds {
		if _, err := in.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return nil
}

// ErrNoNamespace says that a namespace does not exist, as the apiserver says too.
var ErrNoNamespace = errors.New("there is no such namespace")

// Object reads an object; nil, without an error, when there is none.
func Object[T client.Object](ctx context.Context, reader client.Reader, namespace, name string, into T) (T, error) {
	var none T
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("read %T %q: %w", into, name, err)
	}
	return into, nil
}

// Staying reads an object as Object does, and finds none when it is being deleted: admission judges
// it no more, so that nothing that it says may have a new effect.
func Staying[T client.Object](ctx context.Context, reader client.Reader, namespace, name string, into T) (T, error) {
	var none T
	found, err := Object(ctx, reader, namespace, name, into)
	if err != nil || any(found) == any(none) || found.GetDeletionTimestamp() != nil {
		return none, err
	}
	return found, nil
}

// TierLabel reads the tier label of a namespace, from the apiserver when the cache
// does not have the namespace yet: an object may be as young as its namespace. No
// controller writes namespaces, so that the cache is read as it is. The label is
// empty for a namespace that has none. That there is no such namespace is ErrNoNamespace: the
// object outlived it, or the apiserver is not to be believed, and what its tier was
// nobody knows.
func TierLabel(ctx context.Context, cached, live client.Reader, namespace string) (string, error) {
	found, err := Object(ctx, Glancing(cached), "", namespace, &corev1.Namespace{})
	if err == nil && found == nil {
		found, err = Object(ctx, live, "", namespace, &corev1.Namespace{})
	}
	if err != nil {
		return "", err
	}
	if found == nil {
		return "", fmt.Errorf("read the tier of namespace %q: %w", namespace, ErrNoNamespace)
	}
	return found.Labels[keys.Tier], nil
}
