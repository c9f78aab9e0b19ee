// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patch writes what a pass found out to the object that it looked at, and to no
// other: whoever deletes an object may give its name to the next at once.
package patch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrReplaced says that a write meant an object whose name has another one by now.
var ErrReplaced = errors.New("another object has the name by now")

// IgnoreGone is nil when an object could not be written because it is gone, replaced or
// not.
func IgnoreGone(err error) error {
	if errors.Is(err, ErrReplaced) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// DoubtFor is how long a write whose answer was lost may still be carried out: longer than an
// apiserver works on one.
const DoubtFor = 90 * time.Second

// Settled says whether an error tells for certain that a write was not carried out: the
// apiserver refused it. Of any other, a timeout among them, nobody knows.
func Settled(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout
}

// Passing says whether an error is one of the moment: somebody else wrote first, or the
// apiserver did not answer.
func Passing(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || !Settled(err)
	}
	if failure := (net.Error)(nil); errors.As(err, &failure) {
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Denied says whether a webhook or a policy of admission refused a write. It may admit the
// same one as soon as it is another itself, of which no controller hears.
func Denied(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	message := status.Status().Message
	return strings.Contains(message, " denied the request") || strings.Contains(message, " denied request: ")
}

// Invalid says whether the apiserver refuses an object until somebody changes that. A
// policy of admission says of what it denies that it is invalid, too.
func Invalid(err error) bool {
	return apierrors.IsInvalid(err) && !Denied(err)
}

// Same sends what changed of an object. It fails with ErrReplaced when that was replaced.
func Same(ctx context.Context, writer client.Writer, now, before client.Object, owner client.FieldOwner) error {
	base, isObject := before.DeepCopyObject().(client.Object)
	if !isObject {
		return fmt.Errorf("patch %q: %T is no object of the API", before.GetName(), before)
	}
	base.SetUID("") // so that the patch has it
	err := writer.Patch(ctx, now, client.MergeFrom(base), owner)
	if Invalid(err) && slices.ContainsFunc(causesOf(err), func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" }) {
		return ErrReplaced
	}
	return err
}

// Status replaces the whole status of an object, which now has it. It fails with
// ErrReplaced when the object was replaced. A merge patch cannot say so: in a patch of a
// status the apiserver ignores all metadata but the version.
func Status(ctx context.Context, writer client.StatusClient, now client.Object, status any, owner client.FieldOwner) error {
	operations, err := json.Marshal([]operation{{"test", "/metadata/uid", now.GetUID()}, {"add", "/status", status}})
	if err != nil {
		return fmt.Errorf("encode status: %w", err)
	}
	err = writer.Status().Patch(ctx, now, client.RawPatch(types.JSONPatchType, operations), owner)
	if Invalid(err) && len(causesOf(err)) == 0 { // a status that is invalid has causes, a test that failed has none
		return ErrReplaced
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
