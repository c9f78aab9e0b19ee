// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// noon is the time of every test.
func noon() time.Time { return time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC) }

// makeSandbox gives a running Sandbox with one container, changed by the edits.
func makeSandbox(edits ...func(*agentsv1beta1.Sandbox)) *agentsv1beta1.Sandbox {
	sandbox := &agentsv1beta1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "box", UID: "box-uid", Generation: 7},
		Spec: agentsv1beta1.SandboxSpec{
			OperatingMode: agentsv1beta1.OperatingModeRunning,
			SandboxBlueprint: agentsv1beta1.SandboxBlueprint{
				PodTemplate: agentsv1beta1.PodTemplate{
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}},
				},
			},
		},
	}
	for _, edit := range edits {
		edit(sandbox)
	}
	return sandbox
}

func suspend(s *agentsv1beta1.Sandbox) { s.Spec.OperatingMode = agentsv1beta1.OperatingModeSuspended }

func withService(wish bool) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) { s.Spec.Service = &wish }
}

// expire ends the time of a Sandbox at noon.
func expire(s *agentsv1beta1.Sandbox) {
	s.Spec.ShutdownTime, s.Spec.ShutdownPolicy = &metav1.Time{Time: noon()}, new(agentsv1beta1.ShutdownPolicyRetain)
}

func withVolume(names ...string) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) {
		for _, name := range names {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, agentsv1beta1.PersistentVolumeClaimTemplate{
				EmbeddedObjectMetadata: agentsv1beta1.EmbeddedObjectMetadata{Name: name},
			})
		}
	}
}

func withPodMetadata(labels, annotations map[string]string) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) {
		s.Spec.PodTemplate.ObjectMeta = agentsv1beta1.PodMetadata{Labels: labels, Annotations: annotations}
	}
}

func withLabels(labels map[string]string) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) { s.Labels = labels }
}

func trackingPod(name string) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) { s.Annotations = map[string]string{keys.PodName: name} }
}

func controlledBy(kind string) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) {
		s.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: extensionsv1beta1.GroupVersion.String(), Kind: kind, Name: "boss", UID: "boss-uid", Controller: new(true),
		}}
	}
}

func withCondition(kind string, status metav1.ConditionStatus, reason, message string, at time.Time) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) {
		c := condition(kind, status, reason, message)
		c.LastTransitionTime = metav1.NewTime(at)
		s.Status.Conditions = append(s.Status.Conditions, c)
	}
}

// makePod gives a Pod of that name that nobody owns, changed by the edits.
func makePod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, UID: types.UID(name + "-pod-uid")}}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

// marked gives a Pod the label that only our controller writes.
func marked(p *corev1.Pod) { labelled(keys.Sandbox, "true")(p) }

func ownedByBox(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{controllerRef(makeSandbox())}
}

func ownedByAnother(p *corev1.Pod) {
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web-uid", Controller: new(true),
	}}
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func withPodCondition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

func onNode(p *corev1.Pod) { p.Spec.NodeName = "n1" }

func withIP(ip string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip}) }
}

func ready(p *corev1.Pod) {
	inPhase(corev1.PodRunning)(p)
	withPodCondition(corev1.PodReady, corev1.ConditionTrue, "", "")(p)
	withIP("10.0.0.7")(p)
}

func deletedAt(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: at} }
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{key: value} }
}

// makeScope gives the scope of a pass at noon, changed by the edits.
func makeScope(sandbox *agentsv1beta1.Sandbox, edits ...func(*scope)) *scope {
	s := &scope{sandbox: sandbox, now: noon()}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// having puts Pods of ours into the scope, the first as the one that the phase found.
func having(pods ...*corev1.Pod) func(*scope) {
	return func(s *scope) {
		s.owned = pods
		if len(pods) == 1 {
			s.pod = pods[0]
		}
	}
}

func squatting(pod *corev1.Pod) func(*scope) { return func(s *scope) { s.squatter = pod } }

func failing(errs ...error) func(*scope) {
	return func(s *scope) {
		for _, err := range errs {
			s.problems = s.problems.with(err)
		}
	}
}

func withOwnService(s *scope) { s.service = buildService(s.sandbox) }
