// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blueprint_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

type (
	editTemplate = func(*extensionsv1beta1.SandboxTemplate)
	editSandbox  = func(*agentsv1beta1.Sandbox)
)

// makeTemplate gives a template with one container, changed by the edits.
func makeTemplate(edits ...editTemplate) *extensionsv1beta1.SandboxTemplate {
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "python"}}
	template.Spec.PodTemplate.Spec.Containers = []corev1.Container{{
		Name: "workspace", Image: "python:3.12-slim", Ports: []corev1.ContainerPort{{ContainerPort: 8888, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
	}}
	for _, edit := range edits {
		edit(template)
	}
	return template
}

func makePool() *extensionsv1beta1.SandboxWarmPool {
	return &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "pool", UID: "pool-uid"}}
}

func makeClaim(edits ...func(*extensionsv1beta1.SandboxClaim)) *extensionsv1beta1.SandboxClaim {
	claim := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "c", UID: "claim-uid"}}
	for _, edit := range edits {
		edit(claim)
	}
	return claim
}

func inImage(image string) editTemplate {
	return func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.PodTemplate.Spec.Containers[0].Image = image }
}

func withVolume(size string) editTemplate {
	return func(t *extensionsv1beta1.SandboxTemplate) {
		t.Spec.VolumeClaimTemplates = append(t.Spec.VolumeClaimTemplates, agentsv1beta1.PersistentVolumeClaimTemplate{
			EmbeddedObjectMetadata: agentsv1beta1.EmbeddedObjectMetadata{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			}},
		})
	}
}

func public() blueprint.Options {
	return blueprint.Options{Profile: config.EgressProfile{DNS: true, Internet: true}, SafeToEvict: true}
}

// stored is the Sandbox as it comes back from an apiserver: written and read.
func stored(t *testing.T, sandbox *agentsv1beta1.Sandbox) *agentsv1beta1.Sandbox {
	t.Helper()
	text, err := json.Marshal(sandbox)
	if err != nil {
		t.Fatal(err)
	}
	var read agentsv1beta1.Sandbox
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return &read
}

func TestForPoolIsTheContractsMember(t *testing.T) {
	template := makeTemplate(withVolume("1Gi"), func(t *extensionsv1beta1.SandboxTemplate) {
		t.Spec.Service = new(true)
		t.Annotations = map[string]string{keys.EgressProfile: "public", keys.RestartPolicy: "Recreate", "note": "mine"}
		t.Spec.PodTemplate.ObjectMeta.Labels = map[string]string{"app": "x", keys.ClaimUID: "forged"}
	})
	before := template.DeepCopy()
	got, err := blueprint.ForPool(makePool(), template, public())
	if err != nil {
		t.Fatal(err)
	}
	blueprint.SetName(got, "pool-x7k2p")
	hashes, err := blueprint.Hashes(template)
	if err != nil {
		t.Fatal(err)
	}
	want := agentsv1beta1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: "pool-x7k2p",
			Labels: map[string]string{
				keys.WarmPoolSandbox: keys.NameHash("pool"), keys.SandboxTemplateRefHash: keys.NameHash("python"),
				keys.SandboxTemplateHash: hashes.Blueprint, keys.SandboxPodTemplateHash: hashes.PodTemplate,
				keys.LaunchType: "warm", keys.CreatedBy: "controller", keys.Template: keys.TemplateKey("python"),
			},
			Annotations: map[string]string{
				keys.SandboxTemplateRef: "python", keys.PodName: "pool-x7k2p",
				keys.EgressProfile: "public", keys.RestartPolicy: "Recreate",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxWarmPool", Name: "pool", UID: "pool-uid",
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: agentsv1beta1.SandboxSpec{
			SandboxBlueprint: *template.Spec.SandboxBlueprint.DeepCopy(),
			Lifecycle:        agentsv1beta1.Lifecycle{ShutdownPolicy: new(agentsv1beta1.ShutdownPolicyRetain)},
			OperatingMode:    agentsv1beta1.OperatingModeRunning,
		},
	}
	want.Spec.PodTemplate.ObjectMeta = agentsv1beta1.PodMetadata{
		Labels: map[string]string{
			"app": "x", keys.WarmPoolSandbox: keys.NameHash("pool"), keys.SandboxTemplateRefHash: keys.NameHash("python"),
			keys.SandboxTemplateHash: hashes.Blueprint, keys.SandboxPodTemplateHash: hashes.PodTemplate,
		},
		Annotations: map[string]string{blueprint.SafeToEvict: "true"},
	}
	want.Spec.PodTemplate.Spec.AutomountServiceAccountToken = new(false)
	want.Spec.PodTemplate.Spec.DNSPolicy = corev1.DNSNone
	want.Spec.PodTemplate.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"8.8.8.8", "1.1.1.1"}}
	if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("ForPool() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, template); diff != "" {
		t.Errorf("the template was changed (-want +got):\n%s", diff)
	}
}

