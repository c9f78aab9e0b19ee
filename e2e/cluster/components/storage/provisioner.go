// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// anyUser lets a container of any uid write, as a freshly formatted volume with
// an fsGroup would: hostPath volumes never get an fsGroup.
const anyUser = 0o777

// provisioner makes one folder a volume under root.
type provisioner struct {
	root string
}

var _ controller.Provisioner = provisioner{}

// Provision makes the folder of a claim and describes it as a hostPath volume.
// The requested capacity is reported but not enforced.
func (p provisioner) Provision(
	_ context.Context, options controller.ProvisionOptions,
) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	dir, err := p.dir(options.PVName)
	if err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	if err := os.MkdirAll(dir, anyUser); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("folder of volume %s: %w", options.PVName, err)
	}
	// MkdirAll is subject to the umask.
	if err := os.Chmod(dir, anyUser); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("folder of volume %s: %w", options.PVName, err)
	}
	return volume(dir, options), controller.ProvisioningFinished, nil
}

// Delete removes the folder of a released volume; a folder that is already gone
// is no error.
func (p provisioner) Delete(_ context.Context, pv *corev1.PersistentVolume) error {
	dir, err := p.dir(pv.Name)
	if err != nil {
		return err
	}
	if pv.Spec.HostPath == nil || pv.Spec.HostPath.Path != dir {
		return &controller.IgnoredError{Reason: fmt.Sprintf("volume %s is not a folder of %s", pv.Name, p.root)}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("folder of volume %s: %w", pv.Name, err)
	}
	return nil
}

// dir is the folder of the named volume. A name that is not one plain path
// element is refused: it would lead out of root.
func (p provisioner) dir(name string) (string, error) {
	if name == "" || name == "." || name == ".." || name != filepath.Base(name) {
		return "", fmt.Errorf("volume name %q is not a plain folder name", name)
	}
	return filepath.Join(p.root, name), nil
}

func volume(dir string, options controller.ProvisionOptions) *corev1.PersistentVolume {
	claim := options.PVC.Spec
	reclaim := corev1.PersistentVolumeReclaimDelete
	if options.StorageClass.ReclaimPolicy != nil {
		reclaim = *options.StorageClass.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: reclaim,
			AccessModes:                   claim.AccessModes,
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Resources.Requests[corev1.ResourceStorage],
			},
			VolumeMode: claim.VolumeMode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: dir},
			},
		},
	}
}
