// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// standards are the checks of the Pod Security Standards.
var standards = policy.DefaultChecks()

// ownWords are the checks that the floor makes itself, in every tier.
var ownWords = []policy.CheckID{"hostNamespaces", "hostPathVolumes", "hostPorts", "privileged"}

// standardsRefusals are what the level that the tier denies below says of a Pod. The
// checks of baseline run at every level: those of restricted do not imply them for
// what no apiserver has seen as a Pod. They judge it as if it had neither user
// namespaces nor another system, which would excuse it from some.
func standardsRefusals(pod *corev1.Pod, tier config.PodSecurity) field.ErrorList {
	level, version := demandOf(tier)
	if level == podsecurityapi.LevelPrivileged {
		return nil
	}
	spec := pod.Spec
	spec.HostUsers, spec.OS = nil, nil
	var refusals field.ErrorList
	for _, check := range standards {
		if slices.Contains(ownWords, check.ID) || (check.Level == podsecurityapi.LevelRestricted && level != check.Level) {
			continue
		}
		at := atVersion(check, version)
		if at == nil {
			continue
		}
		if result := at.CheckPod(&pod.ObjectMeta, &spec); !result.Allowed {
			refusals = append(refusals, field.Forbidden(field.NewPath("spec", "podTemplate"), fmt.Sprintf(
				"%s: %s: Pod Security level %q of the tier refuses that", result.ForbiddenReason,
				cmp.Or(result.ForbiddenDetail, "remove it"), level)))
		}
	}
	return refusals
}

// demandOf is the level, at least baseline unless the tier says privileged, and the
// version that gives it its meaning.
func demandOf(tier config.PodSecurity) (podsecurityapi.Level, podsecurityapi.Version) {
	level, err := podsecurityapi.ParseLevel(cmp.Or(tier.Deny, string(podsecurityapi.LevelBaseline)))
	if err != nil {
		level = podsecurityapi.LevelRestricted
	}
	version, err := podsecurityapi.ParseVersion(tier.Version)
	if err != nil {
		version = podsecurityapi.LatestVersion()
	}
	return level, version
}

// atVersion is the check as it was at the version; nil when there was none yet.
func atVersion(check policy.Check, version podsecurityapi.Version) *policy.VersionedCheck {
	for i := range slices.Backward(check.Versions) {
		if !version.Older(check.Versions[i].MinimumVersion) {
			return &check.Versions[i]
		}
	}
	return nil
}
