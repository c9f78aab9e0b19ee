// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhookKey names the Deployment of the webhook.
var webhookKey = client.ObjectKey{Namespace: ReleaseNamespace, Name: "agent-sandbox-webhook"}

// PatchWebhook merges a patch into the Deployment of the webhook.
func (c *Cluster) PatchWebhook(ctx context.Context, t *testing.T, format string, args ...any) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = webhookKey.Namespace, webhookKey.Name
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))
	if err := c.Patch(ctx, deployment, patch); err != nil {
		t.Fatalf("patch the webhook: %v", err)
	}
}

// ScaleWebhook sets the number of replicas and waits until there are so many.
func (c *Cluster) ScaleWebhook(ctx context.Context, t *testing.T, replicas int) {
	t.Helper()
	c.PatchWebhook(ctx, t, `{"spec": {"replicas": %d}}`, replicas)
	c.AwaitWebhook(ctx, t)
}

// AwaitWebhook waits until the webhook is as it was asked to be, and the Pods that had
// to go are gone.
func (c *Cluster) AwaitWebhook(ctx context.Context, t *testing.T) {
	t.Helper()
	Eventually(ctx, t, "the webhook is rolled out", func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := c.Get(ctx, webhookKey, &d); err != nil {
			return err
		}
		want := ptr.Deref(d.Spec.Replicas, 1)
		if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != want || s.ReadyReplicas != want || s.Replicas != want {
			return fmt.Errorf("%d replicas, %d of them updated and %d ready, want %d", s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, want)
		}
		if pods := c.WebhookPods(ctx, t); len(pods) != int(want) {
			return fmt.Errorf("%d Pods, want %d", len(pods), want)
		}
		return nil
	})
}

// WebhookPods are the Pods of the webhook.
func (c *Cluster) WebhookPods(ctx context.Context, t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(webhookKey.Namespace), client.MatchingLabels{"app": webhookKey.Name}); err != nil {
		t.Fatalf("list the Pods of the webhook: %v", err)
	}
	return pods.Items
}

// Commands of the webhook's Pods.
const (
	WebhookCommand = "/agent-sandbox-webhook"
	SocketCommand  = "/agent-sandbox-socket"
)

// Kill ends the process of a Pod that runs a command, by SIGKILL, and waits until it has let go
// of what it had. It works on a node that is this machine.
func Kill(t *testing.T, pod *corev1.Pod, command string) {
	t.Helper()
	processes, err := processesOf(pod)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(processes, func(id int) bool { return commandOf(id) == command })
	if i < 0 {
		t.Fatalf("no process of %s in Pod %s on this machine, only %v: run this story where the node is", command, pod.Name, processes)
	}
	handle, err := unix.PidfdOpen(processes[i], 0)
	if err != nil {
		t.Fatalf("get hold of process %d of Pod %s: %v", processes[i], pod.Name, err)
	}
	defer func() { _ = unix.Close(handle) }() // the process is gone
	if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil {
		t.Fatalf("kill process %d of Pod %s: %v", processes[i], pod.Name, err)
	}
	ended := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}} //nolint:gosec // Descriptors are small.
	if n, err := unix.Poll(ended, int(patience.Milliseconds())); n != 1 {
		t.Fatalf("process %d of Pod %s does not end: %v", processes[i], pod.Name, err)
	}
}

// commandOf is the program that a process runs.
func commandOf(id int) string {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(id), "cmdline"))
	if err != nil {
		return ""
	}
	command, _, _ := strings.Cut(string(line), "\x00")
	return command
}

// Gone says which processes a Pod's containers still have, or nil.
func Gone(pod *corev1.Pod) error {
	processes, err := processesOf(pod)
	if err == nil && len(processes) > 0 {
		return fmt.Errorf("processes %v run", processes)
	}
	return err
}

// processesOf are the processes on this machine in the cgroups of a Pod, but for the
// one that holds its namespaces.
func processesOf(pod *corev1.Pod) ([]int, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, folder := range folders {
		groups, err := os.ReadFile(filepath.Join(folder, "cgroup"))
		name, nameErr := os.ReadFile(filepath.Join(folder, "comm"))
		if err != nil || nameErr != nil {
			continue // it ended meanwhile
		}
		if !strings.Contains(string(groups), "pod"+string(pod.UID)) || strings.TrimSpace(string(name)) == "pause" {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			return nil, err
		}
		found = append(found, id)
	}
	return found, nil
}

// Served is the certificate that a server shows to whoever connects.
func Served(ctx context.Context, address string) (*x509.Certificate, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // Nothing is sent; who is trusted is the story's question.
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }() // only the greeting was wanted
	secure, _ := conn.(*tls.Conn)
	return secure.ConnectionState().PeerCertificates[0], nil
}
