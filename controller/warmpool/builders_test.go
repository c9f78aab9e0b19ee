// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

const grace = 5 * time.Minute

// noon is the time of every test.
func noon() time.Time { return time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC) }

type edit = func(*member)

// makeMember gives a member that was made an hour before noon and is Ready.
func makeMember(name string, edits ...edit) member {
	m := member{
		sandbox: &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon().Add(-time.Hour)),
		}},
		ready: true, wasReady: true,
	}
	for _, change := range edits {
		change(&m)
	}
	return m
}

func stale(m *member)   { m.stale = true }
func leaving(m *member) { m.leaving = true }
func refused(m *member) { m.refused = true }
func unfit(m *member)   { m.unfit = true }

// starting is a member that was never Ready and was made that long ago.
func starting(ago time.Duration) edit {
	return func(m *member) {
		m.ready, m.wasReady = false, false
		m.since = noon().Add(-ago)
		m.sandbox.CreationTimestamp = metav1.NewTime(m.since)
	}
}

// failedFor is a member that was Ready until that long ago.
func failedFor(ago time.Duration) edit {
	return func(m *member) { m.ready, m.since = false, noon().Add(-ago) }
}

func aged(ago time.Duration) edit {
	return func(m *member) { m.sandbox.CreationTimestamp = metav1.NewTime(noon().Add(-ago)) }
}

// waitsForNode is a member whose Pod finds no node.
func waitsForNode(m *member) { m.held, m.refusal = heldUnschedulable, "no" }

func makePool(replicas int32, edits ...func(*extensionsv1beta1.SandboxWarmPool)) *extensionsv1beta1.SandboxWarmPool {
	pool := &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: "pool", UID: "pool-uid", Generation: 2,
	}}
	pool.Spec.Replicas = &replicas
	pool.Spec.TemplateRef.Name = "python"
	for _, change := range edits {
		change(pool)
	}
	return pool
}

func byStrategy(kind extensionsv1beta1.UpdateStrategyType) func(*extensionsv1beta1.SandboxWarmPool) {
	return func(p *extensionsv1beta1.SandboxWarmPool) {
		p.Spec.UpdateStrategy = &extensionsv1beta1.UpdateStrategy{Type: kind}
	}
}
