// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/crds"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// Controllers is the group of the users that have the role of the platform's
// controller, as the chart installs it.
const Controllers = "controllers-under-test"

// NewScheme knows the kinds of Kubernetes and of the platform.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, agentsv1beta1.AddToScheme, extensionsv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	return scheme, nil
}

// NewClient reads and writes without a cache.
func NewClient(config *rest.Config) (client.WithWatch, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

// install makes the apiserver serve the kinds of the platform and gives the
// controllers their role.
func install(ctx context.Context, config *rest.Config) error {
	c, err := NewClient(config)
	if err != nil {
		return err
	}
	if err := installRole(ctx, c); err != nil {
		return err
	}
	files, err := fs.Glob(crds.Files, "*.yaml")
	if err != nil {
		return fmt.Errorf("list the definitions: %w", err)
	}
	for _, file := range files {
		if err := installDefinition(ctx, c, file); err != nil {
			return fmt.Errorf("install %s: %w", file, err)
		}
	}
	return nil
}

func installDefinition(ctx context.Context, c client.Client, file string) error {
	content, err := crds.Files.ReadFile(file)
	if err != nil {
		return err
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &definition); err != nil {
		return err
	}
	if err := c.Create(ctx, &definition); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, pollInterval, startPatience, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(&definition), &definition); err != nil {
			return false, err
		}
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
}

func installRole(ctx context.Context, c client.Client) error {
	root, err := Root()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(root, "charts", "agent-sandbox", "files", "controller-role.yaml"))
	if err != nil {
		return fmt.Errorf("role of the controller: %w", err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(content, &role); err != nil {
		return fmt.Errorf("role of the controller: %w", err)
	}
	role.Name = Controllers
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: Controllers},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: Controllers}},
	}
	for _, object := range []client.Object{&role, binding} {
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("role of the controller: %w", err)
		}
	}
	return AwaitAccess(ctx, c, authorizationv1.SubjectAccessReviewSpec{
		Groups: []string{Controllers}, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods"},
	})
}
