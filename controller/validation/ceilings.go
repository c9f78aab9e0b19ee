// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podsecurity "k8s.io/pod-security-admission/api"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/quantity"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/ceilings"
)

// checkCeilings refuses a Pod that goes beyond its tier, as the Sandbox reconciler does
// once more before it makes it.
func checkCeilings(in Input) []Fault {
	if in.Effective.Pod == nil || !in.TierKnown {
		return nil
	}
	at := field.NewPath(in.Effective.Path, "spec")
	spec, err := podSpec(objectAt(in.Effective.Pod, "spec"))
	if err != nil {
		if in.Tier.PodSecurity.Deny != string(podsecurity.LevelPrivileged) {
			return nil // the Pod Security level refuses it, and says why
		}
		return []Fault{{
			Rule:   ceilings.RuleHardening,
			Error:  field.Invalid(at, "", "the Pod cannot be read: "+err.Error()),
			Remedy: "Give every field of the Pod the type that Kubernetes documents for it.",
		}}
	}
	var faults []Fault
	for _, breach := range ceilings.OfPod(&spec, at, in.Tier) {
		faults = append(faults, Fault{
			Rule: breach.Rule, Error: breach.Error, Remedy: breach.Remedy, Content: breach.Content, Amount: breach.Amount,
		})
	}
	return faults
}

// podSpec reads the spec of a Pod that does not keep its readers busy.
func podSpec(decoded map[string]any) (corev1.PodSpec, error) {
	var spec corev1.PodSpec
	if path, text, costly := quantity.FindCostly(decoded); costly {
		return spec, fmt.Errorf("%s is %.20q, which has too many digits", strings.TrimPrefix(path, "."), text)
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(decoded, &spec)
	return spec, err
}
