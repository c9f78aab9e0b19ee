// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// podAction is what becomes of the Pod of a Sandbox.
type podAction int

const (
	// podNone leaves things as they are.
	podNone podAction = iota
	// podCreate makes the Pod.
	podCreate
	// podAdopt takes over the squatter, or a Pod that only says it is ours, if its spec is
	// what ours would be.
	podAdopt
	// podSync brings the metadata of the Pod in line.
	podSync
	// podDelete deletes the Pod.
	podDelete
)

// decidePod decides by the wish of the Sandbox and by the Pods that are there.
func decidePod(s *scope) (podAction, error) {
	if len(s.owned) > 1 {
		return podNone, multiplePodsError{count: len(s.owned)}
	}
	if s.suspended() {
		return decideSuspendedPod(s), nil
	}
	if len(s.owned) == 1 {
		if s.owned[0].DeletionTimestamp != nil {
			return podNone, nil // a second Pod would meet the first one's volumes
		}
		if s.recreates() && !s.now.Before(s.restartAt) {
			return podDelete, nil
		}
		if !bearsOurMark(s.owned[0], s.sandbox) {
			return podAdopt, nil
		}
		return podSync, nil
	}
	if s.squatter == nil {
		return podCreate, nil
	}
	if err := s.mayAdopt("pod", s.squatter); err != nil {
		return podNone, err
	}
	return podAdopt, nil
}

func decideSuspendedPod(s *scope) podAction {
	if len(s.owned) == 1 && s.owned[0].DeletionTimestamp == nil {
		return podDelete
	}
	return podNone
}

// buildPod makes the Pod of a Sandbox. The profile is that of the choice.
func buildPod(sandbox *agentsv1beta1.Sandbox, choice isolation.Choice, profile config.EgressProfile) *corev1.Pod {
	metadata := desiredPodMetadata(sandbox, choice)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       sandbox.Namespace,
			Name:            sandbox.Name,
			Labels:          metadata.labels,
			Annotations:     metadata.annotations,
			OwnerReferences: []metav1.OwnerReference{controllerRef(sandbox)},
		},
		Spec: *sandbox.Spec.PodTemplate.Spec.DeepCopy(),
	}
	pod.Spec.Volumes = mergeVolumes(sandbox, pod.Spec.Volumes)
	if pod.Spec.AutomountServiceAccountToken == nil {
		pod.Spec.AutomountServiceAccountToken = new(false)
	}
	if choice.Template == "" { // the resolvers of the others were set when they were made
		setResolvers(&pod.Spec, profile)
	}
	return pod
}

// setResolvers gives a Pod whose owner chose no DNS the resolvers of its egress profile,
// as effective.Result.FollowProfile shows them to the rules.
func setResolvers(spec *corev1.PodSpec, profile config.EgressProfile) {
	if spec.DNSPolicy != "" || profile.DNS || len(profile.Nameservers) == 0 {
		return
	}
	spec.DNSPolicy = corev1.DNSNone
	if spec.DNSConfig == nil {
		spec.DNSConfig = &corev1.PodDNSConfig{}
	}
	if len(spec.DNSConfig.Nameservers) == 0 {
		spec.DNSConfig.Nameservers = slices.Clone(profile.Nameservers)
	}
}

// specDifferences names the fields in which a running Pod is not what the apiserver
// would have made of ours. Only the node may differ: the scheduler chose it.
func specDifferences(running, dryRun *corev1.PodSpec) []string {
	a, b := running.DeepCopy(), dryRun.DeepCopy()
	a.NodeName, b.NodeName = "", ""
	if apiequality.Semantic.DeepEqual(a, b) {
		return nil
	}
	left, right := reflect.ValueOf(*a), reflect.ValueOf(*b)
	var differing []string
	for _, field := range reflect.VisibleFields(left.Type()) {
		if !apiequality.Semantic.DeepEqual(left.FieldByIndex(field.Index).Interface(), right.FieldByIndex(field.Index).Interface()) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			differing = append(differing, name)
		}
	}
	return differing
}

// desiredPodName is the value that the annotation pod-name should have; empty for
// none. The second result is false while that cannot be said.
func desiredPodName(s *scope) (string, bool) {
	switch {
	case len(s.owned) > 1:
		return "", false
	case len(s.owned) == 1:
		return s.owned[0].Name, true
	case !s.suspended() && s.squatter != nil && ownershipOf(s.squatter, s.sandbox) == unowned:
		return s.squatter.Name, true // it is to be adopted, or its owner reads why not
	case !s.suspended():
		return s.sandbox.Name, true
	default:
		return "", s.squatter == nil
	}
}
