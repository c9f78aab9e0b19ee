// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

func inNamespace(name string) client.ListOption { return client.InNamespace(name) }

// withClaimSpec gives the volume claim templates what the apiserver demands.
func withClaimSpec(s *agentsv1beta1.Sandbox) {
	for i := range s.Spec.VolumeClaimTemplates {
		s.Spec.VolumeClaimTemplates[i].Spec = claimSpec()
	}
}

func claimSpec() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		},
	}
}

func withContainer(p *corev1.Pod) {
	p.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
}

func serviceOf(e *environment) *corev1.Service {
	e.Helper()
	service := &corev1.Service{}
	e.Get(boxName, service)
	return service
}

func claimOf(e *environment) *corev1.PersistentVolumeClaim {
	e.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	e.Get("data-"+boxName, claim)
	return claim
}

// patch sends what changed of an object as the user.
func (e *environment) patch(now, before client.Object) {
	e.Helper()
	if err := e.Client.Patch(e.Context(), now, client.MergeFrom(before)); err != nil {
		e.Fatalf("patch %T %s: %v", now, now.GetName(), err)
	}
}
