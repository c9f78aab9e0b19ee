// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Two names of one hash: the selector of either's Service would select the Pods of both.
func TestASandboxDoesNotJoinTheServiceOfAnotherByTheHashOfItsName(t *testing.T) {
	t.Parallel()
	const older, younger = "agent-33049", "agent-625200"
	if keys.NameHash(older) != keys.NameHash(younger) {
		t.Fatal("the names have different hashes, so this test shows nothing")
	}
	e := newEnvironment(t)
	first := makeSandbox(calledBox(older), withService(true))
	e.running(first)
	e.Create(makeSandbox(calledBox(younger), withService(true)))
	e.saysReady(younger, `False/ReconcilerError: Error seen: metadata.name: Invalid value: "agent-625200": its hash 540ae0e6 is that of `+
		`the older Sandbox "agent-33049", so that labels could not tell their Pods apart: choose another name`)
	if e.Exists(younger, &corev1.Pod{}) || e.Exists(younger, &corev1.Service{}) {
		t.Error("the younger Sandbox has a Pod or a Service")
	}
	e.idle(younger)

	// The older one is not disturbed, and its name is free once it is gone.
	e.saysReady(older, "True/DependenciesReady: Pod is Ready; Service Exists")
	e.Delete(first)
	e.runPod(younger)
	e.saysReady(younger, "True/DependenciesReady: Pod is Ready; Service Exists")
}

func calledBox(name string) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) { s.Name = name }
}
