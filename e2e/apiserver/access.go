// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AwaitAccess waits until the apiserver lets somebody do what a role that was just
// bound to him allows: it hears of roles and bindings by a watch, so that whoever acts
// at once may be refused.
func AwaitAccess(ctx context.Context, c client.Client, spec authorizationv1.SubjectAccessReviewSpec) error {
	var said string
	err := wait.PollUntilContextTimeout(ctx, pollInterval, startPatience, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: spec}
		if err := c.Create(ctx, review); err != nil {
			return false, err
		}
		said = review.Status.Reason
		return review.Status.Allowed, nil
	})
	if err != nil {
		return fmt.Errorf("wait until %s%s may %s %s: %w: %s", spec.User, spec.Groups, spec.ResourceAttributes.Verb, spec.ResourceAttributes.Resource, err, said)
	}
	return nil
}
