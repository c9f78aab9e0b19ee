// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/blueprint"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

func volumes(names ...string) []agentsv1beta1.PersistentVolumeClaimTemplate {
	var list []agentsv1beta1.PersistentVolumeClaimTemplate
	for _, name := range names {
		list = append(list, agentsv1beta1.PersistentVolumeClaimTemplate{EmbeddedObjectMetadata: agentsv1beta1.EmbeddedObjectMetadata{Name: name}})
	}
	return list
}

// What the template does not take reaches the client in the contract's words, and ends
// the attempts.
func TestRefusalsInTheWordsOfTheContract(t *testing.T) {
	type edit = func(*extensionsv1beta1.SandboxTemplate)
	env := func(policy extensionsv1beta1.InjectionPolicy) edit {
		return func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.EnvVarsInjectionPolicy = policy
			t.Spec.PodTemplate.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "HOME", Value: "/"}}
		}
	}
	vct := func(policy extensionsv1beta1.InjectionPolicy) edit {
		return func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.VolumeClaimTemplatesPolicy, t.Spec.VolumeClaimTemplates = policy, volumes("data")
		}
	}
	none := func(*extensionsv1beta1.SandboxTemplate) {}
	cases := map[string]struct {
		template edit
		claim    func(*extensionsv1beta1.SandboxClaim)
		// reason and message of Ready; empty when the claim is served.
		reason, message string
	}{
		"variables that the template does not take": {
			none, withEnv(extensionsv1beta1.EnvVar{Name: "A", Value: "secret"}),
			"EnvVarsInjectionRejected", "environment variable injection rejected: environment variable injection is not allowed by the template policy",
		},
		"variables that it takes": {env("Allowed"), withEnv(extensionsv1beta1.EnvVar{Name: "A", Value: "secret"}), "", ""},
		"a variable for a container with envFrom": {
			func(t *extensionsv1beta1.SandboxTemplate) {
				env("Allowed")(t)
				t.Spec.PodTemplate.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{}}
			},
			withEnv(extensionsv1beta1.EnvVar{Name: "A", Value: "secret"}), "EnvVarsInjectionRejected",
			`environment variable injection rejected: container "workspace" takes variables from envFrom, so that an override cannot be excluded: remove the variable`,
		},
		"a variable that the template has": {
			env("Allowed"), withEnv(extensionsv1beta1.EnvVar{Name: "HOME", Value: "secret"}), "ReconcilerError",
			`Error seen: environment variable "HOME" is defined in the template and cannot be overridden by its policy`,
		},
		"a variable that the template lets be overridden": {env("Overrides"), withEnv(extensionsv1beta1.EnvVar{Name: "HOME", Value: "/x"}), "", ""},
		"a variable for a container that does not exist": {
			env("Allowed"), withEnv(extensionsv1beta1.EnvVar{Name: "A", Value: "secret", ContainerName: "c"}), "ReconcilerError",
			`Error seen: target container "c" not found in template for environment variable "A"`,
		},
		"volumes that the template does not take": {
			vct("Disallowed"), withVolumes("more"), "VolumeClaimTemplatesError", "spec.volumeClaimTemplates: Forbidden: the template does not let claims " +
				"bring volumes: remove them, or ask for a template whose volumeClaimTemplatesPolicy is Allowed",
		},
		"volumes that it takes":                {vct("Allowed"), withVolumes("more"), "", ""},
		"a volume that it lets be replaced":    {vct("Overrides"), withVolumes("data"), "", ""},
		"a volume that the template has":       {vct("Allowed"), withVolumes("data"), "VolumeClaimTemplatesError", `spec.volumeClaimTemplates[0].metadata.name: Duplicate value: "data"`},
		"a volume without a name":              {vct("Overrides"), withVolumes(""), "VolumeClaimTemplatesError", "spec.volumeClaimTemplates[0].metadata.name: Required value: name the volume"},
		"two volumes of one name":              {vct("Overrides"), withVolumes("x", "x"), "VolumeClaimTemplatesError", `spec.volumeClaimTemplates[1].metadata.name: Duplicate value: "x"`},
		"a label that the template sets alike": {none, withPodMetadata(map[string]string{"app": "workspace"}, nil), "", ""},
		"a label that the template sets":       {none, withPodMetadata(map[string]string{"app": "b"}, nil), "ReconcilerError", `Error seen: metadata override conflict: label "app" is defined in template with value "workspace", but claim requests "b"`},
		"an annotation that the template sets": {func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.PodTemplate.ObjectMeta.Annotations = map[string]string{"x.io/k": "a"}
		}, withPodMetadata(nil, map[string]string{"x.io/k": "b"}), "ReconcilerError", `Error seen: metadata override conflict: annotation "x.io/k" is defined in template with value "a", but claim requests "b"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			template, claim := makeTemplate(tc.template), makeClaim("claim", tc.claim)
			_, err := blueprint.ForClaim(claim, template, blueprint.Options{})
			err = inWordsOfContract(claim, template, err)
			if tc.reason == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			reason, message := readyOf(err)
			if diff := cmp.Diff([]string{tc.reason, tc.message}, []string{reason, message}); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
			if !lasts(err) || patch.Passing(err) {
				t.Errorf("%v is taken for an error that passes", err)
			}
		})
	}
}
