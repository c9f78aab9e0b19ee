// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"net/http"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// What a pass found out about a Sandbox is not written to the next one of its name, be
// it for a moment: a client may be waiting for just that.
func TestASandboxIsNotToldOfTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path  string
		first *agentsv1beta1.Sandbox
	}{
		"by its status":     {"/sandboxes/box/status", makeSandbox(trackingPod("box"))},
		"by its annotation": {"/sandboxes/box", makeSandbox()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e *environment
			m := &apiserver.Meanwhile{Method: http.MethodPatch, Path: tc.path, Happen: func() {
				e.Delete(e.sandbox(boxName))
				e.Create(makeSandbox(suspend, trackingPod("elsewhere")))
			}}
			e = newEnvironment(t, passing(m.Wrap))
			watcher, err := apiserver.Watch(t.Context(), e.Client, &agentsv1beta1.SandboxList{}, e.Namespace)
			if err != nil {
				t.Fatal(err)
			}
			defer watcher.Stop()
			e.Create(tc.first)
			for event := range watcher.ResultChan() {
				now, isSandbox := event.Object.(*agentsv1beta1.Sandbox)
				if !isSandbox || now.UID == tc.first.UID {
					continue
				}
				said := sayCondition(now, agentsv1beta1.ConditionSuspended)
				if said == notSuspended || now.Annotations[keys.PodName] == boxName {
					t.Errorf("the second Sandbox was told of the first: %s, %v", said, now.Annotations)
				}
				if hasParts(now, agentsv1beta1.ReasonSandboxSuspended) == nil { // it has a status of its own
					return
				}
			}
			t.Error("the watch ended before the second Sandbox had its status")
		})
	}
}

// What takes the place of an object of ours while that is mended belongs to somebody else.
func TestWhatTakesThePlaceOfOursIsNotTouched(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path     string
		stranger client.Object
		spoil    func(e *environment)
	}{
		"of the Pod": {"/pods/box", makePod("box", withContainer), func(e *environment) {
			e.edit(withPodMetadata(map[string]string{"team": "b"}, nil))
		}},
		"of the Service": {"/services/box", storableService(), func(e *environment) { drift(e, serviceOf(e)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e *environment
			replaced := make(chan struct{})
			m := &apiserver.Meanwhile{Method: http.MethodPatch, Path: tc.path, Happen: func() {
				defer close(replaced)
				ours, isObject := tc.stranger.DeepCopyObject().(client.Object)
				if !isObject {
					return
				}
				e.Get(boxName, ours)
				if err := e.Client.Delete(t.Context(), ours, client.GracePeriodSeconds(0)); err != nil {
					t.Error(err)
				}
				e.Create(tc.stranger)
			}}
			e = newEnvironment(t, passing(m.Wrap))
			e.running(makeSandbox(trackingPod(boxName), withService(true), withPorts))
			tc.spoil(e)
			<-replaced
			e.Eventually("Ready says whose it is", func() error { return hasParts(e.sandbox(boxName), "ReconcilerError", "cannot adopt unowned") })
			e.idle(boxName)
			now, _ := tc.stranger.DeepCopyObject().(client.Object)
			e.untouched(tc.stranger, now)
		})
	}
}
