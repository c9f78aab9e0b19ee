// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

func makeService(edits ...func(*corev1.Service)) *corev1.Service {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "box"}}
	for _, edit := range edits {
		edit(service)
	}
	return service
}

func TestDecideService(t *testing.T) {
	ownService := buildService(makeSandbox())
	anothers := makeService(func(s *corev1.Service) {
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "x", UID: "x-uid", Controller: new(true)}}
	})
	adoptable := func(ip string) *corev1.Service {
		return makeService(func(s *corev1.Service) {
			s.Labels = map[string]string{keys.Adoptable: "true"}
			s.Spec.ClusterIP = ip
		})
	}
	const foreignText = `service "box" is owned by Other/x (UID: x-uid), not by sandbox "box"`
	unset := func(*agentsv1beta1.Sandbox) {}
	cases := map[string]struct {
		wish  func(*agentsv1beta1.Sandbox)
		found *corev1.Service
		want  serviceAction
		err   string
	}{
		"unset, none":                           {unset, nil, serviceNone, ""},
		"unset, ours":                           {unset, ownService, serviceRepair, ""},
		"unset, nobody's":                       {unset, adoptable("None"), serviceNone, ""},
		"unset, another's":                      {unset, anothers, serviceNone, foreignText},
		"wanted, none":                          {withService(true), nil, serviceCreate, ""},
		"wanted, ours":                          {withService(true), ownService, serviceRepair, ""},
		"wanted, another's":                     {withService(true), anothers, serviceNone, foreignText},
		"wanted, one to adopt":                  {withService(true), adoptable("None"), serviceAdopt, ""},
		"wanted, one to adopt without address":  {withService(true), adoptable(""), serviceAdopt, ""},
		"wanted, one to adopt with an address":  {withService(true), adoptable("10.0.0.1"), serviceNone, `cannot adopt service "box": ClusterIP is "10.0.0.1" (expected "None", field is immutable)`},
		"wanted, nobody's without a permission": {withService(true), makeService(), serviceNone, `cannot adopt unowned service "box": missing required pool authorization label ("agents.x-k8s.io/adoptable") or sandbox tracking label ("agents.x-k8s.io/sandbox-name-hash")`},
		"unwanted, none":                        {withService(false), nil, serviceNone, ""},
		"unwanted, ours":                        {withService(false), ownService, serviceDelete, ""},
		"unwanted, another's":                   {withService(false), anothers, serviceNone, ""},
		"unwanted, nobody's":                    {withService(false), adoptable("None"), serviceNone, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := decideService(makeScope(makeSandbox(tc.wish), func(s *scope) { s.foundService = tc.found }))
			if got != tc.want || textOf(err) != tc.err {
				t.Errorf("decideService() = %d, %q, want %d, %q", got, textOf(err), tc.want, tc.err)
			}
		})
	}
}

