// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package surroundings

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

func node(name string, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}}
	for _, address := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: address})
	}
	return n
}

func endpoints(addresses ...string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: addresses}},
	}
}

func service(selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tools", Name: "git"},
		Spec:       corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}}},
	}
}

// serviceCIDR are ranges of Services; a private one is closed anyway.
func serviceCIDR(cidrs ...string) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs}}
}

func told(follower <-chan event.GenericEvent) bool {
	select {
	case <-follower:
		return true
	default:
		return false
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Nodes come and go, the apiserver moves, a Service gets other Pods: the configuration
// follows, and followers are told of what changes a policy, and of nothing else.
func TestTheConfigurationFollowsTheCluster(t *testing.T) {
	ctx := t.Context()
	base := &config.Platform{
		Cluster: config.Cluster{CIDRs: []string{"192.0.2.0/24"}},
		EgressProfiles: map[string]config.EgressProfile{
			"git": {Rules: []config.EgressRule{{Services: []config.EgressService{{Namespace: "tools", Name: "git"}}}}},
		},
	}
	apiserver := endpoints("203.0.113.7")
	world := fake.NewClientBuilder().WithObjects(node("one", "10.0.0.1")).Build()
	must(t, world.Create(ctx, apiserver))
	registry := prometheus.NewPedanticRegistry()
	watcher, err := New(ctx, base, world, registry)
	must(t, err)
	followers := []<-chan event.GenericEvent{watcher.Follow(), watcher.Follow()}
	first := node("two", "198.51.100.9", "2001:db8::9")
	first.Spec.PodCIDRs = []string{"198.18.7.0/24", "2001:db8:1::/64", "::ffff:198.51.100.64/122"}
	git := service(map[string]string{"app": "git"})
	steps := []struct {
		what string
		do   func() error
		told bool
		// cidrs are the ranges of the cluster, app what the profile selects.
		cidrs []string
		app   string
	}{
		{"at the start", func() error { return nil }, false, []string{"192.0.2.0/24", "203.0.113.7/32"}, ""},
		{
			"a node with public addresses joins", func() error { return world.Create(ctx, first) }, true,
			[]string{"192.0.2.0/24", "198.51.100.64/26", "198.51.100.9/32", "2001:db8:1::/64", "2001:db8::9/128", "203.0.113.7/32"}, "",
		},
		{
			"a node with private ones joins", func() error { return world.Create(ctx, node("three", "10.0.0.3", "fd00::3", "192.0.2.3")) }, false,
			[]string{"192.0.2.0/24", "198.51.100.64/26", "198.51.100.9/32", "2001:db8:1::/64", "2001:db8::9/128", "203.0.113.7/32"}, "",
		},
		{"the node leaves", func() error { return world.Delete(ctx, first) }, true, []string{"192.0.2.0/24", "203.0.113.7/32"}, ""},
		{"the apiserver moves", func() error {
			apiserver.Endpoints[0].Addresses = []string{"203.0.113.8"}
			return world.Update(ctx, apiserver)
		}, true, []string{"192.0.2.0/24", "203.0.113.8/32"}, ""},
		{"the Service comes", func() error { return world.Create(ctx, git) }, true, []string{"192.0.2.0/24", "203.0.113.8/32"}, "git"},
		{"it selects other Pods", func() error {
			git.Spec.Selector = map[string]string{"app": "gitea"}
			return world.Update(ctx, git)
		}, true, []string{"192.0.2.0/24", "203.0.113.8/32"}, "gitea"},
		{"Services get a second range", func() error { return world.Create(ctx, serviceCIDR("34.118.224.0/20", "fd01::/108")) }, true,
			[]string{"192.0.2.0/24", "203.0.113.8/32", "34.118.224.0/20"}, "gitea"},
		{"it is taken away", func() error { return world.Delete(ctx, serviceCIDR()) }, true, []string{"192.0.2.0/24", "203.0.113.8/32"}, "gitea"},
		{"it selects none", func() error {
			git.Spec.Selector = nil
			return world.Update(ctx, git)
		}, true, []string{"192.0.2.0/24", "203.0.113.8/32"}, ""},
	}
	for _, step := range steps {
		must(t, client.IgnoreAlreadyExists(step.do()))
		_, err := watcher.Reconcile(ctx, reconcile.Request{})
		must(t, err)
		for i, follower := range followers {
			if got := told(follower); got != step.told {
				t.Errorf("%s: follower %d is told: %t, want %t", step.what, i, got, step.told)
			}
		}
		if diff := cmp.Diff(step.cidrs, watcher.Platform().Cluster.CIDRs); diff != "" {
			t.Errorf("%s: ranges (-want +got):\n%s", step.what, diff)
		}
		app := ""
		for _, rule := range watcher.Platform().EgressProfiles["git"].Rules {
			app = rule.PodSelector.MatchLabels["app"]
		}
		if app != step.app {
			t.Errorf("%s: the profile selects the Pods %q, want %q", step.what, app, step.app)
		}
		if unresolved := number(t, registry); (unresolved == 1) != (step.app == "") {
			t.Errorf("%s: %d Services are unresolved, and the profile selects %q", step.what, unresolved, app)
		}
	}
}

// number is how many series the metric has.
func number(t *testing.T, registry *prometheus.Registry) int {
	t.Helper()
	families, err := registry.Gather()
	must(t, err)
	for _, family := range families {
		if family.GetName() == "agent_sandbox_unresolved_egress_services" {
			return len(family.GetMetric())
		}
	}
	return 0
}

// Who judges by Services needs no right to look at anything else.
func TestServicesAloneAreReadWhereNothingElseIsAskedFor(t *testing.T) {
	base := &config.Platform{EgressProfiles: map[string]config.EgressProfile{
		"git": {Rules: []config.EgressRule{{Services: []config.EgressService{{Namespace: "tools", Name: "git"}}}}},
	}}
	world := fake.NewClientBuilder().WithObjects(service(map[string]string{"app": "git"})).
		WithInterceptorFuncs(interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			t.Errorf("%T is listed", list)
			return nil
		}}).Build()
	watcher, err := OfServices(t.Context(), base, world)
	must(t, err)
	if rules := watcher.Platform().EgressProfiles["git"].Rules; len(rules) != 1 || rules[0].PodSelector.MatchLabels["app"] != "git" {
		t.Errorf("the rules are %+v, want the Pods behind the Service", rules)
	}
	must(t, world.Delete(t.Context(), service(nil)))
	_, err = watcher.Reconcile(t.Context(), reconcile.Request{})
	must(t, err)
	if profile := watcher.Platform().EgressProfiles["git"]; len(profile.Rules) != 0 || len(profile.Unresolved) != 1 {
		t.Errorf("the profile is %+v, want one Service that opens nothing", profile)
	}
}

