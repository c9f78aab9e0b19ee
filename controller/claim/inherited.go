// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// inheritedPage is how many claims are read at once.
const inheritedPage = 500

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
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxClaimKind + "List"))
	for more := true; more; more = page.Continue != "" {
		if err := live.List(ctx, page, client.Limit(inheritedPage), client.Continue(page.Continue)); err != nil {
			return fmt.Errorf("read the claims of earlier leaders: %w", err)
		}
		for _, claim := range page.Items {
			claims[claim.UID] = struct{}{}
		}
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
