// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

func TestFloorRefusals(t *testing.T) {
	privileged := &corev1.SecurityContext{Privileged: new(true)}
	gvisor := config.RuntimeClass{Classes: []string{"gvisor", "kata"}, Required: true}
	cases := map[string]struct {
		pod  corev1.PodSpec
		tier config.RuntimeClass
		// want are the fields and values that are refused.
		want map[string]any
	}{
		"an ordinary Pod": {pod: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			Volumes:                      []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Containers: []corev1.Container{{
				SecurityContext: &corev1.SecurityContext{Privileged: new(false)}, Ports: []corev1.ContainerPort{{ContainerPort: 80}},
			}},
		}},
		"host namespaces": {
			pod:  corev1.PodSpec{HostNetwork: true, HostPID: true, HostIPC: true},
			want: map[string]any{"hostNetwork": true, "hostPID": true, "hostIPC": true},
		},
		"the token": {
			pod:  corev1.PodSpec{AutomountServiceAccountToken: new(true)},
			want: map[string]any{"automountServiceAccountToken": true},
		},
		"a hostPath, by its place": {
			pod: corev1.PodSpec{Volumes: []corev1.Volume{
				{Name: "tmp"}, {Name: "etc", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}},
			}},
			want: map[string]any{"volumes[1].hostPath.path": "/etc"},
		},
		"privileged containers of every list": {
			pod: corev1.PodSpec{
				InitContainers: []corev1.Container{{SecurityContext: privileged}},
				Containers:     []corev1.Container{{}, {SecurityContext: privileged}},
				EphemeralContainers: []corev1.EphemeralContainer{
					{EphemeralContainerCommon: corev1.EphemeralContainerCommon{SecurityContext: privileged}},
				},
			},
			want: map[string]any{
				"initContainers[0].securityContext.privileged":      true,
				"containers[1].securityContext.privileged":          true,
				"ephemeralContainers[0].securityContext.privileged": true,
			},
		},
		"a hostPort, by its place": {
			pod:  corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 1}, {HostPort: 8080}}}}},
			want: map[string]any{"containers[0].ports[1].hostPort": int32(8080)},
		},
		"no RuntimeClass where one is required":  {tier: gvisor, want: map[string]any{"runtimeClassName": ""}},
		"another RuntimeClass than is required":  {pod: corev1.PodSpec{RuntimeClassName: new("runc")}, tier: gvisor, want: map[string]any{"runtimeClassName": "runc"}},
		"a RuntimeClass that is required":        {pod: corev1.PodSpec{RuntimeClassName: new("kata")}, tier: gvisor},
		"no RuntimeClass where one is preferred": {tier: config.RuntimeClass{Classes: []string{"gvisor"}}},
		"everything at once comes back together": {
			pod: corev1.PodSpec{
				HostNetwork: true,
				Containers:  []corev1.Container{{SecurityContext: privileged, Ports: []corev1.ContainerPort{{HostPort: 1}}}},
			},
			tier: gvisor,
			want: map[string]any{
				"hostNetwork": true, "containers[0].securityContext.privileged": true, "containers[0].ports[0].hostPort": int32(1), "runtimeClassName": "",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]any{}
			for _, refusal := range floorRefusals(&tc.pod, tc.tier) {
				got[refusal.Field] = refusal.BadValue
				if refusal.Detail == "" {
					t.Errorf("%s has no remedy", refusal.Field)
				}
			}
			want := map[string]any{}
			for field, value := range tc.want {
				want["spec.podTemplate.spec."+field] = value
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("floorRefusals() (-want +got):\n%s", diff)
			}
		})
	}
}
