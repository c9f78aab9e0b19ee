// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
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
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// Controllers is the group of the users that have the role of the platform's
// controller, as its product installs it.
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

// install makes the apiserver serve the kinds of a product and gives its controllers
// their roles.
func install(ctx context.Context, config *rest.Config, product *Product) error {
	c, err := NewClient(config)
	if err != nil {
		return err
	}
	if err := installRole(ctx, c, product.Roles); err != nil {
		return fmt.Errorf("role of the controller: %w", err)
	}
	definitions, err := readAll[apiextensionsv1.CustomResourceDefinition](product.Definitions)
	if err != nil {
		return err
	}
	for i := range definitions {
		if err := installDefinition(ctx, c, &definitions[i]); err != nil {
			return fmt.Errorf("install %s: %w", definitions[i].Name, err)
		}
	}
	return nil
}

// readAll reads all files of a pattern, of which there is at least one.
func readAll[T any](pattern string) ([]T, error) {
	files, err := filepath.Glob(pattern)
	if err == nil && len(files) == 0 {
		err = os.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", pattern, err)
	}
	all := make([]T, len(files))
	for i, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(content, &all[i]); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
	}
	return all, nil
}

func installDefinition(ctx context.Context, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) error {
	definition.Spec.Conversion = nil // nobody is there to convert
	if err := c.Create(ctx, definition); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, pollInterval, startPatience, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
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

// installRole lets the group of the controllers do what the roles of a product allow.
func installRole(ctx context.Context, c client.Client, pattern string) error {
	roles, err := readAll[rbacv1.ClusterRole](pattern)
	if err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: Controllers}}
	for i := range roles {
		role.Rules = append(role.Rules, roles[i].Rules...)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: Controllers},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: Controllers}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := c.Create(ctx, object); err != nil {
			return err
		}
	}
	return AwaitAccess(ctx, c, authorizationv1.SubjectAccessReviewSpec{
		Groups: []string{Controllers}, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods"},
	})
}
