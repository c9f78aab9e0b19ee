// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

func TestFloorRefusals(t *testing.T) {
	privileged := &corev1.SecurityContext{Privileged: new(true)}
	gvisor := config.RuntimeClass{Classes: []config.Class{{Name: "gvisor"}, {Name: "kata"}}, Required: true}
	floored := config.RuntimeClass{Classes: []config.Class{{Name: "gvisor"}}, Floor: "gvisor", AtLeast: []string{"kata", "gvisor"}}
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
		"no RuntimeClass where one is preferred": {tier: config.RuntimeClass{Classes: []config.Class{{Name: "gvisor"}}}},
		"a RuntimeClass below the floor":         {pod: corev1.PodSpec{RuntimeClassName: new("runc")}, tier: floored, want: map[string]any{"runtimeClassName": "runc"}},
		"no RuntimeClass where there is a floor": {tier: floored, want: map[string]any{"runtimeClassName": ""}},
		"a RuntimeClass above the floor":         {pod: corev1.PodSpec{RuntimeClassName: new("kata")}, tier: floored},
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
			for _, refusal := range floorRefusals(&corev1.Pod{Spec: tc.pod}, config.Tier{RuntimeClass: tc.tier}, config.Identity{}) {
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

// What goes beyond the tier is refused where the Pod is made, too, and once.
func TestFloorHoldsTheCeilingsOfTheTier(t *testing.T) {
	tier := config.Tier{
		PodSecurity: config.PodSecurity{Deny: "baseline", Version: "v1.37"}, ServiceAccounts: []string{"agent"},
		Hardening: config.Hardening{Token: config.Require, RootFilesystem: config.Require},
		Resources: config.Resources{Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
	}
	pod := hardened(func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(true) })
	const at = "spec.podTemplate.spec."
	want := []string{
		at + `automountServiceAccountToken: Invalid value: true: a sandbox gets no credentials of the cluster: set it to false`,
		at + `containers[0].securityContext.readOnlyRootFilesystem: Invalid value: "": in this tier the root file system of a container is read-only: ` +
			`set it to true, and mount an emptyDir where files are written`,
		at + `serviceAccountName: Invalid value: "": Pods of this tier may not run as ServiceAccount "default": set it to one of: agent`,
		at + `containers[0].resources.limits[memory]: Invalid value: "": the tier gives a Pod 1Gi of memory, so each container needs a limit: set a limit above 0`,
	}
	var got []string
	for _, refusal := range floorRefusals(pod, tier, config.Identity{}) {
		got = append(got, refusal.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("floorRefusals() (-want +got):\n%s", diff)
	}
}

// hardened is a container that keeps to every level of the standards.
func hardened(edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{Name: "workspace", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}}},
	}}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func TestFloorHoldsTheStandardsOfTheTier(t *testing.T) {
	level := func(deny string) config.PodSecurity { return config.PodSecurity{Deny: deny, Version: "v1.37"} }
	baseline := level("baseline")
	container := func(edit func(*corev1.SecurityContext)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { edit(p.Spec.Containers[0].SecurityContext) }
	}
	adding := container(func(c *corev1.SecurityContext) { c.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"} })
	rooted := func(p *corev1.Pod) { p.Spec.SecurityContext.RunAsNonRoot = nil }
	cases := map[string]struct {
		edit func(*corev1.Pod)
		tier config.PodSecurity
		// want are words of the refusals, one each.
		want []string
	}{
		"a hardened Pod":               {func(*corev1.Pod) {}, level("restricted"), nil},
		"a capability more":            {adding, baseline, []string{`container "workspace" must not include "SYS_ADMIN"`}},
		"where no level is configured": {adding, config.PodSecurity{}, []string{"SYS_ADMIN"}},
		"in a tier that denies nothing": {
			adding, level("privileged"), nil,
		},
		"/proc without its mask": {
			container(func(c *corev1.SecurityContext) { c.ProcMount = new(corev1.UnmaskedProcMount) }), baseline, []string{"procMount"},
		},
		"/proc without its mask in a user namespace": {func(p *corev1.Pod) {
			p.Spec.HostUsers = new(false)
			p.Spec.Containers[0].SecurityContext.ProcMount = new(corev1.UnmaskedProcMount)
		}, baseline, []string{"procMount"}},
		"seccomp switched off": {
			container(func(c *corev1.SecurityContext) {
				c.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
			}), baseline, []string{"seccompProfile"},
		},
		"a sysctl of the node": {
			func(p *corev1.Pod) { p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax"}} }, baseline, []string{"kernel.msgmax"},
		},
		"a Windows process of the node": {
			container(func(c *corev1.SecurityContext) {
				c.WindowsOptions = &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}
			}), baseline, []string{"hostProcess"},
		},
		"a capability on what calls itself Windows": {func(p *corev1.Pod) {
			p.Spec.OS = &corev1.PodOS{Name: corev1.Windows}
			adding(p)
		}, baseline, []string{"SYS_ADMIN"}},
		"AppArmor switched off by an annotation": {func(p *corev1.Pod) {
			p.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/workspace": "unconfined"}
		}, baseline, []string{"unconfined"}},
		"an SELinux type of one's own": {
			container(func(c *corev1.SecurityContext) { c.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"} }), baseline, []string{"spc_t"},
		},
		"a probe that the node sends elsewhere": {func(p *corev1.Pod) {
			p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "10.0.0.1"}}}
		}, baseline, []string{"10.0.0.1"}},
		"the same under a version that did not know it": {func(p *corev1.Pod) {
			p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "10.0.0.1"}}}
		}, config.PodSecurity{Deny: "baseline", Version: "v1.33"}, nil},
		"root in a tier of baseline":   {rooted, baseline, nil},
		"root in a tier of restricted": {rooted, level("restricted"), []string{"runAsNonRoot"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := floorRefusals(hardened(tc.edit), config.Tier{PodSecurity: tc.tier}, config.Identity{})
			if len(got) != len(tc.want) {
				t.Fatalf("%d refusals, want %d: %v", len(got), len(tc.want), got)
			}
			for i, words := range tc.want {
				if text := got[i].Error(); !strings.Contains(text, words) || !strings.Contains(text, "spec.podTemplate") {
					t.Errorf("refusal %q says neither where nor %q", text, words)
				}
			}
		})
	}
}

