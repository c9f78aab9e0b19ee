// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
)

func class(name string, selector map[string]string) nodev1.RuntimeClass {
	made := nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if selector != nil {
		made.Scheduling = &nodev1.Scheduling{NodeSelector: selector}
	}
	return made
}

func TestAClassThatSelectsNodesNeedsOne(t *testing.T) {
	classes := []nodev1.RuntimeClass{
		class("everywhere", nil), class("unselective", map[string]string{}),
		class("here", map[string]string{"vm": "yes"}), class("nowhere", map[string]string{"gpu": "yes"}),
	}
	got, err := judge.RuntimeClassesOf(classes, func(labels map[string]string) (bool, error) { return labels["vm"] == "yes", nil })
	if err != nil {
		t.Fatal(err)
	}
	want := judge.RuntimeClasses{
		Existing: sets.New("everywhere", "unselective", "here", "nowhere"), Usable: sets.New("everywhere", "unselective", "here"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("RuntimeClassesOf() (-want +got):\n%s", diff)
	}
	unknown := errors.New("the nodes cannot be read")
	if _, err := judge.RuntimeClassesOf(classes, func(map[string]string) (bool, error) { return false, unknown }); !errors.Is(err, unknown) {
		t.Errorf("RuntimeClassesOf() = %v, want %v", err, unknown)
	}
}
