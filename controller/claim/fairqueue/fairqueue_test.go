// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fairqueue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim/fairqueue"
)

func TestNamespacesAreServedInTurn(t *testing.T) {
	cases := map[string]struct{ added, want string }{
		"one namespace is served in the order of arrival":    {"a/1 a/2 a/3", "a/1 a/2 a/3"},
		"a request overtakes the burst of another namespace": {"a/1 a/2 a/3 b/1", "a/1 b/1 a/2 a/3"},
		"two bursts share":                                             {"a/1 a/2 a/3 b/1 b/2 b/3", "a/1 b/1 a/2 b/2 a/3 b/3"},
		"a request that comes again keeps its place":                   {"a/1 a/2 a/1 b/1", "a/1 b/1 a/2"},
		"a small namespace leaves its turns to those that have work":   {"a/1 b/1 c/1 b/2 b/3 c/2", "a/1 b/1 c/1 b/2 c/2 b/3"},
		"a namespace that had no work is not owed turns of the past":   {"a/1 a/2 a/3 a/4 b/1 b/2", "a/1 b/1 a/2 b/2 a/3 a/4"},
		"namespaces that share a prefix are different namespaces also": {"a/1 a/2 aa/1", "a/1 aa/1 a/2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			queue := fairqueue.New("", workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Millisecond, time.Second))
			for word := range strings.FieldsSeq(tc.added) {
				namespace, claim, _ := strings.Cut(word, "/")
				queue.Add(ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: claim}})
			}
			var got []string
			for queue.Len() > 0 {
				request, _ := queue.Get()
				got = append(got, request.String())
				queue.Done(request)
			}
			if diff := cmp.Diff(strings.Fields(tc.want), got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARequestThatComesWhileItIsWorkedOnIsServedAgainAndNotTwiceAtOnce(t *testing.T) {
	queue := fairqueue.New("", workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Millisecond, time.Second))
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: "1"}}
	queue.Add(request)
	queue.Get()
	queue.Add(request)
	if got := queue.Len(); got != 0 {
		t.Errorf("Len() while it is worked on = %d, want 0", got)
	}
	queue.Done(request)
	if got := queue.Len(); got != 1 {
		t.Errorf("Len() afterwards = %d, want 1", got)
	}
}
