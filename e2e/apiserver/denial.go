// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Denial is a policy of the cluster's administrator that refuses to create something in a
// namespace, until it is lifted.
type Denial struct {
	policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// Deny refuses to create objects of a resource in a namespace, with the reason that such
// policies have of themselves, and returns when the apiserver does.
func Deny(ctx context.Context, c client.Client, namespace, resource string) (*Denial, error) {
	d := newDenial(namespace, resource)
	if err := errors.Join(c.Create(ctx, d.policy), c.Create(ctx, d.binding)); err != nil {
		return nil, fmt.Errorf("create policy of admission: %w", err)
	}
	return d, wait.PollUntilContextTimeout(ctx, glimpse, hang, true, func(ctx context.Context) (bool, error) {
		one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}
		err := c.Create(ctx, one, client.DryRunAll)
		if apierrors.IsInvalid(err) {
			return true, nil
		}
		return false, err
	})
}

// Lift takes the policy away.
func (d *Denial) Lift(ctx context.Context, c client.Client) error {
	if err := errors.Join(c.Delete(ctx, d.binding), c.Delete(ctx, d.policy)); err != nil {
		return fmt.Errorf("delete policy of admission: %w", err)
	}
	return nil
}

// newDenial covers ConfigMaps too, by which it is seen to be in force.
func newDenial(namespace, resource string) *Denial {
	named := metav1.ObjectMeta{Name: "deny-" + namespace}
	return &Denial{
		policy: &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: named,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
						RuleWithOperations: admissionregistrationv1.RuleWithOperations{
							Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
							Rule: admissionregistrationv1.Rule{
								APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{resource, "configmaps"},
							},
						},
					}},
				},
				Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "not today"}},
			},
		},
		binding: &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: named,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        named.Name,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
				MatchResources: &admissionregistrationv1.MatchResources{
					NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				},
			},
		},
	}
}
