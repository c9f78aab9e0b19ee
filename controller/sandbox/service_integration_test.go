// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

const (
	readyAndService = "True/DependenciesReady: Pod is Ready; Service Exists"
	pendingService  = "False/DependenciesNotReady: Pod exists with phase: Pending; Service Exists"
)

func withoutWish(s *agentsv1beta1.Sandbox) { s.Spec.Service = nil }

// withPorts gives the workspace a port, and a restartable init container another one
// and the same one again.
func withPorts(s *agentsv1beta1.Sandbox) {
	s.Spec.PodTemplate.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	s.Spec.PodTemplate.Spec.InitContainers = []corev1.Container{
		{
			Name: "sidecar", Image: "python:3.12-slim", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
			Ports: []corev1.ContainerPort{{ContainerPort: 53, Protocol: corev1.ProtocolUDP}, {ContainerPort: 8080}},
		},
		{Name: "setup", Image: "python:3.12-slim", Ports: []corev1.ContainerPort{{ContainerPort: 99}}},
	}
}

func wantedPorts() []corev1.ServicePort {
	return []corev1.ServicePort{
		{Name: "p-53-udp", Protocol: corev1.ProtocolUDP, Port: 53, TargetPort: intstr.FromInt32(53)},
		{Name: "http", Protocol: corev1.ProtocolTCP, Port: 8080, TargetPort: intstr.FromInt32(8080)},
	}
}

// A Service that is asked for is made, repaired when it drifts, kept when the wish is
// withdrawn, and deleted when it is refused.
func TestServiceThroughAllItsStates(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.running(makeSandbox(withService(true), withPorts))
	sandbox := e.saysReady("box", readyAndService)
	service := serviceOf(e)
	hash := map[string]string{keys.SandboxNameHash: keys.NameHash("box")}
	if service.Spec.ClusterIP != corev1.ClusterIPNone || !maps.Equal(service.Spec.Selector, hash) || !maps.Equal(service.Labels, hash) {
		t.Errorf("the Service is not headless and tracked: %+v", service)
	}
	if diff := cmp.Diff(wantedPorts(), service.Spec.Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{controllerRef(sandbox)}, service.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}

	drift(e, service)
	e.Eventually("drift is repaired", func() error {
		now := serviceOf(e)
		return differs([]any{hash, hash["x"], wantedPorts()}, []any{now.Spec.Selector, now.Labels["x"], now.Spec.Ports})
	})

	e.edit(withoutWish)
	e.Eventually("the pass is over", func() error {
		return differs(e.sandbox("box").Generation, e.sandbox("box").Status.Conditions[0].ObservedGeneration)
	})
	service = serviceOf(e)
	drift(e, service)
	e.Eventually("label and selector are repaired, ports are not", func() error {
		now := serviceOf(e)
		return differs([]any{hash, keys.NameHash("box"), 1}, []any{now.Spec.Selector, now.Labels[keys.SandboxNameHash], len(now.Spec.Ports)})
	})
	e.saysReady("box", readyAndService)

	e.edit(withService(false))
	e.Gone(boxName, &corev1.Service{})
	if got := e.saysReady("box", readySay).Status; got.Service != "" || got.ServiceFQDN != "" {
		t.Errorf("the status names a Service that is gone: %+v", got)
	}
	e.idle("box")
}

// drift takes the label away, lets the Service select others, and leaves one port.
func drift(e *environment, service *corev1.Service) {
	before := service.DeepCopy()
	delete(service.Labels, keys.SandboxNameHash)
	service.Spec.Selector = map[string]string{"app": "other"}
	service.Spec.Ports = service.Spec.Ports[:1]
	e.patch(service, before)
}

// Whoever may edit a Service must not be able to let its name stand for another place.
func TestServiceThatIsSentElsewhereComesBack(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*corev1.Service){
		"by an external name": func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName, s.Spec.ClusterIP, s.Spec.ClusterIPs = corev1.ServiceTypeExternalName, "evil.example.com", "", nil
		},
		"by an external address": func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.1"} },
	} {
		for wish, wanted := range map[string]func(*agentsv1beta1.Sandbox){"asked for": withService(true), "asked for no more": withoutWish} {
			t.Run(name+", "+wish, func(t *testing.T) {
				t.Parallel()
				e := newEnvironment(t)
				e.running(makeSandbox(withService(true), withPorts))
				e.edit(wanted)
				service := serviceOf(e)
				before := service.DeepCopy()
				edit(service)
				e.patch(service, before)
				e.Eventually("the Service is what it was", func() error { return differs(before.Spec, serviceOf(e).Spec) })
				e.idle(boxName)
			})
		}
	}
}

func TestWithoutAWishNoServiceIsMade(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.running(makeSandbox(withPorts))
	e.saysReady("box", readySay)
	if e.Exists("box", &corev1.Service{}) {
		t.Error("there is a Service")
	}
	e.idle("box")
}

// storableService is a Service that the apiserver takes.
func storableService(edits ...func(*corev1.Service)) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "box"},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "other"},
			Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	for _, edit := range edits {
		edit(service)
	}
	return service
}

func adoptableService(s *corev1.Service) { s.Labels = map[string]string{keys.Adoptable: "true"} }

// A Service that somebody else made is adopted only with the contract's permission.
func TestServiceOfSomebodyElse(t *testing.T) {
	t.Parallel()
	replicaSet := func(s *corev1.Service) { p := makePod("x", ownedByAnother); s.OwnerReferences = p.OwnerReferences }
	withAddress := func(s *corev1.Service) { s.Spec.ClusterIP = "10.96.7.7" }
	cases := map[string]struct {
		service *corev1.Service
		wish    func(*agentsv1beta1.Sandbox)
		ready   string
		adopted bool
	}{
		"unowned and adoptable": {storableService(adoptableService), withService(true), pendingService, true},
		"unowned and tracked": {
			storableService(func(s *corev1.Service) { s.Labels = map[string]string{keys.SandboxNameHash: keys.NameHash("box")} }),
			withService(true), pendingService, true,
		},
		"unowned without a label": {
			storableService(), withService(true),
			`False/ReconcilerError: Error seen: cannot adopt unowned service "box": missing required pool authorization label ` +
				`("agents.x-k8s.io/adoptable") or sandbox tracking label ("agents.x-k8s.io/sandbox-name-hash")`, false,
		},
		"adoptable with an address": {
			storableService(adoptableService, withAddress), withService(true),
			`False/ReconcilerError: Error seen: cannot adopt service "box": ClusterIP is "10.96.7.7" (expected "None", field is immutable)`, false,
		},
		"of another controller": {
			storableService(adoptableService, replicaSet), withService(true),
			`False/ReconcilerError: Error seen: service "box" is owned by ReplicaSet/web (UID: web-uid), not by sandbox "box"`, false,
		},
		"of another controller, unwanted": {storableService(replicaSet), withService(false), pendingSay, false},
		"unowned, without a wish":         {storableService(adoptableService), withoutWish, pendingSay, false},
		"unowned and adoptable, unwanted": {storableService(adoptableService), withService(false), pendingSay, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			e.Create(tc.service, makeSandbox(tc.wish, withPorts))
			sandbox := e.saysReady("box", tc.ready)
			e.idle("box")
			if !tc.adopted {
				e.untouched(tc.service, &corev1.Service{})
				return
			}
			now := serviceOf(e)
			if now.UID != tc.service.UID || ownershipOf(now, sandbox) != ours {
				t.Errorf("the Service was not adopted: %+v", now.ObjectMeta)
			}
			if diff := cmp.Diff(wantedPorts(), now.Spec.Ports); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
		})
	}
}
