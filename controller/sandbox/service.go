// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// serviceAction is what becomes of the Service of a Sandbox.
type serviceAction int

const (
	serviceNone serviceAction = iota
	serviceCreate
	serviceRepair
	serviceAdopt
	serviceDelete
)

// decideService decides by the wish of the Sandbox and by what is there.
func decideService(s *scope) (serviceAction, error) {
	wish, found := s.sandbox.Spec.Service, s.foundService
	if found == nil {
		if wantsService(s.sandbox) {
			return serviceCreate, nil
		}
		return serviceNone, nil
	}
	whose := ownershipOf(found, s.sandbox)
	switch {
	case wish != nil && !*wish:
		if whose == ours {
			return serviceDelete, nil
		}
		return serviceNone, nil
	case whose == ours:
		return serviceRepair, nil
	case whose == unowned && wish == nil:
		return serviceNone, nil
	}
	if err := s.mayAdopt("service", found); err != nil {
		return serviceNone, err
	}
	if ip := found.Spec.ClusterIP; ip != corev1.ClusterIPNone && ip != "" {
		return serviceNone, userErrorf("cannot adopt service %q: ClusterIP is %q (expected %q, field is immutable)",
			found.Name, ip, corev1.ClusterIPNone)
	}
	return serviceAdopt, nil
}

// buildService makes the headless Service of a Sandbox.
func buildService(sandbox *agentsv1beta1.Sandbox) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       sandbox.Namespace,
			Name:            sandbox.Name,
			Labels:          nameHashLabel(sandbox),
			OwnerReferences: []metav1.OwnerReference{controllerRef(sandbox)},
		},
		Spec: corev1.ServiceSpec{
			Type:      corev1.ServiceTypeClusterIP,
			ClusterIP: corev1.ClusterIPNone,
			Selector:  nameHashLabel(sandbox),
			Ports:     servicePorts(&sandbox.Spec.PodTemplate.Spec),
		},
	}
}

func nameHashLabel(sandbox *agentsv1beta1.Sandbox) map[string]string {
	return map[string]string{keys.SandboxNameHash: keys.NameHash(sandbox.Name)}
}

// repairService brings label, selector and what makes a Service headless in line, and
// the ports of one that was asked for: none may send to anywhere but the Pod. It says
// whether that changed anything.
func repairService(service *corev1.Service, sandbox *agentsv1beta1.Sandbox) bool {
	before := service.DeepCopy()
	if service.Labels == nil {
		service.Labels = map[string]string{}
	}
	service.Labels[keys.SandboxNameHash] = keys.NameHash(sandbox.Name)
	service.Spec.Selector = nameHashLabel(sandbox)
	service.Spec.Type, service.Spec.ExternalName, service.Spec.ExternalIPs = corev1.ServiceTypeClusterIP, "", nil
	service.Spec.ClusterIP = cmp.Or(service.Spec.ClusterIP, corev1.ClusterIPNone)
	if wantsService(sandbox) {
		service.Spec.Ports = servicePorts(&sandbox.Spec.PodTemplate.Spec)
	}
	return !apiequality.Semantic.DeepEqual(before, service)
}

// adoptService makes an unowned Service what buildService would have made.
func adoptService(service *corev1.Service, sandbox *agentsv1beta1.Sandbox) {
	repairService(service, sandbox)
	service.OwnerReferences = append(service.OwnerReferences, controllerRef(sandbox))
}

// endpoint is what tells one port of a Service from another.
type endpoint struct {
	port     int32
	protocol corev1.Protocol
}

// servicePorts are the ports of all containers that run beside the workspace, each
// once, ordered by number and protocol.
func servicePorts(pod *corev1.PodSpec) []corev1.ServicePort {
	names := map[endpoint]string{}
	taken := map[string]bool{}
	for _, p := range containerPorts(pod) {
		at := endpoint{p.ContainerPort, cmp.Or(p.Protocol, corev1.ProtocolTCP)}
		if names[at] == "" && p.Name != "" && !taken[p.Name] {
			names[at], taken[p.Name] = p.Name, true
		} else if _, known := names[at]; !known {
			names[at] = ""
		}
	}
	endpoints := make([]endpoint, 0, len(names))
	for at := range names {
		endpoints = append(endpoints, at)
	}
	slices.SortFunc(endpoints, func(a, b endpoint) int {
		return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.protocol, b.protocol))
	})
	var ports []corev1.ServicePort
	for _, at := range endpoints {
		ports = append(ports, corev1.ServicePort{
			Name:       nameOrGenerated(names[at], at, taken),
			Protocol:   at.protocol,
			Port:       at.port,
			TargetPort: intstr.FromInt32(at.port),
		})
	}
	return ports
}

// containerPorts are the ports of containers and of restartable init containers.
func containerPorts(pod *corev1.PodSpec) []corev1.ContainerPort {
	var ports []corev1.ContainerPort
	for i := range pod.Containers {
		ports = append(ports, pod.Containers[i].Ports...)
	}
	for i := range pod.InitContainers {
		if policy := pod.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			ports = append(ports, pod.InitContainers[i].Ports...)
		}
	}
	return slices.DeleteFunc(ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == 0 })
}

// nameOrGenerated names a port that no container names, and takes that name.
func nameOrGenerated(given string, at endpoint, taken map[string]bool) string {
	if given != "" {
		return given
	}
	base := fmt.Sprintf("p-%d-%s", at.port, strings.ToLower(string(at.protocol)))
	name := base
	for i := 2; taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	taken[name] = true
	return name
}
