// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// A quota of the cluster counts Sandboxes exactly, also when they come at the same time, as no rule can: a rule
// judges one object by what was there a moment ago.
func TestAQuotaCountsSandboxesThatComeAtTheSameTime(t *testing.T) {
	t.Parallel()
	e := server.NewEnvironment(t)
	const few, many = 3, 12
	three := corev1.ResourceList{"count/sandboxes.agents.x-k8s.io": *resource.NewQuantity(few, resource.DecimalSI)}
	if err := apiserver.Quota(t.Context(), e.Client, e.Namespace, three); err != nil {
		t.Fatal(err)
	}
	faults := make([]error, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			box := makeSandbox(calledBox(fmt.Sprintf("box-%d", i)))
			box.SetNamespace(e.Namespace)
			box.SetUID("")
			faults[i] = e.Client.Create(t.Context(), box)
		})
	}
	all.Wait()
	made := 0
	for _, fault := range faults {
		if fault == nil {
			made++
		} else if !strings.Contains(fault.Error(), "exceeded quota") {
			t.Errorf("refused for another reason: %v", fault)
		}
	}
	if made != few {
		t.Errorf("%d Sandboxes were made, want %d", made, few)
	}
}
