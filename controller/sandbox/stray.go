// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

// strayFor is how long a Pod may go astray, from when this process noticed it: a Sandbox that was
// restored adopts it meanwhile.
const strayFor = 5 * time.Minute

// stray says whether a Pod bears the marks that only this controller sets, and nobody controls it:
// its Sandbox was deleted without it.
func stray(pod metav1.Object) bool {
	labels := pod.GetLabels()
	return labels[keys.Sandbox] == "true" && labels[keys.SandboxNameHash] != "" &&
		metav1.GetControllerOf(pod) == nil && pod.GetDeletionTimestamp() == nil
}

// endStray ends the Pod of that name once it has been astray for too long, be it that there is no
// Sandbox that may adopt it, or one that does not. Until then it stays isolated.
func (r *Reconciler) endStray(ctx context.Context, key client.ObjectKey) error {
	pod, err := lookup.Object(ctx, lookup.Glancing(r.client), key.Namespace, key.Name, &corev1.Pod{})
	if err != nil {
		return err
	}
	if pod == nil || !stray(pod) {
		r.strays.forget(key)
		return nil
	}
	now := r.clock.Now()
	if left := r.strays.noticed(key, pod.UID, now).Add(strayFor).Sub(now); left > 0 {
		r.waker.After(key, left)
		return r.keepApart(ctx, key.Namespace, []*corev1.Pod{pod})
	}
	fresh, err := lookup.Object(ctx, r.live, key.Namespace, key.Name, &corev1.Pod{})
	if err != nil || fresh == nil || fresh.UID != pod.UID || !stray(fresh) {
		return err
	}
	if err := r.endPod(ctx, fresh, client.Preconditions{UID: &fresh.UID, ResourceVersion: &fresh.ResourceVersion}); err != nil {
		return fmt.Errorf("end pod %q, which no Sandbox controls: %w", key.Name, err)
	}
	r.recorder.Eventf(fresh, nil, corev1.EventTypeWarning, eventStrayPod, actionDeletingPod,
		"No Sandbox controls this Pod of a Sandbox for %s, so that nobody would ever end it", strayFor)
	return nil
}

// strays remembers since when Pods are astray.
type strays struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]strayPod
}

type strayPod struct {
	pod   types.UID
	since time.Time
}

// noticed is since when that Pod is known to be astray, now if it was not.
func (s *strays) noticed(key types.NamespacedName, pod types.UID, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry, known := s.entries[key]; known && entry.pod == pod {
		return entry.since
	}
	if s.entries == nil {
		s.entries = map[types.NamespacedName]strayPod{}
	}
	s.entries[key] = strayPod{pod: pod, since: now}
	return now
}

func (s *strays) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, key)
}
