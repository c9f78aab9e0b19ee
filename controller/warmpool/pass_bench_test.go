// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
)

// pools is a cache that shows the members of one pool, and nothing else.
type pools struct {
	client.Client

	members []agentsv1beta1.Sandbox
}

func (p *pools) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if sandboxes, areSandboxes := list.(*agentsv1beta1.SandboxList); areSandboxes {
		sandboxes.Items = p.members
	}
	return nil
}

// What a pass over a pool of two thousand costs that has nothing to do.
func BenchmarkPassOverTwoThousand(b *testing.B) {
	const members = 2000
	described := benchedTemplate("python:3.12-slim")
	for name, now := range map[string]*extensionsv1beta1.SandboxTemplate{
		"as the template describes them": described,
		"stale":                          benchedTemplate("python:3.13-slim"),
	} {
		b.Run(name, func(b *testing.B) {
			pool := makePool(members)
			cached := &pools{members: benchedMembers(b, pool, described, members)}
			r := &Reconciler{client: cached, settings: Settings{ReadinessGrace: grace}}
			memory := newMemory(pool.UID, noon().Add(-time.Hour))
			b.ReportAllocs()
			for b.Loop() {
				s := &scope{pool: pool, now: noon(), grace: grace, memory: memory, removed: map[string]bool{}, template: now, unseen: map[string]sent{}}
				if err := r.gatherMembers(b.Context(), s); err != nil {
					b.Fatal(err)
				}
				if err := s.compare(blueprint.Options{}); err != nil {
					b.Fatal(err)
				}
				p := decide(situation{now: noon(), desired: members, strategy: s.strategy(), members: s.members, known: true, grace: grace})
				if status := desiredStatus(s); len(p.remove)+p.create > 0 || int(status.ReadyReplicas) != members {
					b.Fatalf("%d to remove, %d to make, %d Ready", len(p.remove), p.create, status.ReadyReplicas)
				}
			}
		})
	}
}

func benchedTemplate(image string) *extensionsv1beta1.SandboxTemplate {
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "python", UID: "template-uid"}}
	container := corev1.Container{
		Name: "workspace", Image: image, Command: []string{"sh", "-c", "sleep infinity"},
		Env:       []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", Value: "b"}},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
	}
	template.Spec.PodTemplate.Spec.Containers = []corev1.Container{container}
	return template
}

func benchedMembers(b *testing.B, pool *extensionsv1beta1.SandboxWarmPool, template *extensionsv1beta1.SandboxTemplate, count int) []agentsv1beta1.Sandbox {
	b.Helper()
	made := make([]agentsv1beta1.Sandbox, 0, count)
	for i := range count {
		sandbox, err := blueprint.ForPool(pool, template, blueprint.Options{})
		if err != nil {
			b.Fatal(err)
		}
		blueprint.SetName(sandbox, fmt.Sprintf("pool-%d", i))
		sandbox.UID, sandbox.CreationTimestamp = types.UID(sandbox.Name), metav1.NewTime(noon().Add(-time.Hour))
		sandbox.Status.PodIPs = []string{"10.1.2.3"}
		sandbox.Status.Conditions = []metav1.Condition{{Type: agentsv1beta1.ConditionReady, Status: metav1.ConditionTrue}}
		made = append(made, *sandbox)
	}
	return made
}
