// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// Each pass sees to the policies of a Sandbox, and to each of them once.
func TestAPassLooksAtEachPolicyOnce(t *testing.T) {
	profile := isolation.ProfileName(apiserver.Platform().Tiers["standard"].Egress.Profile)
	cases := map[string]struct {
		template *extensionsv1beta1.SandboxTemplate
		want     map[string]int
	}{
		"of a bare Sandbox": {nil, map[string]int{isolation.FloorName: 1, profile: 1}},
		"of one of a template": {
			&extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "python", UID: "template-uid"}},
			map[string]int{isolation.FloorName: 1, isolation.TemplateName("python"): 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme, err := apiserver.NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			objects := fake.NewClientBuilder().WithScheme(scheme)
			sandbox := makeSandbox()
			if tc.template != nil {
				objects.WithObjects(tc.template)
				sandbox = makeSandbox(func(s *agentsv1beta1.Sandbox) {
					s.Annotations = map[string]string{keys.SandboxTemplateRef: tc.template.Name}
				})
			}
			looks := map[string]int{}
			stored := objects.Build()
			cached := interceptor.NewClient(stored, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
					if _, isPolicy := into.(*networkingv1.NetworkPolicy); isPolicy {
						looks[key.Name]++
					}
					return c.Get(ctx, key, into, options...)
				},
			})
			s := &scope{sandbox: sandbox}
			if err := New(cached, stored, nil, nil, Settings{Current: apiserver.Platform}).phaseIsolation(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, looks); diff != "" {
				t.Errorf("looks (-want +got):\n%s", diff)
			}
		})
	}
}