func TestFloorKeepsIdentitiesAway(t *testing.T) {
	projecting := func(source corev1.VolumeProjection) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "tmp"}, {Name: "id", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{}}, source}},
		}}}}
	}
	token := func(audience string, lifetime *int64) corev1.PodSpec {
		return projecting(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: lifetime}})
	}
	mounting := corev1.PodSpec{AutomountServiceAccountToken: new(true), ServiceAccountName: "builder"}
	vault := config.Identity{Audiences: []string{"vault"}, MaxExpirationSeconds: 7200}
	const audience = "spec.podTemplate.spec.volumes[1].projected.sources[1].serviceAccountToken.audience"
	cases := map[string]struct {
		pod     corev1.PodSpec
		allowed config.Identity
		want    string
	}{
		"a token for the apiserver":                         {pod: token("", nil), want: audience},
		"a token for anybody":                               {pod: token("vault", nil), want: audience},
		"a token for an audience on the list":               {pod: token("vault", nil), allowed: vault},
		"the same for too long":                             {pod: token("vault", new(int64(7201))), allowed: vault, want: audience},
		"the same for the default hour and more":            {pod: token("vault", new(int64(3601))), allowed: config.Identity{Audiences: []string{"vault"}}, want: audience},
		"a token for the apiserver where others are listed": {pod: token("", nil), allowed: vault, want: audience},
		"a certificate": {
			pod:     projecting(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{SignerName: "ca"}}),
			allowed: vault, want: "spec.podTemplate.spec.volumes[1].projected.sources[1].podCertificate.signerName",
		},
		"a trust bundle": {
			pod:     projecting(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}}),
			allowed: vault, want: "spec.podTemplate.spec.volumes[1].projected.sources[1].clusterTrustBundle",
		},
		"anything where the rule is off":             {pod: token("", nil), allowed: config.Identity{Audiences: []string{config.AnyIdentity}}},
		"the token of a ServiceAccount":              {pod: mounting, want: "spec.podTemplate.spec.automountServiceAccountToken"},
		"the token of a ServiceAccount on the list":  {pod: mounting, allowed: config.Identity{ServiceAccounts: []string{"builder"}}},
		"the token of another than is on the list":   {pod: mounting, allowed: config.Identity{ServiceAccounts: []string{"other"}}, want: "spec.podTemplate.spec.automountServiceAccountToken"},
		"any ServiceAccount's where the rule is off": {pod: mounting, allowed: config.Identity{ServiceAccounts: []string{config.AnyIdentity}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var want, got []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			for _, refusal := range floorRefusals(&corev1.Pod{Spec: tc.pod}, config.Tier{}, tc.allowed) {
				got = append(got, refusal.Field)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("refused fields (-want +got):\n%s", diff)
			}
		})
	}
}
