// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/policy"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
)

// place says which fields a check is about, relative to the Pod's spec, to a container and to a
// volume, and how to mend them.
type place struct {
	pod, container, volume []string
	// apart says that each of the fields of the Pod and of a container is judged on its own, and each member of what
	// is written list[].
	apart bool
	// required is a field whose absence is a fault, when they are judged apart.
	required string
	remedy   string
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
		container: []string{"securityContext.capabilities.add[]"},
		apart:     true,
		remedy:    "Remove the capability from securityContext.capabilities.add.",
	},
	"capabilities_restricted": {
		container: []string{"securityContext.capabilities.add[]"},
		apart:     true,
		required:  "securityContext.capabilities.drop",
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
		container: []string{"ports[].hostPort"},
		apart:     true,
		remedy:    "Remove hostPort; set spec.service to true to reach the Sandbox by name.",
	},
	"hostProbesAndHostLifecycle": {
		container: []string{
			"livenessProbe.httpGet.host", "livenessProbe.tcpSocket.host",
			"readinessProbe.httpGet.host", "readinessProbe.tcpSocket.host",
			"startupProbe.httpGet.host", "startupProbe.tcpSocket.host",
			"lifecycle.postStart.httpGet.host", "lifecycle.postStart.tcpSocket.host",
			"lifecycle.preStop.httpGet.host", "lifecycle.preStop.tcpSocket.host",
		},
		apart:  true,
		remedy: "Remove host from the probe or hook; it is then sent to the Pod itself.",
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
		pod:       seLinuxFields,
		container: seLinuxFields,
		apart:     true,
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
		pod:    []string{"securityContext.sysctls[]"},
		apart:  true,
		remedy: "Remove the sysctl; only those that Kubernetes counts as safe are allowed.",
	},
	"windowsHostProcess": {
		pod:       []string{"securityContext.windowsOptions.hostProcess"},
		container: []string{"securityContext.windowsOptions.hostProcess"},
		remedy:    "Remove windowsOptions.hostProcess.",
	},
}

var seLinuxFields = []string{
	"securityContext.seLinuxOptions.type", "securityContext.seLinuxOptions.user", "securityContext.seLinuxOptions.role",
}

// locate finds where a failed check fails, by running it on the Pod without its parts and on each
// part alone. The texts of the checks are for readers, so they are not taken apart. The work grows with
// the number of parts only: no part is copied, and the rest of the Pod is not read again for lists that
// the check is not about. It stops when the context ends.
func locate(ctx context.Context, subject pod, id policy.CheckID, check policy.CheckPodFn) []violation {
	where, known := places[id]
	raw, _ := subject.raw["spec"].(map[string]any)
	base := subject.path + ".spec"
	bare := withoutParts(subject.spec)
	var found []violation
	note := func(detail, path string, part suspect) {
		part.where, part.check = where, check
		for _, v := range part.atFault(ctx) {
			v.check, v.field = string(id), strings.TrimSuffix(path+"."+v.field, ".")
			v.detail = clip.To(cmp.Or(v.detail, detail), maxMessage)
			found = append(found, v)
		}
	}
	result := check(&subject.metadata, &bare)
	whole := detailOf(result)
	if result.Allowed {
		whole = ""
	} else if found = annotated(ctx, subject, string(id), check, &bare); len(found) == 0 {
		note(whole, base, suspect{raw: raw, candidates: where.pod})
	}
	for _, list := range partsOf(subject.spec) {
		candidates := list.candidates(where)
		if known && len(candidates) == 0 {
			continue
		}
		alone, metadata := bare, metav1.ObjectMeta{}
		for i := range list.count {
			if ctx.Err() != nil {
				return found
			}
			list.isolate(&alone, i)
			result := check(&metadata, &alone)
			if detail := detailOf(result); !result.Allowed && detail != whole {
				note(detail, fmt.Sprintf("%s.%s[%d]", base, list.name, i),
					suspect{list: list.name, raw: memberAt(raw, list.name, i), candidates: candidates})
			}
		}
	}
	if len(found) == 0 {
		detail := detailOf(check(&subject.metadata, &subject.spec))
		found = []violation{{check: string(id), field: base, detail: clip.To(detail, maxMessage)}}
	}
	return found
}

// annotated are the annotations by which a Pod without parts fails a check that it passes
// without them.
func annotated(ctx context.Context, subject pod, id string, check policy.CheckPodFn, bare *corev1.PodSpec) []violation {
	if !check(&metav1.ObjectMeta{}, bare).Allowed {
		return nil
	}
	var found []violation
	for _, key := range slices.Sorted(maps.Keys(subject.metadata.Annotations)) {
		if ctx.Err() != nil {
			break
		}
		value := subject.metadata.Annotations[key]
		if result := check(&metav1.ObjectMeta{Annotations: map[string]string{key: value}}, bare); !result.Allowed {
			found = append(found, violation{
				check: id, field: subject.path + ".metadata.annotations[" + key + "]",
				value: value, detail: clip.To(detailOf(result), maxMessage),
			})
		}
	}
	return found
}

// parts are one list of a Pod's spec.
type parts struct {
	name  string
	count int
	// candidates are the fields of a place that a member may have.
	candidates func(place) []string
	// isolate makes a member the only one of its list.
	isolate func(*corev1.PodSpec, int)
}

func partsOf(spec corev1.PodSpec) []parts {
	container := func(p place) []string { return p.container }
	volume := func(p place) []string { return p.volume }
	return []parts{
		{"containers", len(spec.Containers), container, func(s *corev1.PodSpec, i int) {
			s.Containers = spec.Containers[i : i+1]
		}},
		{"initContainers", len(spec.InitContainers), container, func(s *corev1.PodSpec, i int) {
			s.InitContainers = spec.InitContainers[i : i+1]
		}},
		{"ephemeralContainers", len(spec.EphemeralContainers), container, func(s *corev1.PodSpec, i int) {
			s.EphemeralContainers = spec.EphemeralContainers[i : i+1]
		}},
		{"volumes", len(spec.Volumes), volume, func(s *corev1.PodSpec, i int) {
			s.Volumes = spec.Volumes[i : i+1]
		}},
	}
}

func withoutParts(spec corev1.PodSpec) corev1.PodSpec {
	spec.Containers, spec.InitContainers, spec.EphemeralContainers, spec.Volumes = nil, nil, nil, nil
	return spec
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
