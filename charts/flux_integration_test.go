// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package charts_test

import (
	"testing"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// flux applies manifests with the library of Flux, as its kustomize-controller does, and
// creates them as Helm does, where the drift detection of its helm-controller looks for
// differences. There are none, with nothing to configure.
func (s served) flux(t *testing.T) {
	const kustomize, helm = "kustomize-controller", "helm-controller"
	manager := ssa.NewResourceManager(s, nil, ssa.Owner{Field: kustomize, Group: "kustomize.toolkit.fluxcd.io"})
	for name, object := range s.applicable(t) {
		for i, want := range []ssa.Action{ssa.CreatedAction, ssa.UnchangedAction, ssa.UnchangedAction} {
			applied, err := manager.Apply(t.Context(), object.DeepCopy(), ssa.DefaultApplyOptions())
			if err != nil {
				t.Fatalf("%s: Flux applies: %v", name, err)
			}
			if applied.Action != want {
				t.Errorf("%s: apply %d of Flux is %s, want %s", name, i+1, applied.Action, want)
			}
		}
		if err := s.Delete(t.Context(), object.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if err := s.Create(t.Context(), object.DeepCopy(), client.FieldOwner(helm)); err != nil {
			t.Fatal(err)
		}
		drift, err := jsondiff.Unstructured(t.Context(), s, object.DeepCopy(), jsondiff.FieldOwner(helm))
		if err != nil {
			t.Fatal(err)
		}
		if drift.Type != jsondiff.DiffTypeNone {
			t.Errorf("%s: Flux finds a drift: %s %v", name, drift.Type, drift.Patch)
		}
		if err := s.Delete(t.Context(), object.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
}
