// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package netpol

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Options{NoFsync: true}, &server)) }

// environment is a namespace whose passes the test makes.
type environment struct {
	*apiserver.Environment

	clock      *testclock.FakePassiveClock
	controller *Namespaces
}

func newEnvironment(t *testing.T) *environment {
	t.Helper()
	e := &environment{
		Environment: server.NewEnvironment(t), clock: testclock.NewFakePassiveClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)),
	}
	as, err := apiserver.NewClient(server.As(e.User, apiserver.Controllers))
	if err != nil {
		t.Fatal(err)
	}
	platform := apiserver.Platform()
	e.controller = NewNamespaces(as, as, e.clock, Settings{Current: func() *config.Platform { return platform }, Extensions: true})
	return e
}

func (e *environment) remove(object client.Object) {
	e.Helper()
	object.SetNamespace(e.Namespace)
	if err := e.Client.Delete(e.Context(), object, client.GracePeriodSeconds(0)); err != nil {
		e.Fatal(err)
	}
}

// passes moves the clock, makes a pass, and wants another one after that time and those
// policies.
func (e *environment) passes(what string, step, after time.Duration, want ...string) {
	e.Helper()
	e.clock.SetTime(e.clock.Now().Add(step))
	result, err := e.controller.Reconcile(e.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: e.Namespace}})
	if err != nil {
		e.Fatalf("%s: %v", what, err)
	}
	if result.RequeueAfter != after {
		e.Errorf("%s: the next pass is after %s, want %s", what, result.RequeueAfter, after)
	}
	var list networkingv1.NetworkPolicyList
	if err := e.Client.List(e.Context(), &list, client.InNamespace(e.Namespace)); err != nil {
		e.Fatal(err)
	}
	var got []string
	for i := range list.Items {
		got = append(got, list.Items[i].Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		e.Errorf("%s: policies (-want +got):\n%s", what, diff)
	}
}

func sandboxPod(name, profile string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: isolation.Choice{Profile: profile}.PodLabels()},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a:1"}}},
	}
}

func suspended(name string) *agentsv1beta1.Sandbox {
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: name}}
	sandbox.Spec.OperatingMode = agentsv1beta1.OperatingModeSuspended
	sandbox.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "a", Image: "a:1"}}
	return sandbox
}

const (
	floor  = isolation.FloorName
	none   = "agent-sandbox-egress-none"
	public = "agent-sandbox-egress-public"
)

// The policy of a profile goes ten minutes after the last Pod that it selected, and the
// floor ten minutes after the last thing of which a Pod may come.
func TestIdlePoliciesGo(t *testing.T) {
	e := newEnvironment(t)
	current := e.controller.settings.Current()
	for _, policy := range []*networkingv1.NetworkPolicy{isolation.Floor(""), isolation.Profile("", "public", current), isolation.Profile("", "none", current)} {
		e.Create(policy)
	}
	e.Create(sandboxPod("first", "public"))
	e.passes("one profile is idle", 0, idleFor, floor, none, public)
	e.passes("it has a second left", idleFor-time.Second, time.Second, floor, none, public)
	e.Create(sandboxPod("second", "none"))
	e.passes("a Pod needs it again", time.Second, 0, floor, none, public)
	e.remove(sandboxPod("second", "none"))
	e.passes("and goes: ten minutes begin anew", time.Minute, idleFor, floor, none, public)
	e.passes("they are over", idleFor, 0, floor, public)

	e.Create(suspended("box"))
	e.remove(sandboxPod("first", "public"))
	e.passes("a suspended Sandbox is left", 0, idleFor, floor, public)
	e.passes("the floor stays for it", idleFor, 0, floor)
	pool := &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	pool.Spec.TemplateRef.Name = "python"
	pool.Spec.Replicas = new(int32(0))
	e.Create(pool)
	e.remove(suspended("box"))
	e.passes("an empty pool is left", idleFor, 0, floor)
	e.remove(isolation.Floor(""))
	e.passes("the floor comes back for it", 0, 0, floor)
	e.remove(pool)
	e.passes("nothing is left", 0, idleFor, floor)
	e.passes("the floor goes", idleFor, 0)
	e.passes("and stays away", idleFor, 0)
}

