// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noConfigMaps is in every quota, to see when the apiserver holds to it.
const noConfigMaps corev1.ResourceName = "count/configmaps"

// Quota makes a quota without the controller that counts, and returns when the apiserver
// holds to it: it reads quotas from a cache.
func Quota(ctx context.Context, c client.Client, namespace string, hard corev1.ResourceList) error {
	hard = maps.Clone(hard)
	hard[noConfigMaps] = resource.MustParse("0")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
	}
	if err := c.Create(ctx, quota); err != nil {
		return fmt.Errorf("create quota: %w", err)
	}
	quota.Status.Hard, quota.Status.Used = hard, corev1.ResourceList{}
	for name, amount := range hard {
		amount.Set(0)
		quota.Status.Used[name] = amount
	}
	if err := c.Status().Update(ctx, quota); err != nil {
		return fmt.Errorf("put quota in force: %w", err)
	}
	return wait.PollUntilContextTimeout(ctx, glimpse, hang, true, func(ctx context.Context) (bool, error) {
		one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}
		err := c.Create(ctx, one, client.DryRunAll)
		if apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	})
}