// A follower that does not look is told once, and nobody waits for it.
func TestAFollowerThatDoesNotLookHoldsNobodyUp(t *testing.T) {
	ctx := t.Context()
	apiserver, world := endpoints(), fake.NewFakeClient()
	must(t, world.Create(ctx, apiserver))
	watcher, err := New(ctx, &config.Platform{}, world, prometheus.NewPedanticRegistry())
	must(t, err)
	follower := watcher.Follow()
	for _, address := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3"} {
		apiserver.Endpoints[0].Addresses = []string{address}
		must(t, world.Update(ctx, apiserver))
		_, err := watcher.Reconcile(ctx, reconcile.Request{})
		must(t, err)
	}
	if !told(follower) || told(follower) {
		t.Error("three changes that nobody looked at are not told of once")
	}
	if diff := cmp.Diff([]string{"203.0.113.3/32"}, watcher.Platform().Cluster.CIDRs); diff != "" {
		t.Errorf("ranges (-want +got):\n%s", diff)
	}
}

// Apiservers that are older serve the ranges of Services in an older version, or not at
// all; what is no answer to that is an error.
func TestRangesOfServicesAreReadInTheVersionThatIsServed(t *testing.T) {
	missing := &meta.NoKindMatchError{GroupKind: serviceRange("").GroupKind()}
	cases := map[string]struct {
		// answers are the errors of the versions that cannot be read.
		answers map[string]error
		want    []string
		failure error
	}{
		"a current one":                  {want: []string{"34.118.224.0/20"}},
		"one that has them as a beta":    {answers: map[string]error{"v1": missing}, want: []string{"34.118.224.0/20"}},
		"one that has the group only":    {answers: map[string]error{"v1": missing, "v1beta1": apierrors.NewNotFound(schema.GroupResource{}, "")}},
		"one that has none":              {answers: map[string]error{"v1": missing, "v1beta1": missing}},
		"one that does not let us read":  {answers: map[string]error{"v1": errDown}, failure: errDown},
		"one that fails after the first": {answers: map[string]error{"v1": missing, "v1beta1": errDown}, failure: errDown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			world := fake.NewClientBuilder().WithObjects(serviceCIDR("34.118.224.0/20")).
				WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					ranges, asked := list.(*unstructured.UnstructuredList)
					if !asked {
						return c.List(ctx, list, opts...)
					}
					if err := tc.answers[ranges.GroupVersionKind().Version]; err != nil {
						return err
					}
					ranges.SetGroupVersionKind(serviceRange("v1")) // the fake has one version
					return c.List(ctx, ranges, opts...)
				}}).Build()
			must(t, world.Create(t.Context(), endpoints()))
			watcher, err := New(t.Context(), &config.Platform{}, world, prometheus.NewPedanticRegistry())
			if !errors.Is(err, tc.failure) {
				t.Fatalf("New() = %v, want %v", err, tc.failure)
			}
			if tc.failure != nil {
				return
			}
			if diff := cmp.Diff(tc.want, watcher.Platform().Cluster.CIDRs); diff != "" {
				t.Errorf("ranges (-want +got):\n%s", diff)
			}
		})
	}
}

var errDown = errors.New("down")
