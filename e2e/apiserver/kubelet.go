// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubeletWorkers are how many Pods a Kubelet attends to at once.
const kubeletWorkers = 8

// Kubelet plays scheduler and kubelet for the Pods of one namespace: it binds them to
// a node that does not exist, and writes their status.
type Kubelet struct {
	// Client is how it writes.
	Client client.WithWatch
	// Node is the name of its node.
	Node string
}

// Bind puts a Pod on the node, unless it is there.
func (k Kubelet) Bind(ctx context.Context, pod *corev1.Pod) error {
	if pod.Spec.NodeName != "" {
		return nil
	}
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: k.Node}}
	if err := k.Client.SubResource("binding").Create(ctx, pod, binding); err != nil {
		return fmt.Errorf("bind pod %s: %w", pod.Name, err)
	}
	pod.Spec.NodeName = k.Node
	return nil
}

// Report changes the status of a Pod.
func (k Kubelet) Report(ctx context.Context, pod *corev1.Pod, change func(*corev1.PodStatus)) error {
	before := pod.DeepCopy()
	change(&pod.Status)
	if err := k.Client.Status().Patch(ctx, pod, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("report on pod %s: %w", pod.Name, err)
	}
	return nil
}

// Run starts a Pod: bound, running and ready, with an address.
func (k Kubelet) Run(ctx context.Context, pod *corev1.Pod) error {
	if err := k.Bind(ctx, pod); err != nil {
		return err
	}
	return k.Report(ctx, pod, Running)
}

// Remove lets a Pod go that is being deleted.
func (k Kubelet) Remove(ctx context.Context, pod *corev1.Pod) error {
	uid := pod.UID
	err := k.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it went, and another one may have come
		return nil
	}
	return err
}

// Running is the status of a Pod that works.
func Running(status *corev1.PodStatus) {
	status.Phase = corev1.PodRunning
	SetCondition(status, corev1.PodScheduled, corev1.ConditionTrue)
	SetCondition(status, corev1.PodReady, corev1.ConditionTrue)
	status.PodIP, status.PodIPs = "10.1.2.3", []corev1.PodIP{{IP: "10.1.2.3"}}
}

// Ended is the status of a Pod whose containers ended with an exit code: 0 for
// success.
func Ended(exitCode int32, reason string) func(*corev1.PodStatus) {
	return func(status *corev1.PodStatus) {
		status.Phase = corev1.PodSucceeded
		if exitCode != 0 {
			status.Phase = corev1.PodFailed
		}
		SetCondition(status, corev1.PodReady, corev1.ConditionFalse)
		status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "workspace", Image: "python:3.12-slim", ImageID: "none",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: reason}},
		}}
	}
}

// SetCondition sets a condition of a Pod.
func SetCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus) {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			status.Conditions[i].Status = value
			return
		}
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: value})
}

// Serve runs every Pod of the namespace as soon as it is there, and lets those go
// that are being deleted, until the context ends.
func (k Kubelet) Serve(ctx context.Context, namespace string) error {
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(kubeletWorkers)
	for ctx.Err() == nil { // the apiserver ends the watch of somebody who is slow
		if err := k.watch(ctx, namespace, workers); err != nil {
			return errors.Join(err, workers.Wait())
		}
	}
	return workers.Wait()
}

// watch attends to all Pods that there are and that come, until the watch ends.
func (k Kubelet) watch(ctx context.Context, namespace string, workers *errgroup.Group) error {
	watcher, err := k.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		workers.Go(func() error {
			if err := k.attend(ctx, event); err != nil && ctx.Err() == nil {
				return err
			}
			return nil
		})
	}
	return nil
}

func (k Kubelet) attend(ctx context.Context, event watch.Event) error {
	pod, isPod := event.Object.(*corev1.Pod)
	if !isPod || event.Type == watch.Deleted {
		return nil
	}
	if pod.DeletionTimestamp != nil {
		return k.Remove(ctx, pod)
	}
	if pod.Status.Phase != corev1.PodPending {
		return nil
	}
	err := k.Run(ctx, pod)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it went, or is bound already
		return nil
	}
	return err
}
