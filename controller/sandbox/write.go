// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

// errReplaced says that a write meant an object whose name has another one by now:
// whoever deletes one may give its name to the next at once.
var errReplaced = errors.New("another object has the name by now")

// patchSame sends what changed of an object, unless that was replaced.
func (r *Reconciler) patchSame(ctx context.Context, now, before client.Object) error {
	base, isObject := before.DeepCopyObject().(client.Object)
	if !isObject {
		return fmt.Errorf("patch %q: %T is no object of the API", before.GetName(), before)
	}
	base.SetUID("") // so that the patch has it
	err := r.client.Patch(ctx, now, client.MergeFrom(base), fieldOwner)
	if apierrors.IsInvalid(err) && slices.ContainsFunc(causesOf(err), func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" }) {
		return errReplaced
	}
	return err
}

// patchStatus replaces the status of a Sandbox, unless that was replaced itself. A merge
// patch cannot say so: in a patch of a status the apiserver ignores all metadata.
func (r *Reconciler) patchStatus(ctx context.Context, sandbox *agentsv1beta1.Sandbox) error {
	patch, err := json.Marshal([]operation{
		{"test", "/metadata/uid", sandbox.UID}, {"add", "/status", sandbox.Status},
	})
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	err = r.client.Status().Patch(ctx, sandbox, client.RawPatch(types.JSONPatchType, patch), fieldOwner)
	if apierrors.IsInvalid(err) && len(causesOf(err)) == 0 { // a status that is invalid has causes, a test that failed has none
		return errReplaced
	}
	return err
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func causesOf(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}