func TestWhetherTheAutoscalerMayEvictAMember(t *testing.T) {
	says := func(value string) editTemplate {
		return func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.PodTemplate.ObjectMeta.Annotations = map[string]string{blueprint.SafeToEvict: value}
		}
	}
	silent := func(*extensionsv1beta1.SandboxTemplate) {}
	cases := map[string]struct {
		template editTemplate
		platform bool
		// want is the value of the annotation; empty for none.
		want string
	}{
		"the platform lets it":                       {silent, true, "true"},
		"the platform does not":                      {silent, false, ""},
		"the template says no":                       {says("false"), true, "false"},
		"the template says yes, on no such platform": {says("true"), false, "true"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			member, err := blueprint.ForPool(makePool(), makeTemplate(tc.template), blueprint.Options{SafeToEvict: tc.platform})
			if err != nil {
				t.Fatal(err)
			}
			if got := member.Spec.PodTemplate.ObjectMeta.Annotations[blueprint.SafeToEvict]; got != tc.want {
				t.Errorf("%s = %q, want %q", blueprint.SafeToEvict, got, tc.want)
			}
		})
	}
}

func TestResolversFollowTheEgressProfile(t *testing.T) {
	cases := map[string]struct {
		edit    editTemplate
		profile config.EgressProfile
		policy  corev1.DNSPolicy
		servers []string
	}{
		"the internet":                             {profile: config.EgressProfile{DNS: true, Internet: true}, policy: corev1.DNSNone},
		"the cluster's DNS only":                   {profile: config.EgressProfile{DNS: true}},
		"nothing at all":                           {profile: config.EgressProfile{}, policy: corev1.DNSNone},
		"resolvers of the profile's own":           {profile: config.EgressProfile{Nameservers: []string{"192.0.2.53"}}, policy: corev1.DNSNone, servers: []string{"192.0.2.53"}},
		"the internet, and resolvers of its own":   {profile: config.EgressProfile{Internet: true, Nameservers: []string{"192.0.2.53"}}, policy: corev1.DNSNone},
		"the user's policy stands":                 {edit: dnsPolicy(corev1.DNSDefault), policy: corev1.DNSDefault},
		"the user's policy stands beside DNS only": {edit: dnsPolicy(corev1.DNSNone), profile: config.EgressProfile{DNS: true}, policy: corev1.DNSNone},
		"rules of the template's own": {edit: func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.NetworkPolicy = &extensionsv1beta1.NetworkPolicySpec{}
		}},
		"an unmanaged template": {edit: func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.NetworkPolicyManagement = extensionsv1beta1.NetworkPolicyUnmanaged
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template := makeTemplate()
			if tc.edit != nil {
				tc.edit(template)
			}
			got, err := blueprint.ForPool(makePool(), template, blueprint.Options{Profile: tc.profile})
			if err != nil {
				t.Fatal(err)
			}
			if policy := got.Spec.PodTemplate.Spec.DNSPolicy; policy != tc.policy {
				t.Errorf("dnsPolicy = %q, want %q", policy, tc.policy)
			}
			if servers := got.Spec.PodTemplate.Spec.DNSConfig; tc.servers != nil && !cmp.Equal(tc.servers, servers.Nameservers) {
				t.Errorf("nameservers = %v, want %v", servers, tc.servers)
			}
		})
	}
}

