// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fairqueue_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/fairqueue"
)

// never is a back-off that does not end in a test.
const never = time.Hour

func newQueue(t *testing.T) priorityqueue.PriorityQueue[ctrl.Request] {
	t.Helper()
	made := fairqueue.New("", workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](never, never))
	queue, hasPriorities := made.(priorityqueue.PriorityQueue[ctrl.Request])
	if !hasPriorities {
		t.Fatalf("%T knows no priorities", made)
	}
	t.Cleanup(queue.ShutDown)
	return queue
}

// add adds requests such as "team-a/box", or "team-a/box@-100" with a priority.
func add(t *testing.T, queue priorityqueue.PriorityQueue[ctrl.Request], words string) {
	t.Helper()
	for word := range strings.FieldsSeq(words) {
		key, level, ranked := strings.Cut(word, "@")
		namespace, name, _ := strings.Cut(key, "/")
		request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
		if !ranked {
			queue.Add(request)
			continue
		}
		priority, err := strconv.Atoi(level)
		if err != nil {
			t.Fatal(err)
		}
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
	}
}

// take takes all requests, written as in add.
func take(queue priorityqueue.PriorityQueue[ctrl.Request]) []string {
	var got []string
	for queue.Len() > 0 {
		request, priority, _ := queue.GetWithPriority()
		word := request.String()
		if priority != 0 {
			word += "@" + strconv.Itoa(priority)
		}
		got = append(got, word)
		queue.Done(request)
	}
	return got
}

func TestNamespacesAreServedInTurn(t *testing.T) {
	cases := map[string]struct{ added, want string }{
		"one namespace is served in the order of arrival":    {"a/1 a/2 a/3", "a/1 a/2 a/3"},
		"a request overtakes the burst of another namespace": {"a/1 a/2 a/3 b/1", "a/1 b/1 a/2 a/3"},
		"two bursts share":                                             {"a/1 a/2 a/3 b/1 b/2 b/3", "a/1 b/1 a/2 b/2 a/3 b/3"},
		"a request that comes again keeps its place":                   {"a/1 a/2 a/1 b/1", "a/1 b/1 a/2"},
		"a small namespace leaves its turns to those that have work":   {"a/1 b/1 c/1 b/2 b/3 c/2", "a/1 b/1 c/1 b/2 c/2 b/3"},
		"a namespace that had no work is not owed turns of the past":   {"a/1 a/2 a/3 a/4 b/1 b/2", "a/1 b/1 a/2 b/2 a/3 a/4"},
		"namespaces that share a prefix are different namespaces also": {"a/1 a/2 aa/1", "a/1 aa/1 a/2"},
		"what has changed comes before what was there at the start":    {"a/1@-100 a/2@-100 b/1", "b/1 a/1@-100 a/2@-100"},
		"what was there at the start does not wait for ever": {
			"z/1@-100 z/2@-100 a/1 a/2 a/3 a/4 a/5 a/6 a/7 a/8 a/9", "a/1 a/2 a/3 a/4 a/5 a/6 a/7 z/1@-100 a/8 a/9 z/2@-100",
		},
		"those of a low priority are served in turn also":  {"a/1@-100 a/2@-100 b/1@-100", "a/1@-100 b/1@-100 a/2@-100"},
		"one that changes rises":                           {"a/1@-100 a/2@-100 b/1@-100 a/2", "a/2 a/1@-100 b/1@-100"},
		"one that was to be looked at again does not sink": {"a/1 a/2 a/1@-100", "a/1 a/2"},
		"one that has risen does not come twice":           {"a/1@-100 a/1 a/1@-100", "a/1"},
		"a namespace of which all have risen has no turn":  {"a/1@-100 b/1@-100 b/2@-100 a/1 c/1@-100", "a/1 b/1@-100 c/1@-100 b/2@-100"},
		"a place that is empty is no turn":                 {"a/1@-100 a/2@-100 b/1@-100 a/1", "a/1 a/2@-100 b/1@-100"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			queue := newQueue(t)
			add(t, queue, tc.added)
			if diff := cmp.Diff(strings.Fields(tc.want), take(queue)); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARequestThatComesWhileItIsWorkedOnIsServedAgainAndNotTwiceAtOnce(t *testing.T) {
	queue := newQueue(t)
	add(t, queue, "a/1@-100")
	request, _ := queue.Get()
	add(t, queue, "a/1 a/2@-100")
	if got := queue.Len(); got != 1 {
		t.Errorf("Len() while it is worked on = %d, want 1", got)
	}
	queue.Done(request)
	if diff := cmp.Diff([]string{"a/1", "a/2@-100"}, take(queue)); diff != "" {
		t.Errorf("order afterwards (-want +got):\n%s", diff)
	}
}

// A pass that failed waits for its back-off, which grows, unless the object changes.
func TestBackOff(t *testing.T) {
	queue := newQueue(t)
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: "1"}}
	queue.AddRateLimited(request)
	queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
	if got := queue.Len(); got != 0 {
		t.Errorf("Len() during the back-off = %d, want 0", got)
	}
	if got := queue.NumRequeues(request); got != 2 {
		t.Errorf("NumRequeues() = %d, want 2", got)
	}
	queue.Forget(request)
	if got := queue.NumRequeues(request); got != 0 {
		t.Errorf("NumRequeues() of what was forgotten = %d, want 0", got)
	}
	queue.Add(request)
	if diff := cmp.Diff([]string{"a/1"}, take(queue)); diff != "" {
		t.Errorf("after the change (-want +got):\n%s", diff)
	}
	queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, After: time.Nanosecond}, request)
	if got, ended := queue.Get(); got != request || ended { // of two times the earlier counts
		t.Errorf("Get() = %v, %v, want %v", got, ended, request)
	}
}

func TestAQueueThatIsShutDownGivesOutNothingMore(t *testing.T) {
	queue := newQueue(t)
	add(t, queue, "a/1 a/2")
	queue.ShutDown()
	if got, ended := queue.Get(); !ended {
		t.Errorf("Get() = %v, want the end", got)
	}
}
