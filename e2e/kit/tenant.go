// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// Tenant binds the chart's roles for tenants to a user in the namespace and returns
// the cluster as that user sees it.
func (c *Cluster) Tenant(ctx context.Context, t *testing.T, namespace string) *Cluster {
	t.Helper()
	user := "tenant-of-" + namespace
	for _, role := range []string{"view", "edit"} {
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tenant-" + role},
			RoleRef: rbacv1.RoleRef{
				APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "agent-sandbox-" + role + "." + ReleaseNamespace,
			},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}
		if err := c.Create(ctx, binding); err != nil {
			t.Fatalf("bind role %s: %v", role, err)
		}
	}
	for _, may := range []authorizationv1.ResourceAttributes{
		{Namespace: namespace, Verb: "get", Group: agentsv1beta1.GroupVersion.Group, Resource: "sandboxes"},
		{Namespace: namespace, Verb: "patch", Group: extensionsv1beta1.GroupVersion.Group, Resource: "sandboxclaims"},
	} {
		c.AwaitAccess(ctx, t, user, may)
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	generic, err := client.New(config, client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return &Cluster{Client: generic, Clientset: clientset, Config: config, Kubeconfig: c.Kubeconfig}
}

// AwaitAccess waits until a role that was just bound to a user has its effect.
func (c *Cluster) AwaitAccess(ctx context.Context, t *testing.T, user string, may authorizationv1.ResourceAttributes) {
	t.Helper()
	if err := apiserver.AwaitAccess(ctx, c.Client, authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &may}); err != nil {
		t.Fatal(err)
	}
}