func dnsPolicy(policy corev1.DNSPolicy) editTemplate {
	return func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.PodTemplate.Spec.DNSPolicy = policy }
}

func TestForClaimMergesWhatTheClaimAdds(t *testing.T) {
	template := makeTemplate(func(t *extensionsv1beta1.SandboxTemplate) {
		t.Spec.EnvVarsInjectionPolicy = extensionsv1beta1.InjectionAllowed
		t.Spec.PodTemplate.ObjectMeta.Labels = map[string]string{"app": "x"}
	})
	claim := makeClaim(func(c *extensionsv1beta1.SandboxClaim) {
		c.Labels = map[string]string{keys.CreatedBy: "python-client"}
		c.Annotations = map[string]string{keys.TraceContext: "{}", keys.Creator: "ann", "other": "stays"}
		c.Spec.Env = []extensionsv1beta1.EnvVar{{Name: "TOKEN", Value: "s"}}
		c.Spec.AdditionalPodMetadata.Labels = map[string]string{"sandbox.users.io/job": "7"}
	})
	got, err := blueprint.ForClaim(claim, template, public())
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{
		keys.ClaimUID: "claim-uid", keys.CreatedBy: "python-client", keys.LaunchType: "cold",
		keys.SandboxTemplateRefHash: keys.NameHash("python"), keys.Template: keys.TemplateKey("python"),
	}
	if diff := cmp.Diff(labels, got.Labels); diff != "" || got.Name != "c" {
		t.Errorf("ForClaim() named %q, labels (-want +got):\n%s", got.Name, diff)
	}
	annotations := map[string]string{keys.SandboxTemplateRef: "python", keys.PodName: "c", keys.TraceContext: "{}", keys.Creator: "ann"}
	if diff := cmp.Diff(annotations, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	pod := map[string]string{
		"app": "x", "sandbox.users.io/job": "7", keys.ClaimUID: "claim-uid", keys.CreatedBy: "python-client",
		keys.SandboxTemplateRefHash: keys.NameHash("python"),
	}
	if diff := cmp.Diff(pod, got.Spec.PodTemplate.ObjectMeta.Labels); diff != "" {
		t.Errorf("labels of the podTemplate (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.EnvVar{{Name: "TOKEN", Value: "s"}}, got.Spec.PodTemplate.Spec.Containers[0].Env); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	if token := got.Spec.PodTemplate.Spec.AutomountServiceAccountToken; token == nil || *token || got.Spec.PodTemplate.Spec.DNSPolicy != corev1.DNSNone {
		t.Errorf("automountServiceAccountToken = %v, dnsPolicy = %q, want those of a pool's member", token, got.Spec.PodTemplate.Spec.DNSPolicy)
	}
	owner := []metav1.OwnerReference{{
		APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxClaim", Name: "c", UID: "claim-uid", Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	if diff := cmp.Diff(owner, got.OwnerReferences); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
	metadata, err := blueprint.ClaimPodMetadata(claim, template)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got.Spec.PodTemplate.ObjectMeta, metadata, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("ClaimPodMetadata() differs from ForClaim() (-want +got):\n%s", diff)
	}
}

func TestForClaimRefusesWhatTheTemplateDoesNotTake(t *testing.T) {
	claim := makeClaim(func(c *extensionsv1beta1.SandboxClaim) {
		c.Spec.Env = []extensionsv1beta1.EnvVar{{Name: "A", Value: "secret"}}
	})
	_, err := blueprint.ForClaim(claim, makeTemplate(), public())
	var refusal *blueprint.RefusalError
	if !errors.As(err, &refusal) || len(refusal.Errors) != 1 || refusal.Errors[0].Field != "spec.env" {
		t.Errorf("ForClaim() = %v, want a RefusalError about spec.env", err)
	}
}

func TestStale(t *testing.T) {
	cases := map[string]struct {
		before, after editTemplate
		member        editSandbox
		want          bool
	}{
		"the same template":               {},
		"another image":                   {after: inImage("python:3.13"), want: true},
		"labels of the Pod only":          {after: podLabel("team", "blue")},
		"the same template after a reset": {before: inImage("a"), after: inImage("a")},
		"another template":                {after: func(t *extensionsv1beta1.SandboxTemplate) { t.Name = "go" }, want: true},
		"a template whose hash collides": {
			before: func(t *extensionsv1beta1.SandboxTemplate) { t.Name = "costarring" },
			after:  func(t *extensionsv1beta1.SandboxTemplate) { t.Name = "liquid" }, want: true,
		},
		"a new volume":             {after: withVolume("1Gi"), want: true},
		"a larger volume":          {before: withVolume("1Gi"), after: withVolume("2Gi"), want: true},
		"a volume written as ever": {before: withVolume("1Gi"), after: withVolume("1024Mi")},
		"labels of a volume only": {
			before: withVolume("1Gi"),
			after: func(t *extensionsv1beta1.SandboxTemplate) {
				withVolume("1Gi")(t)
				t.Spec.VolumeClaimTemplates[0].Labels = map[string]string{"a": "b"}
			},
		},
		"a Service": {after: func(t *extensionsv1beta1.SandboxTemplate) { t.Spec.Service = new(true) }, want: true},
		"a token": {after: func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.PodTemplate.Spec.AutomountServiceAccountToken = new(true)
		}, want: true},
		"a token refused in words": {
			after: func(t *extensionsv1beta1.SandboxTemplate) {
				t.Spec.PodTemplate.Spec.AutomountServiceAccountToken = new(false)
			},
		},
		"a member without the hash of the blueprint": {
			member: func(s *agentsv1beta1.Sandbox) { delete(s.Labels, keys.SandboxTemplateHash) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := makeTemplate(), makeTemplate()
			for template, edit := range map[*extensionsv1beta1.SandboxTemplate]editTemplate{before: tc.before, after: tc.after} {
				if edit != nil {
					edit(template)
				}
			}
			made, err := blueprint.ForPool(makePool(), before, public())
			if err != nil {
				t.Fatal(err)
			}
			member := stored(t, made)
			if tc.member != nil {
				tc.member(member)
			}
			got, err := blueprint.Stale(member, after, public())
			if err != nil || got != tc.want {
				t.Errorf("Stale() = %t, %v, want %t", got, err, tc.want)
			}
		})
	}
}

func podLabel(key, value string) editTemplate {
	return func(t *extensionsv1beta1.SandboxTemplate) {
		t.Spec.PodTemplate.ObjectMeta.Labels = map[string]string{key: value}
	}
}

func TestMatches(t *testing.T) {
	cases := map[string]struct {
		edit editSandbox
		want bool
	}{
		"as it was made": {want: true},
		"stored without defaults": {
			edit: func(s *agentsv1beta1.Sandbox) { s.Spec.ShutdownPolicy, s.Spec.OperatingMode = nil, "" }, want: true,
		},
		"suspended":             {edit: func(s *agentsv1beta1.Sandbox) { s.Spec.OperatingMode = agentsv1beta1.OperatingModeSuspended }},
		"about to expire":       {edit: func(s *agentsv1beta1.Sandbox) { s.Spec.ShutdownTime = &metav1.Time{} }},
		"deletes itself":        {edit: func(s *agentsv1beta1.Sandbox) { s.Spec.ShutdownPolicy = new(agentsv1beta1.ShutdownPolicyDelete) }},
		"another image":         {edit: func(s *agentsv1beta1.Sandbox) { s.Spec.PodTemplate.Spec.Containers[0].Image = "evil" }},
		"metadata of its Pod":   {edit: func(s *agentsv1beta1.Sandbox) { s.Spec.PodTemplate.ObjectMeta.Labels["app"] = "router" }},
		"labels of its own are": {edit: func(s *agentsv1beta1.Sandbox) { s.Labels["a"] = "b" }, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, err := blueprint.ForPool(makePool(), makeTemplate(withVolume("1Gi")), public())
			if err != nil {
				t.Fatal(err)
			}
			have := stored(t, want)
			if tc.edit != nil {
				tc.edit(have)
			}
			if got := blueprint.Matches(have, want); got != tc.want {
				t.Errorf("Matches() = %t, want %t", got, tc.want)
			}
		})
	}
}