func TestServicePorts(t *testing.T) {
	port := func(name string, number int32, protocol corev1.Protocol) corev1.ContainerPort {
		return corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: protocol}
	}
	cases := map[string]struct {
		containers [][]corev1.ContainerPort
		sidecars   [][]corev1.ContainerPort
		inits      [][]corev1.ContainerPort
		want       []string
	}{
		"no ports": {},
		"sorted by number and protocol, TCP when unsaid": {
			containers: [][]corev1.ContainerPort{{port("", 443, ""), port("", 53, "UDP"), port("", 53, "TCP"), port("", 7, "SCTP")}},
			want:       []string{"p-7-sctp 7/SCTP", "p-53-tcp 53/TCP", "p-53-udp 53/UDP", "p-443-tcp 443/TCP"},
		},
		"names that containers give": {
			containers: [][]corev1.ContainerPort{{port("http", 80, "")}, {port("web", 8080, "")}},
			want:       []string{"http 80/TCP", "web 8080/TCP"},
		},
		"the same port twice keeps the first name": {
			containers: [][]corev1.ContainerPort{{port("", 80, "")}, {port("http", 80, "TCP")}, {port("web", 80, "TCP")}},
			want:       []string{"http 80/TCP"},
		},
		"the same name twice is given once": {
			containers: [][]corev1.ContainerPort{{port("http", 8080, "")}, {port("http", 80, "")}},
			want:       []string{"p-80-tcp 80/TCP", "http 8080/TCP"},
		},
		"a generated name that a container took": {
			containers: [][]corev1.ContainerPort{{port("p-80-tcp", 9, ""), port("p-80-tcp-2", 10, ""), port("", 80, "")}},
			want:       []string{"p-80-tcp 9/TCP", "p-80-tcp-2 10/TCP", "p-80-tcp-3 80/TCP"},
		},
		"a name is no name of a port that has one": {
			containers: [][]corev1.ContainerPort{{port("http", 80, ""), port("web", 80, "")}, {port("web", 81, "")}},
			want:       []string{"http 80/TCP", "web 81/TCP"},
		},
		"sidecars count, init containers and port 0 do not": {
			containers: [][]corev1.ContainerPort{{port("", 0, "")}},
			sidecars:   [][]corev1.ContainerPort{{port("proxy", 15001, "")}},
			inits:      [][]corev1.ContainerPort{{port("setup", 99, "")}},
			want:       []string{"proxy 15001/TCP"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pod corev1.PodSpec
			for _, ports := range tc.containers {
				pod.Containers = append(pod.Containers, corev1.Container{Ports: ports})
			}
			for _, ports := range tc.sidecars {
				pod.InitContainers = append(pod.InitContainers,
					corev1.Container{Ports: ports, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)})
			}
			for _, ports := range tc.inits {
				pod.InitContainers = append(pod.InitContainers,
					corev1.Container{Ports: ports},
					corev1.Container{Ports: ports, RestartPolicy: new(corev1.ContainerRestartPolicyOnFailure)})
			}
			var got []string
			for _, p := range servicePorts(&pod) {
				got = append(got, fmt.Sprintf("%s %d/%s", p.Name, p.Port, p.Protocol))
				if p.TargetPort.IntVal != p.Port {
					t.Errorf("%s leads to %s, want %d", p.Name, p.TargetPort.String(), p.Port)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("servicePorts() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRepairService(t *testing.T) {
	withPort := func(s *agentsv1beta1.Sandbox) {
		s.Spec.PodTemplate.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
	}
	drifted := func() *corev1.Service {
		service := buildService(makeSandbox(withPort))
		service.Labels = map[string]string{"mine": "kept"}
		service.Spec.Selector = map[string]string{"app": "database"}
		service.Spec.Ports = nil
		service.Spec.Type, service.Spec.ClusterIP, service.Spec.ExternalName = corev1.ServiceTypeExternalName, "", "evil.example.com"
		service.Spec.ExternalIPs = []string{"192.0.2.1"}
		return service
	}
	hash := map[string]string{keys.SandboxNameHash: keys.NameHash("box")}

	for wish, ports := range map[bool]int{true: 1, false: 0} {
		sandbox := makeSandbox(withPort)
		if wish {
			withService(true)(sandbox)
		}
		service := drifted()
		if !repairService(service, sandbox) {
			t.Errorf("with service wanted %t, drift was not seen", wish)
		}
		if diff := cmp.Diff(hash, service.Spec.Selector); diff != "" {
			t.Errorf("selector (-want +got):\n%s", diff)
		}
		if got := service.Spec; got.Type != corev1.ServiceTypeClusterIP || got.ClusterIP != corev1.ClusterIPNone || got.ExternalName != "" || len(got.ExternalIPs) != 0 {
			t.Errorf("spec = %+v, want a headless Service that leads to the Pod only", got)
		}
		if service.Labels["mine"] != "kept" || service.Labels[keys.SandboxNameHash] != keys.NameHash("box") {
			t.Errorf("labels = %v, want the user's and ours", service.Labels)
		}
		if len(service.Spec.Ports) != ports {
			t.Errorf("with service wanted %t, there are ports %v, want %d", wish, service.Spec.Ports, ports)
		}
		if repairService(service, sandbox) {
			t.Error("a second repair changed the Service again")
		}
	}
}

func TestAdoptService(t *testing.T) {
	service := makeService(func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
	})
	adoptService(service, makeSandbox(withService(true)))
	if ownershipOf(service, makeSandbox()) != ours {
		t.Errorf("owners = %v, want the Sandbox", service.OwnerReferences)
	}
	if got := service.Spec; got.ClusterIP != corev1.ClusterIPNone || got.Type != corev1.ServiceTypeClusterIP || got.ExternalName != "" {
		t.Errorf("spec = %+v, want a headless Service", got)
	}
}
