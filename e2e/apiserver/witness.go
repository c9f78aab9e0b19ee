// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
)

// Witness sees every change of the Sandboxes of a namespace as it was stored and
// remembers which claim had which.
type Witness struct {
	watcher watch.Interface
	done    chan struct{}

	mu sync.Mutex
	// had are the Sandboxes that each claim had, served the claims that each Sandbox had.
	had, served map[types.UID]map[types.UID]string
	// warm are the claims that had a Sandbox of a pool.
	warm sets.Set[types.UID]
	// stopped is true once nobody wants to know more.
	stopped bool
	// blind is true when the watch ended before.
	blind bool
}

// NewWitness begins to watch. The caller stops it.
func NewWitness(ctx context.Context, c client.WithWatch, namespace string) (*Witness, error) {
	watcher, err := Watch(ctx, c, &agentsv1beta1.SandboxList{}, namespace)
	if err != nil {
		return nil, err
	}
	w := &Witness{
		watcher: watcher, done: make(chan struct{}),
		had: map[types.UID]map[types.UID]string{}, served: map[types.UID]map[types.UID]string{}, warm: sets.New[types.UID](),
	}
	go w.watch()
	return w, nil
}

func (w *Witness) watch() {
	defer close(w.done)
	for event := range w.watcher.ResultChan() {
		w.see(event)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blind = !w.stopped
}

func (w *Witness) see(event watch.Event) {
	sandbox, isSandbox := event.Object.(*agentsv1beta1.Sandbox)
	if !isSandbox || event.Type == watch.Deleted {
		return
	}
	owner := metav1.GetControllerOf(sandbox)
	if owner == nil || owner.Kind != extensionsv1beta1.SandboxClaimKind {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	put(w.had, owner.UID, sandbox.UID, sandbox.Name)
	put(w.served, sandbox.UID, owner.UID, owner.Name)
	if sandbox.Labels[keys.LaunchType] == blueprint.LaunchWarm {
		w.warm.Insert(owner.UID)
	}
}

func put(in map[types.UID]map[types.UID]string, key, value types.UID, name string) {
	if in[key] == nil {
		in[key] = map[types.UID]string{}
	}
	in[key][value] = name
}

// Served is how many claims had a Sandbox.
func (w *Witness) Served() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.had)
}

// Adopted is how many claims had a Sandbox of a pool.
func (w *Witness) Adopted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.warm)
}

// Doubles lists every claim that ever had two Sandboxes and every Sandbox that ever
// had two claims. It lists the watch as well if that ended before it was stopped.
func (w *Witness) Doubles() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var doubles []error
	if w.blind {
		doubles = append(doubles, errors.New("the watch of Sandboxes ended, and what came after it was not seen"))
	}
	for claim, sandboxes := range w.had {
		if len(sandboxes) > 1 {
			doubles = append(doubles, fmt.Errorf("claim %s had %d Sandboxes: %v", claim, len(sandboxes), sandboxes))
		}
	}
	for sandbox, claims := range w.served {
		if len(claims) > 1 {
			doubles = append(doubles, fmt.Errorf("sandbox %s had %d claims: %v", sandbox, len(claims), claims))
		}
	}
	return doubles
}

// Stop ends the watch.
func (w *Witness) Stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.watcher.Stop()
	<-w.done
}
