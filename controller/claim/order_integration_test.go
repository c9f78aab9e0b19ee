// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// Scripts create the three in one go, in any order. Clients give up at once when they
// read that one of them was not found.
func TestNotFoundIsNeverToldOfWhatComesAMomentLater(t *testing.T) {
	const times = 100
	e := newEnvironment(t, func(e *environment) { e.lag = newLag(1, time.Second, 0) })
	watcher, err := e.client.Watch(context.Background(), &extensionsv1beta1.SandboxClaimList{}, client.InNamespace(e.namespace))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			claim, isClaim := event.Object.(*extensionsv1beta1.SandboxClaim)
			if isClaim && strings.HasSuffix(storedReason(claim), "NotFound") {
				told = append(told, claim.Name+" says "+storedReason(claim))
			}
		}
	}()
	for i := range times {
		name := fmt.Sprintf("set-%d", i)
		e.create(
			makeClaim(name, func(c *extensionsv1beta1.SandboxClaim) { c.Spec.WarmPoolRef.Name = name }),
			makePool(func(p *pool) { emptyPool(nil, p); p.Name, p.Spec.TemplateRef.Name = name, name }),
			makeTemplate(func(t *template) { t.Name = name }),
		)
	}
	e.eventually("every claim is bound", func() error { return e.unbound(times, 0) })
	watcher.Stop()
	<-done
	if len(told) > 0 {
		t.Errorf("%d claims were told wrongly: %v", len(told), told)
	}
}
