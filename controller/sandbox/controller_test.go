// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// asked is a work queue that remembers what it is asked for.
type asked struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]
	after []time.Duration
}

func (a *asked) AddAfter(_ ctrl.Request, after time.Duration) { a.after = append(a.after, after) }

func TestATimerNeitherMissesAChangeOfTheClockNorAWrite(t *testing.T) {
	cases := map[string]struct{ after, want time.Duration }{
		"at once":            {0, time.Millisecond},
		"long ago":           {-time.Hour, time.Millisecond},
		"soon":               {time.Minute, time.Minute},
		"in ten minutes":     {longestNap, longestNap},
		"in a hundred years": {100 * 365 * 24 * time.Hour, longestNap},
		"at the end of time": {1<<63 - 1, longestNap},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			queue := &asked{}
			var r timers
			r.wake(ctrl.Request{}, tc.after) // before the controller has started
			if err := r.Start(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			r.wake(ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "team-a", Name: "box"}}, tc.after)
			if len(queue.after) != 1 || queue.after[0] != tc.want {
				t.Errorf("the queue was asked for %v, want %s", queue.after, tc.want)
			}
		})
	}
}
