// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/policy"
)

// place says which fields a check is about, relative to the Pod's spec, to a container and to a
// volume, and how to mend them.
type place struct {
	pod, container, volume []string
	remedy                 string
}

var places = map[policy.CheckID]place{
	"allowPrivilegeEscalation": {
		container: []string{"securityContext.allowPrivilegeEscalation"},
		remedy:    "Set securityContext.allowPrivilegeEscalation of the container to false.",
	},
	"appArmorProfile": {
		pod:       []string{"securityContext.appArmorProfile.type"},
		container: []string{"securityContext.appArmorProfile.type"},
		remedy:    "Remove the AppArmor profile, or use RuntimeDefault.",
	},
	"capabilities_baseline": {
		container: []string{"securityContext.capabilities.add"},
		remedy:    "Remove the capability from securityContext.capabilities.add.",
	},
	"capabilities_restricted": {
		container: []string{"securityContext.capabilities"},
		remedy:    `Set securityContext.capabilities.drop of the container to ["ALL"] and add nothing but NET_BIND_SERVICE.`,
	},
	"hostNamespaces": {
		pod:    []string{"hostNetwork", "hostPID", "hostIPC"},
		remedy: "Remove the field or set it to false.",
	},
	"hostPathVolumes": {
		volume: []string{"hostPath"},
		remedy: "Use an emptyDir, or volumeClaimTemplates for files that must outlive the Pod.",
	},
	"hostPorts": {
		container: []string{"ports"},
		remedy:    "Remove hostPort; set spec.service to true to reach the Sandbox by name.",
	},
	"hostProbesAndHostLifecycle": {
		container: []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"},
		remedy:    "Remove host from the probe or hook; it is then sent to the Pod itself.",
	},
	"privileged": {
		container: []string{"securityContext.privileged"},
		remedy:    "Remove securityContext.privileged or set it to false.",
	},
	"procMount": {
		container: []string{"securityContext.procMount"},
		remedy:    "Remove securityContext.procMount or set it to Default.",
	},
	"procMount_restricted": {
		container: []string{"securityContext.procMount"},
		remedy:    "Remove securityContext.procMount or set it to Default.",
	},
	"restrictedVolumes": {
		volume: []string{
			"hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd",
			"flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile", "azureDisk", "vsphereVolume", "quobyte",
			"portworxVolume", "scaleIO", "storageos", "photonPersistentDisk",
		},
		remedy: "Use one of configMap, csi, downwardAPI, emptyDir, ephemeral, image, persistentVolumeClaim, projected, secret.",
	},
	"runAsNonRoot": {
		pod:       []string{"securityContext.runAsNonRoot"},
		container: []string{"securityContext.runAsNonRoot"},
		remedy:    "Set securityContext.runAsNonRoot to true for the Pod or the container, with an image whose user is not root.",
	},
	"runAsUser": {
		pod:       []string{"securityContext.runAsUser"},
		container: []string{"securityContext.runAsUser"},
		remedy:    "Remove securityContext.runAsUser or set it to a number other than 0.",
	},
	"seLinuxOptions": {
		pod:       []string{"securityContext.seLinuxOptions"},
		container: []string{"securityContext.seLinuxOptions"},
		remedy:    "Remove user and role of seLinuxOptions, and use a type that containers have by default.",
	},
	"seccompProfile_baseline": {
		pod:       []string{"securityContext.seccompProfile.type"},
		container: []string{"securityContext.seccompProfile.type"},
		remedy:    "Set securityContext.seccompProfile.type to RuntimeDefault.",
	},
	"seccompProfile_restricted": {
		pod:       []string{"securityContext.seccompProfile.type"},
		container: []string{"securityContext.seccompProfile.type"},
		remedy:    "Set securityContext.seccompProfile.type of the Pod to RuntimeDefault.",
	},
	"sysctls": {
		pod:    []string{"securityContext.sysctls"},
		remedy: "Remove the sysctl; only those that Kubernetes counts as safe are allowed.",
	},
	"windowsHostProcess": {
		pod:       []string{"securityContext.windowsOptions.hostProcess"},
		container: []string{"securityContext.windowsOptions.hostProcess"},
		remedy:    "Remove windowsOptions.hostProcess.",
	},
}

