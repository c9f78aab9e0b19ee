// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package surroundings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/template"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// The policy that a template left for its Sandboxes closes the address of a node that
// joins later, as that of a template that is there does, and that of one which asks for a
// profile that it may not have.
func TestPolicyOfADeletedTemplateFollowsTheNodes(t *testing.T) {
	e := server.NewEnvironment(t)
	e.Run(apiserver.Setup{Add: func(ctx context.Context, mgr ctrl.Manager) error {
		watcher, err := New(ctx, apiserver.Platform(), mgr.GetAPIReader(), prometheus.NewPedanticRegistry())
		if err != nil {
			return err
		}
		templates := template.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("test"), e.Clock,
			template.Settings{Current: watcher.Platform, Changed: watcher.Follow(), ConcurrentWorkers: 1})
		return errors.Join(templates.SetupWithManager(ctx, mgr), watcher.SetUp(mgr))
	}})
	for _, name := range []string{"gone", "stays", "asks"} {
		made := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
		made.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
		e.Create(made)
	}
	e.Create(sandboxOf("gone"))
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: isolation.TemplateName("gone")}}
	e.Eventually("the template has its policy", func() error {
		return e.Client.Get(t.Context(), e.Key(policy.Name), policy)
	})
	e.Eventually("the other one has its policy", func() error {
		return e.Client.Get(t.Context(), e.Key(isolation.TemplateName("asks")), &networkingv1.NetworkPolicy{})
	})
	asking := apiserver.Change(e, "asks", &extensionsv1beta1.SandboxTemplate{}, func(asks *extensionsv1beta1.SandboxTemplate) {
		asks.Annotations = map[string]string{keys.EgressProfile: "unheard-of"}
	})
	e.Eventually("it is told that it may not", func() error {
		e.Get(asking.Name, asking)
		if !meta.IsStatusConditionFalse(asking.Status.Conditions, extensionsv1beta1.TemplateConditionReady) {
			return fmt.Errorf("it is told %v", asking.Status.Conditions)
		}
		return nil
	})
	e.Delete(&extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "gone"}})
	e.Eventually("the policy has no owner to go with", func() error {
		if e.Get(policy.Name, policy); len(policy.OwnerReferences) > 0 {
			return fmt.Errorf("owners: %v", policy.OwnerReferences)
		}
		return nil
	})

	const address = "198.51.100.19"
	joins(e, node("node-of-"+e.Namespace, address))
	for _, name := range []string{"stays", "gone", "asks"} {
		e.Eventually("the policy of the template "+name+" closes the node", func() error {
			e.Get(isolation.TemplateName(name), policy)
			if !slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool { return leavesOut(rule, address+"/32") }) {
				return fmt.Errorf("its egress is %v", policy.Spec.Egress)
			}
			return nil
		})
	}
}

// sandboxOf is a suspended Sandbox that was made from a template.
func sandboxOf(name string) *agentsv1beta1.Sandbox {
	sandbox := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{
		Name:        "of-" + name,
		Labels:      map[string]string{keys.SandboxTemplateRefHash: keys.NameHash(name)},
		Annotations: map[string]string{keys.SandboxTemplateRef: name},
	}}
	sandbox.Spec.OperatingMode = agentsv1beta1.OperatingModeSuspended
	sandbox.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
	return sandbox
}

func leavesOut(rule networkingv1.NetworkPolicyEgressRule, cidr string) bool {
	return slices.ContainsFunc(rule.To, func(peer networkingv1.NetworkPolicyPeer) bool {
		return peer.IPBlock != nil && slices.Contains(peer.IPBlock.Except, cidr)
	})
}

// joins stores a node with its addresses until the test ends.
func joins(e *apiserver.Environment, joining *corev1.Node) {
	e.Helper()
	status := joining.Status
	if err := e.Client.Create(e.Context(), joining); err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() {
		if err := e.Client.Delete(context.WithoutCancel(e.Context()), joining); client.IgnoreNotFound(err) != nil {
			e.Errorf("remove node %s: %v", joining.Name, err)
		}
	})
	joining.Status = status
	if err := e.Client.Status().Update(e.Context(), joining); err != nil {
		e.Fatal(err)
	}
}
