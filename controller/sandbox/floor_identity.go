// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// tokenLifetime is how long a projected token lives, in seconds, if nothing is said.
const tokenLifetime = 3600

// identityRefusals keep the identities of the cluster away from a Pod, whether they are
// mounted by themselves or projected into a volume.
func identityRefusals(pod *corev1.PodSpec, at *field.Path, allowed config.Identity) field.ErrorList {
	var refusals field.ErrorList
	if mounts := pod.AutomountServiceAccountToken; mounts != nil && *mounts && !lists(allowed.ServiceAccounts, pod.ServiceAccountName) {
		refusals = append(refusals, field.Invalid(at.Child("automountServiceAccountToken"), true,
			"a sandbox gets no credentials of the cluster: set it to false"))
	}
	if slices.Contains(allowed.Audiences, config.AnyIdentity) {
		return refusals
	}
	for i := range pod.Volumes {
		if projected := pod.Volumes[i].Projected; projected != nil {
			refusals = append(refusals, projectionRefusals(projected.Sources, at.Child("volumes").Index(i).Child("projected", "sources"), allowed)...)
		}
	}
	return refusals
}

func projectionRefusals(sources []corev1.VolumeProjection, at *field.Path, allowed config.Identity) field.ErrorList {
	const remedy = "a sandbox gets no identity of the cluster: remove the source"
	var refusals field.ErrorList
	for i, source := range sources {
		if token := source.ServiceAccountToken; token != nil && !mayProject(token, allowed) {
			refusals = append(refusals, field.Invalid(at.Index(i).Child("serviceAccountToken", "audience"), token.Audience, remedy))
		}
		if certificate := source.PodCertificate; certificate != nil {
			refusals = append(refusals, field.Invalid(at.Index(i).Child("podCertificate", "signerName"), certificate.SignerName, remedy))
		}
		if source.ClusterTrustBundle != nil {
			refusals = append(refusals, field.Forbidden(at.Index(i).Child("clusterTrustBundle"), remedy))
		}
	}
	return refusals
}

func mayProject(token *corev1.ServiceAccountTokenProjection, allowed config.Identity) bool {
	lifetime := int64(tokenLifetime)
	if token.ExpirationSeconds != nil {
		lifetime = *token.ExpirationSeconds
	}
	return slices.Contains(allowed.Audiences, token.Audience) && lifetime <= cmp.Or(allowed.MaxExpirationSeconds, tokenLifetime)
}

func lists(allowed []string, serviceAccount string) bool {
	return slices.Contains(allowed, serviceAccount) || slices.Contains(allowed, config.AnyIdentity)
}
