// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package warmpool

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// What a pass found out about a pool is not written to the next one of its name, be it
// for a moment.
func TestAPoolIsNotToldOfTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	var e *environment
	lost := func(p *extensionsv1beta1.SandboxWarmPool) { p.Spec.TemplateRef.Name = "nowhere" }
	first := makePool(1, lost)
	m := &apiserver.Meanwhile{Method: http.MethodPatch, Path: "/sandboxwarmpools/pool/status", Happen: func() {
		e.Delete(e.pool())
		e.Create(makePool(1))
	}}
	e = newEnvironment(t, func(made *environment) { made.Wrap = m.Wrap })
	watcher, err := apiserver.Watch(t.Context(), e.Client, &extensionsv1beta1.SandboxWarmPoolList{}, e.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	e.Create(makeTemplate(), first)
	for event := range watcher.ResultChan() {
		pool, isPool := event.Object.(*extensionsv1beta1.SandboxWarmPool)
		if !isPool || pool.UID == first.UID {
			continue
		}
		said := meta.FindStatusCondition(pool.Status.Conditions, extensionsv1beta1.PoolConditionProgressing)
		if said != nil && said.Reason == reasonTemplateNotFound {
			t.Errorf("the second pool was told of the first: %s", said.Message)
		}
		if pool.Status.ReadyReplicas == 1 {
			return
		}
	}
	t.Error("the watch ended before the second pool was full")
}
