// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

const (
	restartPolicyRecreate = "Recreate"

	// firstRestart is how long a first failed Pod stays before there is a new one. Each
	// further failure doubles that, up to lastRestart.
	firstRestart = 10 * time.Second
	lastRestart  = 5 * time.Minute
	// calm is how long after its turn a new Pod must hold for the next failure to count
	// as the first again.
	calm = 10 * time.Minute
)

// recreates says whether the Pod failed and its Sandbox asks for a new one.
func (s *scope) recreates() bool {
	return len(s.owned) == 1 && s.owned[0].Status.Phase == corev1.PodFailed && s.owned[0].DeletionTimestamp == nil &&
		!s.suspended() && !s.expired() && s.sandbox.Annotations[keys.RestartPolicy] == restartPolicyRecreate
}

// isFailing holds for a failed Pod that a new one is to follow. It says why it failed.
func isFailing(s *scope) (reason, message string, holds bool) {
	if !s.recreates() {
		return "", "", false
	}
	message = fmt.Sprintf("%s; a new Pod with the same volumes is made at %s", failureOf(&s.owned[0].Status), s.restartAt.UTC().Format(time.RFC3339))
	return agentsv1beta1.ReasonPodFailed, message, true
}

// failureOf puts into words why a Pod failed.
func failureOf(status *corev1.PodStatus) string {
	if status.Reason != "" {
		return fmt.Sprintf("%s: %s: %s", messagePodFailed, status.Reason, status.Message)
	}
	for _, container := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
		if end := container.State.Terminated; end != nil && end.ExitCode != 0 {
			return fmt.Sprintf("%s: container %q ended with exit code %d (%s)", messagePodFailed, container.Name, end.ExitCode, end.Reason)
		}
	}
	return messagePodFailed
}

// restarts remembers how often the Pods of a Sandbox failed of late. A controller that
// has just started knows of none, and begins with the first delay.
type restarts struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]restart
}

// restart is the newest failure of a Sandbox's Pods.
type restart struct {
	pod   types.UID
	seen  time.Time
	count int
}

func (f restart) due() time.Time {
	delay := lastRestart
	if doublings := f.count - 1; doublings < 6 {
		delay = min(firstRestart<<doublings, lastRestart)
	}
	return f.seen.Add(delay)
}

// due is when a new Pod may follow the failed one.
func (r *restarts) due(sandbox types.NamespacedName, pod types.UID, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry, known := r.entries[sandbox]
	if known && entry.pod == pod {
		return entry.due()
	}
	if !known || now.Sub(entry.due()) > calm {
		entry.count = 0
	}
	entry = restart{pod: pod, seen: now, count: entry.count + 1}
	if r.entries == nil {
		r.entries = map[types.NamespacedName]restart{}
	}
	r.entries[sandbox] = entry
	return entry.due()
}

func (r *restarts) forget(sandbox types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, sandbox)
}
