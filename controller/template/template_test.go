// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/exposure"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/netpol"
)

// noon is the time of every test.
func noon() time.Time { return time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC) }

func makeScope(edits ...func(*scope)) *scope {
	s := &scope{
		now:       noon(),
		template:  &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "python", Generation: 4}},
		sandboxes: 3, pools: 2, claims: 1,
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

func failing(err error) func(*scope) { return func(s *scope) { s.failure = err } }

func unmanaged(s *scope) {
	s.template.Spec.NetworkPolicyManagement = extensionsv1beta1.NetworkPolicyUnmanaged
}

func invalidPolicy() error {
	return apierrors.NewInvalid(schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}, "python-network-policy",
		field.ErrorList{field.Invalid(field.NewPath("spec", "egress"), "10.0.0.0/99", "bad")})
}

func TestDesiredStatus(t *testing.T) {
	cases := map[string]struct {
		scope *scope
		// ready and policy are "status/reason" of the two conditions.
		ready, policy string
		// says are parts of the message of the policy's condition.
		says []string
	}{
		"a policy in force": {makeScope(), "True/Usable", "True/InForce", []string{`"python-network-policy"`}},
		"an unmanaged template can be used, and says what holds": {
			makeScope(unmanaged), "True/Usable", "False/Unmanaged",
			[]string{"3 Sandboxes", keys.SandboxTemplateRefHash + "=" + keys.NameHash("python"), isolation.FloorName},
		},
		"an unmanaged template says what others open": {
			makeScope(unmanaged, func(s *scope) {
				s.exposed = []exposure.Finding{{
					Policy: "open", Direction: networkingv1.PolicyTypeEgress, Peers: []string{"10.0.0.0/8", "everything"},
					Pods: []string{"a", "b", "c", "d", "e", "f", "g"},
				}}
			}), "True/Usable", "False/Unmanaged",
			[]string{`NetworkPolicy "open" lets 7 of their Pods (a, b, c, d, e and 2 more) connect to 10.0.0.0/8, everything`},
		},
		"an unmanaged template that nobody opens": {makeScope(unmanaged), "True/Usable", "False/Unmanaged", []string{"opens anything"}},
		"a name that somebody holds": {
			makeScope(failing(&netpol.TakenError{Policy: "python-network-policy", Template: "python"})),
			"False/NetworkPolicyNameTaken", "False/NetworkPolicyNameTaken", []string{`"python-network-policy"`, "delete or rename it"},
		},
		"rules that the apiserver refuses": {
			makeScope(failing(invalidPolicy())), "False/NetworkPolicyRefused", "False/NetworkPolicyRefused",
			[]string{"spec.networkPolicy", "10.0.0.0/99"},
		},
		"a profile that the tier does not allow": {
			makeScope(func(s *scope) { s.invalid = field.Invalid(field.NewPath("metadata"), "wide", "choose another") }),
			"False/InvalidEgressProfile", "False/InvalidEgressProfile", []string{"wide", "choose another"},
		},
		"own rules beyond the tier's ceiling": {
			makeScope(func(s *scope) {
				s.invalid = field.Invalid(field.NewPath("spec", "networkPolicy", "egress").Index(0), "10.0.0.0/8", "narrow it")
			}),
			"False/EgressBeyondCeiling", "False/EgressBeyondCeiling", []string{"10.0.0.0/8", "narrow it", "connect to nothing"},
		},
		"an error that passes": {
			makeScope(failing(errors.New("etcd is busy"))), "False/ReconcilerError", "False/ReconcilerError", []string{"etcd is busy"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := desiredStatus(tc.scope)
			if got.Sandboxes != 3 || got.WarmPools != 2 || got.Claims != 1 || got.ObservedGeneration != 4 {
				t.Errorf("counts %d, %d, %d of generation %d, want 3, 2, 1 of 4", got.Sandboxes, got.WarmPools, got.Claims, got.ObservedGeneration)
			}
			policy := meta.FindStatusCondition(got.Conditions, extensionsv1beta1.TemplateConditionNetworkPolicy)
			ready := meta.FindStatusCondition(got.Conditions, extensionsv1beta1.TemplateConditionReady)
			if state := string(ready.Status) + "/" + ready.Reason; state != tc.ready {
				t.Errorf("Ready = %s, want %s", state, tc.ready)
			}
			if state := string(policy.Status) + "/" + policy.Reason; state != tc.policy {
				t.Errorf("NetworkPolicyReady = %s, want %s", state, tc.policy)
			}
			for _, part := range tc.says {
				if !strings.Contains(policy.Message, part) {
					t.Errorf("message %q does not say %q", policy.Message, part)
				}
			}
			tc.scope.template.Status, tc.scope.now = got, noon().Add(time.Hour)
			if diff := cmp.Diff(got, desiredStatus(tc.scope)); diff != "" {
				t.Errorf("the next pass changes the status again (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	taken := &netpol.TakenError{Policy: "p", Template: "t"}
	cases := map[string]struct {
		failure error
		again   ctrl.Result
		retried bool
		// asks is true when policies of others were asked for that nobody watches.
		asks bool
	}{
		"nothing wrong":                {},
		"policies of others count":     {asks: true, again: ctrl.Result{RequeueAfter: exposedRecheck}},
		"a name that is taken":         {failure: taken, again: ctrl.Result{RequeueAfter: takenRecheck}},
		"what the user must mend":      {failure: invalidPolicy(), retried: true},
		"an apiserver that is not out": {failure: errors.New("busy"), retried: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := makeScope(failing(tc.failure), func(s *scope) { s.asks = tc.asks }).outcome()
			if got != tc.again || (err != nil) != tc.retried {
				t.Errorf("outcome() = %v, %v, want %v and an error: %t", got, err, tc.again, tc.retried)
			}
		})
	}
}

// What is told of a template some time after its namespace went has nothing to do, and is not
// tried for ever. A template that is there must have a namespace.
func TestATemplateThatWentWithItsNamespaceIsNotTriedAgain(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), extensionsv1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		there   []client.Object
		retried bool
	}{
		"a template that went too": {},
		"a template that is there": {[]client.Object{makeScope().template}, true},
	} {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.there...).Build()
			r := New(reader, reader, events.NewFakeRecorder(1), testclock.NewFakePassiveClock(noon()), Settings{})
			_, err := r.Reconcile(t.Context(), requestFor("team-a", "python")[0])
			if (err != nil) != tc.retried {
				t.Errorf("Reconcile() = %v, want an error: %t", err, tc.retried)
			}
		})
	}
}

func TestTemplateOfPolicy(t *testing.T) {
	template := makeScope().template
	made := isolation.Template(template, isolation.Choice{}, &config.Platform{})
	forged := made.DeepCopy()
	forged.Name = "go-network-policy"
	cases := map[string]struct {
		policy *networkingv1.NetworkPolicy
		want   []ctrl.Request
	}{
		"the policy of a template":       {made, requestFor("team-a", "python")},
		"the floor":                      {isolation.Floor("team-a"), nil},
		"a name that does not fit":       {forged, nil},
		"a profile of the name's ending": {isolation.Profile("team-a", "x-network-policy", &config.Platform{}), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, templateOfPolicy(t.Context(), tc.policy)); diff != "" {
				t.Errorf("templateOfPolicy() (-want +got):\n%s", diff)
			}
		})
	}
}
