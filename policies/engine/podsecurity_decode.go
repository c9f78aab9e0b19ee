// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	apiquantity "github.com/agent-sandbox-platform/agent-sandbox/controller/api/quantity"
)

// The types below are the fields of a Pod that the checks read, as Kubernetes names them. Decoding a type takes a step
// for each of its fields, whether they are there or not: all of them take longer than all checks.
type (
	checkedMetadata struct {
		Annotations map[string]string `json:"annotations"`
	}

	checkedSpec struct {
		HostNetwork         bool                       `json:"hostNetwork"`
		HostPID             bool                       `json:"hostPID"`
		HostIPC             bool                       `json:"hostIPC"`
		SecurityContext     *corev1.PodSecurityContext `json:"securityContext"`
		Containers          []checkedContainer         `json:"containers"`
		InitContainers      []checkedContainer         `json:"initContainers"`
		EphemeralContainers []checkedContainer         `json:"ephemeralContainers"`
	}

	checkedContainer struct {
		Name            string                  `json:"name"`
		SecurityContext *corev1.SecurityContext `json:"securityContext"`
		Ports           []checkedPort           `json:"ports"`
		LivenessProbe   *checkedHandler         `json:"livenessProbe"`
		ReadinessProbe  *checkedHandler         `json:"readinessProbe"`
		StartupProbe    *checkedHandler         `json:"startupProbe"`
		Lifecycle       *checkedLifecycle       `json:"lifecycle"`
	}

	checkedPort struct {
		HostPort int32 `json:"hostPort"`
	}

	checkedLifecycle struct {
		PostStart *checkedHandler `json:"postStart"`
		PreStop   *checkedHandler `json:"preStop"`
	}

	// checkedHandler is a probe or a hook.
	checkedHandler struct {
		HTTPGet   *checkedTarget `json:"httpGet"`
		TCPSocket *checkedTarget `json:"tcpSocket"`
	}

	checkedTarget struct {
		Host string `json:"host"`
	}
)

// whole is the spec as the checks take it.
func (s *checkedSpec) whole(volumes []corev1.Volume) corev1.PodSpec {
	spec := corev1.PodSpec{
		HostNetwork: s.HostNetwork, HostPID: s.HostPID, HostIPC: s.HostIPC, SecurityContext: s.SecurityContext, Volumes: volumes,
	}
	spec.Containers, spec.InitContainers = wholeAll(s.Containers), wholeAll(s.InitContainers)
	for _, c := range wholeAll(s.EphemeralContainers) {
		spec.EphemeralContainers = append(spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(c)})
	}
	return spec
}

func wholeAll(containers []checkedContainer) []corev1.Container {
	if len(containers) == 0 {
		return nil
	}
	all := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		all[i] = corev1.Container{
			Name: c.Name, SecurityContext: c.SecurityContext, Ports: wholePorts(c.Ports), Lifecycle: c.Lifecycle.whole(),
			LivenessProbe: c.LivenessProbe.probe(), ReadinessProbe: c.ReadinessProbe.probe(), StartupProbe: c.StartupProbe.probe(),
		}
	}
	return all
}

func wholePorts(ports []checkedPort) []corev1.ContainerPort {
	var all []corev1.ContainerPort
	for _, p := range ports {
		if p.HostPort != 0 {
			all = append(all, corev1.ContainerPort{HostPort: p.HostPort})
		}
	}
	return all
}

func (l *checkedLifecycle) whole() *corev1.Lifecycle {
	if l == nil {
		return nil
	}
	hook := func(h *checkedHandler) *corev1.LifecycleHandler {
		if h == nil {
			return nil
		}
		return &corev1.LifecycleHandler{HTTPGet: h.httpGet(), TCPSocket: h.tcpSocket()}
	}
	return &corev1.Lifecycle{PostStart: hook(l.PostStart), PreStop: hook(l.PreStop)}
}

func (h *checkedHandler) probe() *corev1.Probe {
	if h == nil {
		return nil
	}
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: h.httpGet(), TCPSocket: h.tcpSocket()}}
}

func (h *checkedHandler) httpGet() *corev1.HTTPGetAction {
	if h.HTTPGet == nil {
		return nil
	}
	return &corev1.HTTPGetAction{Host: h.HTTPGet.Host}
}

func (h *checkedHandler) tcpSocket() *corev1.TCPSocketAction {
	if h.TCPSocket == nil {
		return nil
	}
	return &corev1.TCPSocketAction{Host: h.TCPSocket.Host}
}

// volumeSources are the fields of a volume's source by their names in JSON.
var volumeSources = func() map[string]int {
	fields, source := map[string]int{}, reflect.TypeFor[corev1.VolumeSource]()
	for i := range source.NumField() {
		name, _, _ := strings.Cut(source.Field(i).Tag.Get("json"), ",")
		fields[name] = i
	}
	return fields
}()

// decodeVolumes reads the sources that each volume has: a volume has one of thirty.
func decodeVolumes(raw any) ([]corev1.Volume, error) {
	if path, text, costly := apiquantity.FindCostly(raw); costly {
		return nil, fmt.Errorf("volumes%s is %s, not a quantity", path, textOf(text))
	}
	list, isList := raw.([]any)
	if !isList && raw != nil {
		return nil, fmt.Errorf("volumes is %s, not a list", textOf(raw))
	}
	volumes := make([]corev1.Volume, len(list))
	for i, member := range list {
		if err := decodeVolume(member, &volumes[i]); err != nil {
			return nil, fmt.Errorf("volumes[%d]%w", i, err)
		}
	}
	return volumes, nil
}

func decodeVolume(raw any, volume *corev1.Volume) error {
	fields, isObject := raw.(map[string]any)
	if !isObject && raw != nil {
		return fmt.Errorf(" is %s, not an object", textOf(raw))
	}
	source := reflect.ValueOf(&volume.VolumeSource).Elem()
	for name, value := range fields {
		index, isSource := volumeSources[name]
		if !isSource || value == nil {
			continue
		}
		content, isObject := value.(map[string]any)
		if !isObject {
			return fmt.Errorf(".%s is %s, not an object", name, textOf(value))
		}
		field := source.Field(index)
		field.Set(reflect.New(field.Type().Elem()))
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, field.Interface()); err != nil {
			return fmt.Errorf(".%s: %w", name, err)
		}
	}
	name, isText := fields["name"].(string)
	if !isText && fields["name"] != nil {
		return errors.New(".name is " + textOf(fields["name"]) + ", not a text")
	}
	volume.Name = name
	return nil
}
