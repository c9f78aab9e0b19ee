// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// The addresses that the test cluster serves outside of itself.
const (
	publicAddress   = "203.0.113.10:80"
	metadataAddress = "169.254.169.254:80"

	publicAddress6   = "[2001:db8:113::10]:80"
	metadataAddress6 = "[fd00:ec2::254]:80"
	// apiserverService is where Pods find the apiserver.
	apiserverService = "10.96.0.1:443"
	// gateway6 is an address of the node itself, that of the bridge of its Pods.
	gateway6 = "[fd00:10:244::1]"
)

// probeImage has a tool that tells a blocked connection from a failing tool.
const probeImage = "agent-sandbox-platform/probe:test"

// Exit codes of the probe.
const (
	connected = 0
	refused   = 10
	timedOut  = 11
)

// Code in a Sandbox reaches the internet and the cluster's DNS, and neither another
// Pod nor the cloud's metadata. An ordinary Pod beside it reaches them all: what is
// blocked is blocked by enforcement.
func TestSandboxReachesWhatItMayAndNothingElse(t *testing.T) { //nolint:tparallel // One Pod asks them all.
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	neighbour := startPod(ctx, t, ns, "neighbour", "serve", ":8080")
	startPod(ctx, t, ns, "control", "sleep")
	cluster.MustApply(ctx, t, ns, strings.NewReplacer("python:3.12-slim", probeImage, `["sh", "-c", "sleep infinity"]`, `["/bin/probe", "sleep"]`).
		Replace(sandboxWith("workspace", "", "")))
	cluster.WaitReady(ctx, t, ns, "workspace")

	cases := map[string]struct {
		target  string
		allowed bool
	}{
		"another Pod":          {neighbour.Status.PodIP + ":8080", false},
		"the metadata service": {metadataAddress, false},
		"the apiserver":        {apiserverService, false},
		"a public address":     {publicAddress, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			waitAnswer(ctx, t, client.ObjectKey{Namespace: ns, Name: "control"}, questionOf(tc.target), true) // or the case proves nothing
			if tc.allowed {
				waitAnswer(ctx, t, client.ObjectKey{Namespace: ns, Name: "workspace"}, questionOf(tc.target), true)
				return
			}
			mustBe(t, probe(ctx, t, ns, "workspace", tc.target), false)
		})
	}
	t.Run("the cluster's DNS", func(t *testing.T) {
		waitAnswer(ctx, t, client.ObjectKey{Namespace: ns, Name: "workspace"}, question{command: "dns", target: "kubernetes.default.svc.cluster.local"}, true)
	})
}

// Nothing but the router reaches a Sandbox that offers no Service.
func TestNeighbourCannotReachASandbox(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	startPod(ctx, t, ns, "control", "sleep")
	plain := startPod(ctx, t, ns, "plain", "serve", ":8080")
	cluster.MustApply(ctx, t, ns, strings.NewReplacer("python:3.12-slim", probeImage, `["sh", "-c", "sleep infinity"]`, `["/bin/probe", "serve", ":8080"]`).
		Replace(sandboxWith("workspace", "", "")))
	sandbox := cluster.WaitReady(ctx, t, ns, "workspace")
	// Otherwise Pods cannot reach one another at all.
	waitAnswer(ctx, t, client.ObjectKey{Namespace: ns, Name: "control"}, questionOf(plain.Status.PodIP+":8080"), true)
	if code := probe(ctx, t, ns, "control", sandbox.Status.PodIPs[0]+":8080"); code != refused && code != timedOut {
		t.Errorf("a neighbour's connection to the Sandbox ended with %d, want it blocked", code)
	}
}

func probe(ctx context.Context, t *testing.T, namespace, pod, target string) int {
	t.Helper()
	_, code := cluster.Ask(ctx, t, client.ObjectKey{Namespace: namespace, Name: pod}, "/bin/probe", "tcp", target, "-timeout", "5s")
	return code
}

// startPod runs an ordinary Pod with the probe and waits until it is Ready.
func startPod(ctx context.Context, t *testing.T, namespace, name string, args ...string) *corev1.Pod {
	t.Helper()
	pod := ordinaryPod(namespace, name, args...)
	if err := cluster.Create(ctx, pod); err != nil {
		t.Fatalf("create Pod %s: %v", name, err)
	}
	waitPod(ctx, t, pod)
	return pod
}

func ordinaryPod(namespace, name string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{
				Name: "probe", Image: probeImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: append([]string{"/bin/probe"}, args...),
			}},
		},
	}
}

func waitPod(ctx context.Context, t *testing.T, pod *corev1.Pod) {
	t.Helper()
	kit.Eventually(ctx, t, "Pod "+pod.Name+" has an address", func(ctx context.Context) error {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		return kit.PodReady(pod)
	})
}
