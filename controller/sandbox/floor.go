// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/ceilings"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// floorRefusals lists why a Pod may not be made, whatever admission said when the
// Sandbox was stored: it may have been absent, exempt or older. Each refusal names
// the field, the value and the remedy.
func floorRefusals(pod *corev1.Pod, tier config.Tier, allowed config.Identity) field.ErrorList {
	at := field.NewPath("spec", "podTemplate", "spec")
	spec := &pod.Spec
	refusals := hostNamespaceRefusals(spec, at)
	for i := range spec.Volumes {
		if host := spec.Volumes[i].HostPath; host != nil {
			refusals = append(refusals, field.Invalid(at.Child("volumes").Index(i).Child("hostPath", "path"), host.Path,
				"a sandbox sees no files of the node: use an emptyDir or a volumeClaimTemplate"))
		}
	}
	refusals = append(refusals, containerRefusals(spec, at)...)
	refusals = append(refusals, identityRefusals(spec, at, allowed)...)
	refusals = append(refusals, standardsRefusals(pod, tier.PodSecurity)...)
	refusals = append(refusals, runtimeClassRefusals(spec, at, tier.RuntimeClass)...)
	return append(refusals, ceilingRefusals(spec, at, tier, refusals)...)
}

// ceilingRefusals are what goes beyond the tier, but for fields that are refused already.
func ceilingRefusals(pod *corev1.PodSpec, at *field.Path, tier config.Tier, before field.ErrorList) field.ErrorList {
	var refusals field.ErrorList
	for _, breach := range ceilings.OfPod(pod, at, tier) {
		if slices.ContainsFunc(before, func(refused *field.Error) bool { return refused.Field == breach.Field }) {
			continue
		}
		refusal := *breach.Error
		refusal.Detail += ": " + strings.ToLower(breach.Remedy[:1]) + strings.TrimSuffix(breach.Remedy[1:], ".")
		refusals = append(refusals, &refusal)
	}
	return refusals
}

func hostNamespaceRefusals(pod *corev1.PodSpec, at *field.Path) field.ErrorList {
	var refusals field.ErrorList
	for _, shared := range []struct {
		name string
		set  bool
	}{{"hostNetwork", pod.HostNetwork}, {"hostPID", pod.HostPID}, {"hostIPC", pod.HostIPC}} {
		if shared.set {
			refusals = append(refusals, field.Invalid(at.Child(shared.name), true,
				"a sandbox shares no namespace with the node: remove the field"))
		}
	}
	return refusals
}

func containerRefusals(pod *corev1.PodSpec, at *field.Path) field.ErrorList {
	var refusals field.ErrorList
	for i := range pod.InitContainers {
		refusals = append(refusals, containerRefusal(&pod.InitContainers[i], at.Child("initContainers").Index(i))...)
	}
	for i := range pod.Containers {
		refusals = append(refusals, containerRefusal(&pod.Containers[i], at.Child("containers").Index(i))...)
	}
	for i := range pod.EphemeralContainers {
		container := corev1.Container(pod.EphemeralContainers[i].EphemeralContainerCommon)
		refusals = append(refusals, containerRefusal(&container, at.Child("ephemeralContainers").Index(i))...)
	}
	return refusals
}

func containerRefusal(container *corev1.Container, at *field.Path) field.ErrorList {
	var refusals field.ErrorList
	if sc := container.SecurityContext; sc != nil && sc.Privileged != nil && *sc.Privileged {
		refusals = append(refusals, field.Invalid(at.Child("securityContext", "privileged"), true,
			"a privileged container is the node's root: remove the field"))
	}
	for i, port := range container.Ports {
		if port.HostPort != 0 {
			refusals = append(refusals, field.Invalid(at.Child("ports").Index(i).Child("hostPort"), port.HostPort,
				"a sandbox takes no port of the node: remove the field, and ask for a Service with spec.service"))
		}
	}
	return refusals
}

func runtimeClassRefusals(pod *corev1.PodSpec, at *field.Path, tier config.RuntimeClass) field.ErrorList {
	class := ptr.Deref(pod.RuntimeClassName, "")
	why := tier.Refusal(class)
	if why == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(at.Child("runtimeClassName"), class,
		"the tier of the namespace "+why+": set it to one of "+strings.Join(tier.Permitted(), ", "))}
}

// sentence puts all refusals into one line.
func sentence(refusals field.ErrorList) string {
	texts := make([]string, 0, len(refusals))
	for _, refusal := range refusals {
		texts = append(texts, refusal.Error())
	}
	return strings.Join(texts, "; ")
}
