// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// versions tell states of what rules may read of the cluster apart.
type versions struct {
	mu   sync.Mutex
	last uint64
	// everywhere are those of what is read of the whole cluster, within those of a namespace.
	everywhere map[engine.Data]uint64
	within     map[string]map[engine.Data]uint64
}

// vintage is the version of each kind of data in a namespace.
type vintage map[engine.Data]uint64

func newVersions() *versions {
	return &versions{everywhere: map[engine.Data]uint64{}, within: map[string]map[engine.Data]uint64{}}
}

// changed notes that data of a namespace, or with none of the cluster, are other ones now. No
// version ever comes back.
func (v *versions) changed(data engine.Data, namespace string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last++
	if namespace == "" {
		v.everywhere[data] = v.last
		return
	}
	if v.within[namespace] == nil {
		v.within[namespace] = map[engine.Data]uint64{}
	}
	v.within[namespace][data] = v.last
}

// of gives the versions that a judgement in a namespace may rest on. What is read after
// this is that old at most.
func (v *versions) of(namespace string) vintage {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := vintage{}
	for _, known := range []map[engine.Data]uint64{v.everywhere, v.within[namespace]} {
		maps.Copy(now, known)
	}
	return now
}

// drop forgets a namespace that is gone.
func (v *versions) drop(namespace string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.within, namespace)
}

// dataEvents note that what rules may read of the cluster is another now: that an object
// came, went, or changed in a way that matters.
func (a *Auditor) dataEvents(ctx context.Context, data engine.Data, matters func(before, after client.Object) bool) toolscache.ResourceEventHandler {
	changed := func(object any) {
		if gone, isTombstone := object.(toolscache.DeletedFinalStateUnknown); isTombstone {
			object = gone.Obj
		}
		if of, isObject := object.(client.Object); isObject {
			a.dataChanged(ctx, data, of)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, first bool) {
			if !first { // nothing was judged before those were listed
				changed(object)
			}
		},
		DeleteFunc: changed,
		UpdateFunc: func(before, after any) {
			one, isObject := before.(client.Object)
			other, areObjects := after.(client.Object)
			if isObject && areObjects && matters(one, other) {
				a.dataChanged(ctx, data, other)
			}
		},
	}
}

// dataChanged tells everybody whose verdicts may be other ones now. Templates and pools are
// read in their own namespace only. A namespace and the RuntimeClasses matter even where no rule reads
// them as data.
func (a *Auditor) dataChanged(ctx context.Context, data engine.Data, object client.Object) {
	r := a.reconciler
	r.versions.changed(data, object.GetNamespace())
	if r.engine.Reads(data) {
		a.members.changed(object.GetNamespace())
		a.wake(ctx, object.GetNamespace())
		return
	}
	switch object.(type) {
	case *corev1.Namespace:
		a.members.changed(object.GetName())
	case *nodev1.RuntimeClass:
		a.members.changed("")
	}
}

// wake asks for a pass over a namespace, or with none over all of them, once the change has
// settled.
func (a *Auditor) wake(ctx context.Context, namespace string) {
	if namespace == "" {
		a.wakeAll(ctx, a.settle)
		return
	}
	a.waker.After(client.ObjectKey{Name: namespace}, a.settle)
}
