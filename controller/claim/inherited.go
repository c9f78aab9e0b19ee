// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// pageSize is how many objects are read at once.
const pageSize = 500

// inherited are the claims that existed when this process took the lead. An earlier
// leader may have given them a Sandbox without the cache knowing yet; to claims that
// came later only this process can have given one.
type inherited struct {
	mu     sync.Mutex
	loaded bool
	claims map[types.UID]struct{}
}

// load reads the claims from the apiserver, once.
func (i *inherited) load(ctx context.Context, live client.Reader) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.loaded {
		return nil
	}
	claims := map[types.UID]struct{}{}
	gvk := extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxClaimKind)
	err := eachMetadata(ctx, live, gvk, func(claim *metav1.PartialObjectMetadata) { claims[claim.UID] = struct{}{} })
	if err != nil {
		return fmt.Errorf("read the claims of earlier leaders: %w", err)
	}
	i.claims, i.loaded = claims, true
	return nil
}

// has says whether an earlier leader may have served a claim.
func (i *inherited) has(claim types.UID) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, found := i.claims[claim]
	return found
}

// settle notes that what earlier leaders did for a claim is known now.
func (i *inherited) settle(claim types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.claims, claim)
}

// eachMetadata reads the metadata of all objects of a kind from the apiserver.
func eachMetadata(ctx context.Context, live client.Reader, kind schema.GroupVersionKind, see func(*metav1.PartialObjectMetadata)) error {
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for more := true; more; more = page.Continue != "" {
		if err := live.List(ctx, page, client.Limit(pageSize), client.Continue(page.Continue)); err != nil {
			return err
		}
		for i := range page.Items {
			see(&page.Items[i])
		}
	}
	return nil
}
