// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"
)

// One Event when members begin to be held for want of a node, and one when none is.
func TestAPoolThatWaitsForNodesSaysSoOnceAndWhenItEnds(t *testing.T) {
	recorder := events.NewFakeRecorder(8)
	r := &Reconciler{recorder: recorder}
	s := &scope{pool: makePool(3), memory: newMemory("pool-uid", noon()), grace: 5 * time.Minute}
	waiting := many(2, starting(time.Hour), waitsForNode)
	for _, holds := range [][]member{nil, waiting, waiting, nil, nil} {
		s.plan.held = holds
		r.tell(s)
	}
	close(recorder.Events)
	var told []string
	for event := range recorder.Events {
		told = append(told, event)
	}
	want := []string{
		"Warning WarmPoolNotProgressing 2/3 sandboxes are unschedulable past the 5m0s readiness grace period; " +
			"holding them instead of replacing (replacements would be equally unschedulable)",
		"Normal WarmPoolProgressing Warm pool is progressing again",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}
