// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

//go:embed kwok.yaml
var stages []byte

// unbounded lets programs of Kubernetes send as many requests as they have.
const unbounded = 100_000

// AddNodes adds so many nodes that do not exist, and all that Pods need to come and go
// on them: the scheduler, the garbage collector and the autoscaler, which looks every
// second, and kwok, which plays every kubelet. They end with the server.
func (s *Server) AddNodes(ctx context.Context, count int) error {
	if err := os.WriteFile(s.in("kwok.yaml"), stages, 0o600); err != nil {
		return fmt.Errorf("stages of kwok: %w", err)
	}
	for name, args := range map[string][]string{
		"kube-scheduler": {
			"--leader-elect=false", "--secure-port=0", fmt.Sprint("--kube-api-qps=", unbounded), fmt.Sprint("--kube-api-burst=", unbounded),
		},
		"kube-controller-manager": {
			"--controllers=garbage-collector-controller,horizontal-pod-autoscaler-controller", "--leader-elect=false", "--secure-port=0",
			"--horizontal-pod-autoscaler-sync-period=1s",
			fmt.Sprint("--kube-api-qps=", unbounded), fmt.Sprint("--kube-api-burst=", unbounded),
		},
		"kwok": {"--config=" + s.in("kwok.yaml"), "--manage-all-nodes=true", "--node-lease-duration-seconds=0"},
	} {
		if err := s.help(ctx, name, args); err != nil {
			return err
		}
	}
	return s.createNodes(ctx, count)
}

// EnsureNodes is AddNodes for tests that share a server: whoever comes later finds what
// the first one added.
func (s *Server) EnsureNodes(ctx context.Context, count int) error {
	if len(s.helpers) > 0 {
		return nil
	}
	return s.AddNodes(ctx, count)
}

// help starts a program that works for the apiserver's users.
func (s *Server) help(ctx context.Context, name string, args []string) error {
	path, err := Program(ctx, name)
	if err != nil {
		return err
	}
	kubeconfig, err := s.Kubeconfig(name, user.SystemPrivilegedGroup)
	if err != nil {
		return err
	}
	helper, err := Launch(name, path, s.in(name+".log"), append(args, "--kubeconfig="+kubeconfig)...)
	if err != nil {
		return err
	}
	s.helpers = append(s.helpers, helper)
	return nil
}

func (s *Server) createNodes(ctx context.Context, count int) error {
	c, err := NewClient(s.Config)
	if err != nil {
		return err
	}
	for i := range count {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		if err := c.Create(ctx, node); err != nil {
			return fmt.Errorf("create node: %w", err)
		}
		if err := s.awaitNode(ctx, c, node); err != nil {
			return fmt.Errorf("wait for node %s: %w", name, err)
		}
	}
	return nil
}

// awaitNode waits until kwok has made a node ready and takes away the taint that it was
// born with: the controller that would is not here.
func (s *Server) awaitNode(ctx context.Context, c client.Client, node *corev1.Node) error {
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startPatience, true, func(ctx context.Context) (bool, error) {
		if err := s.Failure(); err != nil {
			return false, err
		}
		err := c.Get(ctx, client.ObjectKeyFromObject(node), node)
		return !node.Status.Allocatable.Pods().IsZero(), err
	})
	if err != nil {
		return err
	}
	ready := node.DeepCopy()
	ready.Spec.Taints = nil
	return c.Patch(ctx, ready, client.MergeFrom(node))
}

// Failure says which of the programs has ended.
func (s *Server) Failure() error {
	errs := []error{s.etcd.Failure(), s.apiserver.Failure()}
	for _, helper := range s.helpers {
		errs = append(errs, helper.Failure())
	}
	return errors.Join(errs...)
}
