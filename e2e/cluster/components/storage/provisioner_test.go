// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func options(name string) controller.ProvisionOptions {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return controller.ProvisionOptions{PVName: name, PVC: claim, StorageClass: &storagev1.StorageClass{}}
}

func TestAVolumeIsAFolderThatAnyUserMayWriteAndIsGoneAfterRelease(t *testing.T) {
	root := t.TempDir()
	p := provisioner{root: root}
	pv, _, err := p.Provision(t.Context(), options("pvc-1"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "pvc-1")
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != anyUser {
		t.Errorf("folder mode: got %o, want %o", got, anyUser)
	}
	if pv.Spec.HostPath == nil || pv.Spec.HostPath.Path != dir {
		t.Fatalf("volume source: got %+v, want host path %s", pv.Spec.PersistentVolumeSource, dir)
	}
	if err := p.Delete(t.Context(), pv); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder after release: got %v, want it gone", err)
	}
}

func TestAVolumeOutsideTheRootIsNeverTouched(t *testing.T) {
	outside := t.TempDir()
	p := provisioner{root: t.TempDir()}
	pv := &corev1.PersistentVolume{}
	pv.Name = "pvc-1"
	pv.Spec.HostPath = &corev1.HostPathVolumeSource{Path: outside}
	var ignored *controller.IgnoredError
	if err := p.Delete(t.Context(), pv); !errors.As(err, &ignored) {
		t.Errorf("delete of a foreign folder: got %v, want it ignored", err)
	}
	if _, _, err := p.Provision(t.Context(), options("../escape")); err == nil {
		t.Error("a volume name that leads out of the root was accepted")
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("foreign folder: %v", err)
	}
}
