// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Commands of the image.
const (
	// CommandRun is the whole preflight.
	CommandRun = "preflight"
	// CommandProbe runs Probe on the arguments that follow.
	CommandProbe = "preflight-probe"
	// CommandServe runs Serve.
	CommandServe = "preflight-serve"
)

// roleLabel tells the Pods of a preflight apart.
const roleLabel = "preflight.agent-sandbox/role"

const (
	roleServer = "server"
	roleOpen   = "open"
	roleAgain  = "again"
	roleDenied = "denied"
	roleClass  = "runtime-class"
)

// pod is a Pod of the image under the restricted Pod Security level.
func (o Options) pod(role, runtimeClass string, args ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, GenerateName: "preflight-" + role + "-", Labels: map[string]string{roleLabel: role}},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(int64(0)),
			ActiveDeadlineSeconds:         new(int64(lifeOf(role).Seconds())),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "preflight", Image: o.Image, ImagePullPolicy: corev1.PullIfNotPresent, Args: args,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	if runtimeClass != "" {
		pod.Spec.RuntimeClassName = &runtimeClass
	}
	for _, name := range o.PullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return pod
}

// lifeOf is how long a Pod may take. The server outlives all that ask it.
func lifeOf(role string) time.Duration {
	if role == roleServer {
		return serverLife
	}
	return patience
}

// denyAll denies everything to the Pod of that role.
func (o Options) denyAll() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, GenerateName: "preflight-"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{roleLabel: roleDenied}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
}

// why says what keeps a Pod from running, as far as its status tells.
func why(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		if w := pod.Status.ContainerStatuses[i].State.Waiting; w != nil && w.Message != "" {
			return w.Reason + ": " + w.Message
		}
		if e := pod.Status.ContainerStatuses[i].State.Terminated; e != nil && e.ExitCode != 0 {
			return fmt.Sprintf("%s: exit code %d %s", e.Reason, e.ExitCode, e.Message)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Message != "" && c.Type == corev1.PodScheduled {
			return c.Message
		}
	}
	if pod.Status.Message != "" {
		return pod.Status.Message
	}
	return fmt.Sprintf("its Pod is still %s after %s; see the events of the namespace", pod.Status.Phase, patience)
}
