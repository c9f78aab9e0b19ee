// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const saysReady = "True/DependenciesReady: Pod is Ready"

func TestAWarmClaimCostsTwoWritesUntilReadyAndThreeInAll(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	stock := e.pool()
	stock.add("pool-1")
	stock.offers(1, 1)
	e.Create(makeClaim("claim", withPodMetadata(map[string]string{"sandbox.users.io/task": "t1"}, nil), func(c *extensionsv1beta1.SandboxClaim) {
		c.Labels = map[string]string{keys.CreatedBy: "python-client"}
	}))
	claim := e.says(saysReady)
	if diff := cmp.Diff(extensionsv1beta1.SandboxStatus{Name: "pool-1", PodIPs: []string{"10.1.2.3"}}, claim.Status.SandboxStatus); diff != "" {
		t.Errorf("status.sandbox (-want +got):\n%s", diff)
	}
	e.Eventually("the annotations are there", func() error {
		claim = e.claim("claim")
		if claim.Annotations[keys.SandboxName] != "pool-1" || claim.Annotations[keys.ClaimFirstReadyAt] == "" {
			return errors.New("they are not")
		}
		return nil
	})
	want := apiserver.Counts{"patch sandboxes": 1, "patch sandboxclaims/status": 1, "patch sandboxclaims": 1}
	if diff := cmp.Diff(want, e.Writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}

	sandbox := &agentsv1beta1.Sandbox{}
	e.Get("pool-1", sandbox)
	ref, uid := keys.NameHash("template"), string(claim.UID)
	wantLabels := map[string]string{
		keys.SandboxTemplateRefHash: ref, keys.LaunchType: "warm", keys.ClaimUID: uid, keys.CreatedBy: "python-client",
		keys.Template: keys.TemplateKey("template"),
	}
	if diff := cmp.Diff(wantLabels, sandbox.Labels); diff != "" {
		t.Errorf("labels of the Sandbox (-want +got):\n%s", diff)
	}
	wantPod := agentsv1beta1.PodMetadata{Labels: map[string]string{
		"app": "workspace", "sandbox.users.io/task": "t1", keys.SandboxTemplateRefHash: ref, keys.ClaimUID: uid, keys.CreatedBy: "python-client",
	}}
	if diff := cmp.Diff(wantPod, sandbox.Spec.PodTemplate.ObjectMeta); diff != "" {
		t.Errorf("metadata of the Pod (-want +got):\n%s", diff)
	}
	wantOwner := []metav1.OwnerReference{
		*metav1.NewControllerRef(claim, extensionsv1beta1.GroupVersion.WithKind(extensionsv1beta1.SandboxClaimKind)),
	}
	if diff := cmp.Diff(wantOwner, sandbox.OwnerReferences); diff != "" {
		t.Errorf("owner of the Sandbox (-want +got):\n%s", diff)
	}
}