// locate finds where a failed check fails, by running it on the Pod without its parts and on each
// part alone. The texts of the checks are for readers, so they are not taken apart.
func locate(subject pod, id policy.CheckID, check policy.CheckPodFn) []violation {
	where := places[id]
	raw, _ := subject.raw["spec"].(map[string]any)
	base := subject.path + ".spec"
	bare := withoutParts(subject.spec)
	var found []violation
	note := func(result policy.CheckResult, path string, part map[string]any, candidates []string) {
		for _, field := range presentOf(part, candidates) {
			found = append(found, violation{
				check: string(id), field: strings.TrimSuffix(path+"."+field, "."), value: textOf(lookUp(part, field)),
				detail: detailOf(result),
			})
		}
	}
	whole := check(&subject.metadata, bare.DeepCopy())
	if !whole.Allowed {
		note(whole, base, raw, where.pod)
	}
	each := func(name string, count int, candidates []string, isolate func(*corev1.PodSpec, int)) {
		for i := range count {
			alone := bare.DeepCopy()
			isolate(alone, i)
			result := check(&metav1.ObjectMeta{}, alone)
			if result.Allowed || (!whole.Allowed && detailOf(result) == detailOf(whole)) {
				continue
			}
			note(result, fmt.Sprintf("%s.%s[%d]", base, name, i), memberAt(raw, name, i), candidates)
		}
	}
	spec := subject.spec
	each("containers", len(spec.Containers), where.container, func(s *corev1.PodSpec, i int) {
		s.Containers = spec.Containers[i : i+1]
	})
	each("initContainers", len(spec.InitContainers), where.container, func(s *corev1.PodSpec, i int) {
		s.InitContainers = spec.InitContainers[i : i+1]
	})
	each("ephemeralContainers", len(spec.EphemeralContainers), where.container, func(s *corev1.PodSpec, i int) {
		s.EphemeralContainers = spec.EphemeralContainers[i : i+1]
	})
	each("volumes", len(spec.Volumes), where.volume, func(s *corev1.PodSpec, i int) {
		s.Volumes = spec.Volumes[i : i+1]
	})
	if len(found) == 0 {
		result := check(&subject.metadata, &subject.spec)
		found = []violation{{check: string(id), field: base, detail: detailOf(result)}}
	}
	return found
}

func withoutParts(spec corev1.PodSpec) *corev1.PodSpec {
	spec.Containers, spec.InitContainers, spec.EphemeralContainers, spec.Volumes = nil, nil, nil, nil
	return &spec
}

func detailOf(result policy.CheckResult) string {
	if result.ForbiddenDetail == "" {
		return result.ForbiddenReason
	}
	return result.ForbiddenReason + ": " + result.ForbiddenDetail
}

// presentOf returns the candidates that the part has, the first one when it has none (then what is
// missing is the fault), and the part itself when no candidate is known.
func presentOf(part map[string]any, candidates []string) []string {
	var present []string
	for _, field := range candidates {
		if value := lookUp(part, field); value != nil && value != false {
			present = append(present, field)
		}
	}
	switch {
	case len(present) > 0:
		return present
	case len(candidates) > 0:
		return candidates[:1]
	default:
		return []string{""}
	}
}

// lookUp returns the value at a dotted path. The part itself gives the names of its fields, since
// its content may be long or secret.
func lookUp(part map[string]any, path string) any {
	if path == "" {
		return strings.Join(slices.Sorted(maps.Keys(part)), ", ")
	}
	var value any = part
	for step := range strings.SplitSeq(path, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[step]
	}
	return value
}

func memberAt(raw map[string]any, list string, index int) map[string]any {
	members := listAt(raw, list)
	if index >= len(members) {
		return nil
	}
	member, _ := members[index].(map[string]any)
	return member
}