// What somebody changed is mended while a Pod needs it; policies of others are left alone.
func TestNeededPoliciesAreMended(t *testing.T) {
	e := newEnvironment(t)
	want := isolation.Profile("", "none", e.controller.settings.Current())
	opened := want.DeepCopy()
	opened.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
	theirs := isolation.Profile("", "none", &config.Platform{})
	theirs.Name, theirs.Labels = "theirs", nil
	template := isolation.Floor("")
	template.Name = isolation.TemplateName("python")
	for _, policy := range []*networkingv1.NetworkPolicy{opened, theirs, template} {
		e.Create(policy)
	}
	e.Create(sandboxPod("box", "none"))
	e.passes("the floor is made and the profile mended", 0, 0, floor, none, "python-network-policy", "theirs")
	e.passes("nothing of others is idle", 2*idleFor, 0, floor, none, "python-network-policy", "theirs")
	var got networkingv1.NetworkPolicy
	if err := e.Client.Get(e.Context(), client.ObjectKeyFromObject(opened), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("the profile's policy (-want +got):\n%s", diff)
	}
}

// Whatever an administrator makes of a policy, it is mended, whether a Pod needs it or not:
// with another selector, that of an idle one would open other Pods. Of a profile that went
// nobody knows the rules.
func TestWhatAnAdministratorChangesIsMended(t *testing.T) {
	e := newEnvironment(t)
	current := e.controller.settings.Current()
	pod := sandboxPod("box", "none")
	pod.Labels[keys.Ingress] = string(isolation.IngressNamespace)
	e.Create(pod, sandboxPod("old", "gone"))
	edits := map[string]func(*networkingv1.NetworkPolicySpec){
		"egress":   func(s *networkingv1.NetworkPolicySpec) { s.Egress = []networkingv1.NetworkPolicyEgressRule{{}} },
		"ingress":  func(s *networkingv1.NetworkPolicySpec) { s.Ingress = []networkingv1.NetworkPolicyIngressRule{{}} },
		"selector": func(s *networkingv1.NetworkPolicySpec) { s.PodSelector = metav1.LabelSelector{} },
		"types":    func(s *networkingv1.NetworkPolicySpec) { s.PolicyTypes = []networkingv1.PolicyType{"Egress"} },
	}
	policies := map[string]*networkingv1.NetworkPolicy{
		"the floor": isolation.Floor(""), "the way in for the namespace": isolation.NamespaceIngress(""),
		"a profile's": isolation.Profile("", "none", current), "an idle profile's": isolation.Profile("", "public", current),
		"that of a profile that went": isolation.Profile("", "gone", current),
	}
	for _, want := range policies {
		e.Create(want.DeepCopy())
	}
	for name, want := range policies {
		for what, edit := range edits {
			if name == "that of a profile that went" && strings.HasSuffix(what, "gress") {
				continue
			}
			var got networkingv1.NetworkPolicy
			e.Get(want.Name, &got)
			edit(&got.Spec)
			if err := e.Client.Update(t.Context(), &got); err != nil {
				t.Fatal(err)
			}
			if _, err := e.controller.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: e.Namespace}}); err != nil {
				t.Fatal(err)
			}
			e.Get(want.Name, &got)
			if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
				t.Errorf("%s after a change of its %s (-want +got):\n%s", name, what, diff)
			}
		}
	}
}

// The floor outlives the other policies by an idle time of its own: a controller that saw
// less makes a Pod under it, and not in the open.
func TestTheFloorGoesLast(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	floor, public := isolation.FloorName, isolation.ProfileName("public")
	e.Create(isolation.Floor(e.Namespace), isolation.Profile(e.Namespace, "public", apiserver.Platform()))
	e.passes("both are idle", 0, idleFor, floor, public)
	e.passes("the profile goes, and the floor stays", idleFor, idleFor, floor)
	e.passes("its time begins now", 0, idleFor, floor)
	e.passes("the floor goes", idleFor, 0)
}

// A policy that was made anew since the cache saw it is not the one that was idle.
func TestOnlyThePolicyThatWasIdleIsRemoved(t *testing.T) {
	e := newEnvironment(t)
	old := isolation.Profile("", "none", e.controller.settings.Current())
	e.Create(old)
	stale := old.DeepCopy()
	e.remove(old)
	young := isolation.Profile("", "none", e.controller.settings.Current())
	e.Create(young)
	want, _ := isolation.Shared(e.Namespace, stale.Name, e.controller.settings.Current())
	if err := e.controller.remove(e.Context(), stale, want); !apierrors.IsConflict(err) {
		t.Errorf("removing the old one ended with %v, want a conflict", err)
	}
	if err := e.Client.Get(e.Context(), client.ObjectKeyFromObject(young), young); err != nil {
		t.Errorf("the young one: %v", err)
	}
}
