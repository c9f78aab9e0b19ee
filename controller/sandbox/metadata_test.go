// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// always are the labels that every Pod of the Sandbox "box" has in the tests.
func always(more ...string) map[string]string {
	labels := map[string]string{
		keys.SandboxNameHash: keys.NameHash("box"), keys.Sandbox: "true", keys.EgressProfile: "public",
	}
	for i := 0; i+1 < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	return labels
}

func TestDesiredPodMetadata(t *testing.T) {
	everything := withLabels(map[string]string{
		keys.WarmPoolSandbox: "pool", keys.SandboxTemplateRefHash: "template", keys.ClaimUID: "claim",
		keys.CreatedBy: "go-client", keys.LaunchType: "warm",
	})
	cases := map[string]struct {
		sandbox     *agentsv1beta1.Sandbox
		ingress     isolation.Ingress
		labels      map[string]string
		annotations map[string]string
	}{
		"a Sandbox without metadata": {sandbox: makeSandbox(), labels: always()},
		"the user's keys, and which they are": {
			sandbox: makeSandbox(withPodMetadata(map[string]string{"team": "blue", "app": "x"}, map[string]string{"note": "hello"})),
			labels:  always("team", "blue", "app", "x"),
			annotations: map[string]string{
				"note": "hello", keys.PropagatedLabels: "app,team", keys.PropagatedAnnotations: "note",
			},
		},
		"reserved keys are dropped": {
			sandbox: makeSandbox(withPodMetadata(
				map[string]string{
					keys.ClaimUID: "forged", keys.SandboxNameHash: "forged", keys.EgressProfile: "wide-open",
					"extensions.agents.x-k8s.io/x": "y", keys.Ingress: "namespace",
				},
				map[string]string{keys.TraceContext: "{}", keys.PropagatedLabels: "app"},
			)),
			labels: always(),
		},
		"a Pod that its namespace may reach": {
			sandbox: makeSandbox(), ingress: isolation.IngressNamespace, labels: always(keys.Ingress, "namespace"),
		},
		"nobody's Sandbox gives its Pod the creator only": {
			sandbox: makeSandbox(everything), labels: always(keys.CreatedBy, "go-client"),
		},
		"a pool's Sandbox": {
			sandbox: makeSandbox(everything, controlledBy("SandboxWarmPool")),
			labels:  always(keys.CreatedBy, "go-client", keys.WarmPoolSandbox, "pool", keys.SandboxTemplateRefHash, "template"),
		},
		"a claim's Sandbox": {
			sandbox: makeSandbox(everything, controlledBy("SandboxClaim")),
			labels:  always(keys.CreatedBy, "go-client", keys.ClaimUID, "claim", keys.SandboxTemplateRefHash, "template"),
		},
		"a kind of that name in another group is no claim": {
			sandbox: makeSandbox(everything, controlledBy("SandboxClaim"), func(s *agentsv1beta1.Sandbox) {
				s.OwnerReferences[0].APIVersion = "example.com/v1"
			}),
			labels: always(keys.CreatedBy, "go-client"),
		},
		"a creator that nobody knows": {
			sandbox: makeSandbox(withLabels(map[string]string{keys.CreatedBy: "<script>"})), labels: always(keys.CreatedBy, "unknown"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := desiredPodMetadata(tc.sandbox, isolation.Choice{Profile: "public", Ingress: tc.ingress})
			if diff := cmp.Diff(tc.labels, got.labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.annotations, got.annotations, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestApplyMetadata(t *testing.T) {
	// The Pod as it was made for this Sandbox, and what others have added.
	old := makeSandbox(withPodMetadata(map[string]string{"team": "blue", "app": "x"}, map[string]string{"note": "hello"}),
		withLabels(map[string]string{keys.WarmPoolSandbox: "pool"}), controlledBy("SandboxWarmPool"))
	made := func() *corev1.Pod {
		pod := buildPod(old, isolation.Choice{Profile: "public", Ingress: isolation.IngressNamespace}, config.EgressProfile{})
		pod.Labels["injected"], pod.Annotations["injected"] = "mesh", "mesh"
		return pod
	}
	cases := map[string]struct {
		sandbox     *agentsv1beta1.Sandbox
		ingress     isolation.Ingress
		edit        func(*corev1.Pod)
		changed     bool
		labels      map[string]string
		annotations map[string]string
	}{
		"nothing changed": {
			sandbox: old, ingress: isolation.IngressNamespace,
			labels:      always("team", "blue", "app", "x", "injected", "mesh", keys.WarmPoolSandbox, "pool", keys.Ingress, "namespace"),
			annotations: map[string]string{"note": "hello", "injected": "mesh", keys.PropagatedLabels: "app,team", keys.PropagatedAnnotations: "note"},
		},
		"keys that the user removed go, those of others stay": {
			sandbox: makeSandbox(withPodMetadata(map[string]string{"team": "red"}, nil)), changed: true,
			labels:      always("team", "red", "injected", "mesh"),
			annotations: map[string]string{"injected": "mesh", keys.PropagatedLabels: "team"},
		},
		"a label that somebody changed comes back": {
			sandbox: old, ingress: isolation.IngressNamespace, changed: true,
			edit:        func(p *corev1.Pod) { p.Labels[keys.Sandbox], p.Labels[keys.SandboxNameHash] = "false", "0" },
			labels:      always("team", "blue", "app", "x", "injected", "mesh", keys.WarmPoolSandbox, "pool", keys.Ingress, "namespace"),
			annotations: map[string]string{"note": "hello", "injected": "mesh", keys.PropagatedLabels: "app,team", keys.PropagatedAnnotations: "note"},
		},
		"a forged list takes no reserved label away": {
			sandbox: makeSandbox(), changed: true,
			edit: func(p *corev1.Pod) {
				p.Annotations[keys.PropagatedLabels] = "app,team,platform.agents.x-k8s.io/tier,injected"
				p.Labels[keys.Tier] = "kept"
			},
			labels:      always(keys.Tier, "kept"),
			annotations: map[string]string{"injected": "mesh"},
		},
		"a Pod without any metadata": {
			sandbox: makeSandbox(), changed: true, edit: func(p *corev1.Pod) { p.Labels, p.Annotations = nil, nil },
			labels: always(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := made()
			if tc.edit != nil {
				tc.edit(pod)
			}
			metadata := desiredPodMetadata(tc.sandbox, isolation.Choice{Profile: "public", Ingress: tc.ingress})
			if changed := metadata.applyTo(pod); changed != tc.changed {
				t.Errorf("applyTo() = %t, want %t", changed, tc.changed)
			}
			if diff := cmp.Diff(tc.labels, pod.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.annotations, pod.Annotations, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if metadata.applyTo(pod) {
				t.Error("a second applyTo() changed the Pod again")
			}
		})
	}
}

func TestPodOfATemplateHasTheLabelsOfItsPolicyAndOfNoProfile(t *testing.T) {
	sandbox := makeSandbox(withLabels(map[string]string{keys.SandboxTemplateRefHash: "template"}), controlledBy("SandboxWarmPool"))
	pod := buildPod(sandbox, isolation.Choice{Profile: "public", Ingress: isolation.IngressNamespace}, config.EgressProfile{})
	chosen := isolation.Choice{Profile: "public", Ingress: isolation.IngressNamespace, Template: "python"}
	if !desiredPodMetadata(sandbox, chosen).applyTo(pod) {
		t.Fatal("applyTo() changed nothing")
	}
	want := map[string]string{
		keys.SandboxNameHash: keys.NameHash("box"), keys.Sandbox: "true",
		keys.SandboxTemplateRefHash: "template", keys.Template: keys.TemplateKey("python"),
	}
	if diff := cmp.Diff(want, pod.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}
