// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package warmpool

import (
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// The cache shows the template as late as it likes: the pool is filled from what the
// apiserver has, and never says that it is not there.
func TestAPoolFindsATemplateThatTheCacheHasNotSeenYet(t *testing.T) {
	t.Parallel()
	late := apiserver.NewLag(1, 10_000*time.Hour, 0).Of("sandboxtemplates")
	e := newEnvironment(t, func(e *environment) { e.Lag = late })
	late.Begin()
	var mu sync.Mutex
	said := map[string]bool{}
	caughtUp := e.Watch(&extensionsv1beta1.SandboxWarmPoolList{}, func(event watch.Event) {
		pool, isPool := event.Object.(*extensionsv1beta1.SandboxWarmPool)
		if !isPool {
			return
		}
		if c := meta.FindStatusCondition(pool.Status.Conditions, extensionsv1beta1.PoolConditionProgressing); c != nil {
			mu.Lock()
			defer mu.Unlock()
			said[c.Reason] = true
		}
	})
	e.Create(makeTemplate(), makePool(2))
	e.settled(2)
	caughtUp()
	mu.Lock()
	defer mu.Unlock()
	if len(said) == 0 || said[reasonTemplateNotFound] {
		t.Errorf("the pool said %v, want nothing of what was not found", said)
	}
}
