// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package warmpool

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

const policyName = "python-network-policy"

func (e *environment) policy() *networkingv1.NetworkPolicy {
	e.Helper()
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName}}
	e.Get(policy.GetName(), policy)
	return policy
}

// policyIs waits until the policy is, or is not, there.
func (e *environment) policyIs(there bool) {
	e.Helper()
	e.Eventually(fmt.Sprintf("the policy is there: %t", there), func() error {
		err := e.Client.Get(e.Context(), client.ObjectKey{Namespace: e.Namespace, Name: policyName}, &networkingv1.NetworkPolicy{})
		if (err == nil) != there || (err != nil && !apierrors.IsNotFound(err)) {
			return fmt.Errorf("read it: %w", err)
		}
		return nil
	})
}

// says waits until a condition of the template has a reason.
func (e *environment) says(kind, reason string) *metav1.Condition {
	e.Helper()
	var found *metav1.Condition
	e.Eventually(kind+" of the template is "+reason, func() error {
		template := makeTemplate()
		e.Get(template.GetName(), template)
		found = meta.FindStatusCondition(template.Status.Conditions, kind)
		if found == nil || found.Reason != reason || found.ObservedGeneration != template.Generation {
			return fmt.Errorf("it is %+v", found)
		}
		return nil
	})
	return found
}

func TestPodsOfATemplateAreSelectedByItsPolicyAndByNoProfile(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makeTemplate(), makePool(1))
	e.settled(1)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: e.members()[0].Name}}
	e.Get(pod.GetName(), pod)
	var policies networkingv1.NetworkPolicyList
	if err := e.Client.List(t.Context(), &policies, client.InNamespace(e.Namespace)); err != nil {
		t.Fatal(err)
	}
	var selecting []string
	for i := range policies.Items {
		selector, err := metav1.LabelSelectorAsSelector(&policies.Items[i].Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		if selector.Matches(labels.Set(pod.Labels)) {
			selecting = append(selecting, policies.Items[i].Name)
		}
	}
	if got := strings.Join(selecting, ","); got != "agent-sandbox-deny-all,"+policyName {
		t.Errorf("the Pod is selected by %s", got)
	}
	template := makeTemplate()
	e.Eventually("the status counts the users of the template", func() error {
		e.Get(template.GetName(), template)
		if template.Status.Sandboxes != 1 || template.Status.WarmPools != 1 {
			return fmt.Errorf("status: %+v", template.Status)
		}
		return nil
	})
	if template.Labels[keys.SandboxTemplateRefHash] != keys.NameHash("python") {
		t.Errorf("labels of the template: %v", template.Labels)
	}
	if owner := metav1.GetControllerOf(e.policy()); owner == nil || owner.UID != template.UID {
		t.Errorf("the policy is controlled by %v", owner)
	}
}

func TestPolicyIsMendedAndOutlivesItsTemplate(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makeTemplate(), makePool(1))
	e.settled(1)
	change(e, e.policy(), func(p *networkingv1.NetworkPolicy) {
		p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{})
	})
	e.Eventually("the rule that somebody added is gone", func() error {
		for _, rule := range e.policy().Spec.Egress {
			if len(rule.To) == 0 {
				return errors.New("it is there")
			}
		}
		return nil
	})
	if err := e.Client.Delete(t.Context(), e.policy()); err != nil {
		t.Fatal(err)
	}
	e.policyIs(true)

	e.stop() // or the pool fills the gap at any moment, and what it makes needs the policy too
	member := e.members()[0]
	if err := e.give(&member, "claim"); err != nil {
		t.Fatal(err)
	}
	for _, left := range e.members() {
		if err := e.Client.Delete(t.Context(), &left); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	before := e.policy()
	if err := e.Client.Delete(t.Context(), makeHere(e, makeTemplate())); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the policy has no owner to go with", func() error {
		policy := e.policy()
		if policy.UID != before.UID {
			t.Fatal("the policy was away for a moment")
		}
		if len(policy.OwnerReferences) > 0 {
			return fmt.Errorf("owners: %v", policy.OwnerReferences)
		}
		return nil
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: member.Name}}
	e.Get(pod.GetName(), pod)
	if err := e.Client.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the Sandbox has a new Pod without its template", func() error {
		again := &corev1.Pod{}
		err := e.Client.Get(t.Context(), client.ObjectKey{Namespace: e.Namespace, Name: member.Name}, again)
		if err == nil && again.UID == pod.UID {
			err = errors.New("it is the old one")
		}
		return err
	})
	e.policyIs(true)
	if err := e.Client.Delete(t.Context(), makeHere(e, &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: member.Name}})); err != nil {
		t.Fatal(err)
	}
	e.policyIs(false)
}

// makeHere puts an object into the namespace, to be deleted by its name.
func makeHere[T client.Object](e *environment, object T) T {
	object.SetNamespace(e.Namespace)
	object.SetUID("")
	return object
}

func TestNameOfAPolicyThatSomebodyHoldsKeepsPodsFromStarting(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	squatter := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec:       networkingv1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{}}},
	}
	e.Create(squatter)
	e.Create(makeTemplate(), makePool(1))
	e.says(extensionsv1beta1.TemplateConditionReady, "NetworkPolicyNameTaken")
	if note := e.event("NetworkPolicyNameTaken"); !strings.Contains(note, policyName) {
		t.Errorf("the Event says %q", note)
	}
	e.Eventually("the member says why it does not start", func() error {
		for _, member := range e.members() {
			ready := meta.FindStatusCondition(member.Status.Conditions, agentsv1beta1.ConditionReady)
			if ready != nil && strings.Contains(ready.Message, "holds its name") {
				return nil
			}
		}
		return errors.New("it does not")
	})
	var pods corev1.PodList
	if err := e.Client.List(t.Context(), &pods, client.InNamespace(e.Namespace)); err != nil || len(pods.Items) > 0 {
		t.Fatalf("%d Pods started without isolation, %v", len(pods.Items), err)
	}
	if got := e.policy(); got.ResourceVersion != squatter.ResourceVersion {
		t.Error("somebody's policy was touched")
	}
}

func TestUnmanagedTemplateHasTheFloorOnlyAndSaysSo(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makeTemplate(), makePool(1))
	e.settled(1)
	e.policyIs(true)
	e.Create(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "open"}, Spec: networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{keys.SandboxTemplateRefHash: keys.NameHash("python")}},
		Egress:      []networkingv1.NetworkPolicyEgressRule{{}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
	}})
	change(e, makeTemplate(), func(template *extensionsv1beta1.SandboxTemplate) {
		template.Spec.NetworkPolicyManagement = extensionsv1beta1.NetworkPolicyUnmanaged
	})
	e.policyIs(false)
	said := e.says(extensionsv1beta1.TemplateConditionNetworkPolicy, "Unmanaged")
	exposed := fmt.Sprintf("NetworkPolicy %q lets 1 of their Pods (%s) connect to everything", "open", e.members()[0].Name)
	if !strings.Contains(said.Message, keys.NameHash("python")) || !strings.Contains(said.Message, exposed) {
		t.Errorf("message = %q", said.Message)
	}
	change(e, makeTemplate(), func(template *extensionsv1beta1.SandboxTemplate) {
		template.Spec.NetworkPolicyManagement = extensionsv1beta1.NetworkPolicyManaged
	})
	e.policyIs(true)
	e.says(extensionsv1beta1.TemplateConditionReady, "Usable")
}
