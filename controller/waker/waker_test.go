// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package waker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// asked is a queue that remembers what it was asked for.
type asked struct {
	workqueue.TypedRateLimitingInterface[ctrl.Request]

	now   []ctrl.Request
	after []time.Duration
}

func (a *asked) Add(request ctrl.Request) { a.now = append(a.now, request) }

func (a *asked) AddAfter(_ ctrl.Request, after time.Duration) { a.after = append(a.after, after) }

func (a *asked) Len() int { return len(a.now) }

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
			var w Waker
			w.After(client.ObjectKey{}, tc.after) // before the controller has started
			if err := w.Source().Start(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			w.After(client.ObjectKey{Namespace: "team-a", Name: "box"}, tc.after)
			if len(queue.after) != 1 || queue.after[0] != tc.want {
				t.Errorf("the queue was asked for %v, want %s", queue.after, tc.want)
			}
		})
	}
}

func TestAnObjectIsWokenOnceTheControllerHasStarted(t *testing.T) {
	queue, box := &asked{}, client.ObjectKey{Namespace: "team-a", Name: "box"}
	var w Waker
	w.Now(box)
	if got := w.Queued(); got != 0 {
		t.Errorf("%d wait in a queue that is not there", got)
	}
	if err := w.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	w.Now(box)
	if diff := cmp.Diff([]ctrl.Request{{NamespacedName: box}}, queue.now); diff != "" || w.Queued() != 1 {
		t.Errorf("%d wait (-want +got):\n%s", w.Queued(), diff)
	}
}
