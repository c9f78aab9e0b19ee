// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

// patience is how long a story waits before it fails. It bounds a hang; no verdict
// depends on it.
const patience = 3 * time.Minute

// Eventually waits until the check returns nil and fails the story with the check's
// last error if it never does.
func Eventually(ctx context.Context, t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	EventuallyWithin(ctx, t, patience, what, check)
}

// EventuallyWithin is Eventually for what takes long by itself.
func EventuallyWithin(ctx context.Context, t *testing.T, limit time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("gave up waiting until %s: %v", what, last)
	}
}

// WaitReady waits until a Sandbox is Ready and returns it. It shows the Sandbox and
// the events of its namespace if it never is.
func (c *Cluster) WaitReady(ctx context.Context, t *testing.T, namespace, name string) *agentsv1beta1.Sandbox {
	t.Helper()
	sandbox := &agentsv1beta1.Sandbox{}
	Eventually(ctx, t, "Sandbox "+name+" is Ready", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, sandbox); err != nil {
			return err
		}
		if meta.IsStatusConditionTrue(sandbox.Status.Conditions, agentsv1beta1.ConditionReady) {
			return nil
		}
		return fmt.Errorf("status:\n%s\nevents:\n%s", toYAML(sandbox.Status), c.events(ctx, namespace))
	})
	return sandbox
}

// WaitReadyMessage waits until the Ready condition of a Sandbox is False with every
// part in its message, and returns the message.
func (c *Cluster) WaitReadyMessage(ctx context.Context, t *testing.T, namespace, name string, parts ...string) string {
	t.Helper()
	message := ""
	Eventually(ctx, t, fmt.Sprintf("the Ready message of Sandbox %s has %q", name, parts), func(ctx context.Context) error {
		sandbox := &agentsv1beta1.Sandbox{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, sandbox); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(sandbox.Status.Conditions, agentsv1beta1.ConditionReady)
		if ready == nil {
			return errors.New("there is no Ready condition yet")
		}
		message = ready.Message
		for _, part := range parts {
			if !strings.Contains(message, part) {
				return fmt.Errorf("the message is %q", message)
			}
		}
		return nil
	})
	return message
}

// PodOf returns the Pod of a Sandbox.
func (c *Cluster) PodOf(ctx context.Context, t *testing.T, namespace, sandbox string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: sandbox}, pod); err != nil {
		t.Fatalf("get the Pod of Sandbox %s: %v", sandbox, err)
	}
	return pod
}

func (c *Cluster) events(ctx context.Context, namespace string) string {
	var list corev1.EventList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err.Error()
	}
	var out strings.Builder
	for i := range list.Items {
		e := &list.Items[i]
		fmt.Fprintf(&out, "%s %s/%s: %s\n", e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
	}
	return out.String()
}

func toYAML(v any) string {
	out, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// PodReady says why a Pod is not Ready, or nil when it is.
func PodReady(pod *corev1.Pod) error {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.Status.PodIP != "" {
			return nil
		}
	}
	return fmt.Errorf("phase of Pod %s is %s: %+v", pod.Name, pod.Status.Phase, pod.Status.ContainerStatuses)
}
