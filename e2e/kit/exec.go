// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// notBegun is what the runtime says when a busy machine left it no time to begin. Nothing
	// ran, so that it may be asked again.
	notBegun = "failed to load task: context deadline exceeded"
	// execTries is how often it is asked at most.
	execTries = 10
)

// Exec runs a command in the first container of a Pod, as kubectl exec does, and
// returns what it printed and its exit code.
func (c *Cluster) Exec(ctx context.Context, namespace, pod string, command ...string) (output string, exitCode int, err error) {
	for range execTries {
		output, exitCode, err = c.execOnce(ctx, namespace, pod, command)
		if err == nil || !strings.Contains(err.Error(), notBegun) {
			break
		}
	}
	return output, exitCode, err
}

func (c *Cluster) execOnce(ctx context.Context, namespace, pod string, command []string) (output string, exitCode int, err error) {
	request := c.Clientset.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(c.Config, "GET", request.URL().String())
	if err != nil {
		return "", 0, fmt.Errorf("exec %q in Pod %s: %w", command, pod, err)
	}
	var out lockedBuffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &out})
	if exit, ok := errors.AsType[utilexec.CodeExitError](err); ok {
		return out.String(), exit.Code, nil
	}
	if err != nil {
		return out.String(), 0, fmt.Errorf("exec %q in Pod %s: %w", command, pod, err)
	}
	return out.String(), 0, nil
}

// lockedBuffer takes what two streams write at once.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

// String returns what was written.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// Ask runs a command that always prints something, and returns what it printed and its
// exit code. An answer that got lost on its way, as a container's first moments may lose
// one, is no answer: the command is asked again.
func (c *Cluster) Ask(ctx context.Context, t *testing.T, key client.ObjectKey, command ...string) (output string, exitCode int) {
	t.Helper()
	Eventually(ctx, t, fmt.Sprintf("%q answers", command), func(ctx context.Context) error {
		var err error
		output, exitCode, err = c.Exec(ctx, key.Namespace, key.Name, command...)
		if err == nil && output == "" {
			return errors.New("it printed nothing")
		}
		return err
	})
	return output, exitCode
}

// EventuallyPrints waits until a command in a Pod prints something that has a text in
// it. A container's first moments may lose what a command prints, so it is asked again;
// an answer that stays wrong fails the story.
func (c *Cluster) EventuallyPrints(ctx context.Context, t *testing.T, key client.ObjectKey, want string, command ...string) {
	t.Helper()
	Eventually(ctx, t, fmt.Sprintf("%q prints %q", command, want), func(ctx context.Context) error {
		out, code, err := c.Exec(ctx, key.Namespace, key.Name, command...)
		if err != nil {
			return err
		}
		if code == 0 && strings.Contains(strings.ToLower(out), strings.ToLower(want)) {
			return nil
		}
		return fmt.Errorf("it ended with %d and printed %q", code, out)
	})
}

// Logs returns what the first container of a Pod printed.
func (c *Cluster) Logs(ctx context.Context, namespace, pod string) (string, error) {
	stream, err := c.Clientset.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("logs of Pod %s: %w", pod, err)
	}
	defer func() { _ = stream.Close() }() // what was read is what counts
	out, err := io.ReadAll(stream)
	return string(out), err
}
