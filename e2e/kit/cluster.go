// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	reportsv1alpha1 "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
)

// ReleaseNamespace is where make up installs the bundle.
const ReleaseNamespace = "agent-sandbox-system"

// Cluster is the cluster under test.
type Cluster struct {
	client.Client
	// Clientset reaches what the generic client does not: logs and exec.
	Clientset kubernetes.Interface
	// Config is the connection, of an administrator.
	Config *rest.Config
	// Kubeconfig is the path of the file it was made from.
	Kubeconfig string
}

// Connect connects to the cluster of KUBECONFIG.
func Connect() (*Cluster, error) {
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		return nil, errors.New("KUBECONFIG is not set: run the stories with make e2e")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	config.QPS, config.Burst = -1, 0
	// Warnings are part of the stories; the default handler prints them.
	config.WarningHandler = rest.NoWarnings{}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	generic, err := client.New(config, client.Options{Scheme: newScheme()})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &Cluster{Client: generic, Clientset: clientset, Config: config, Kubeconfig: path}, nil
}

// As returns the cluster as a user sees it.
func (c *Cluster) As(user string) (client.Client, error) {
	config := rest.CopyConfig(c.Config)
	config.Impersonate.UserName = user
	return client.New(config, client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, certmanagerv1.AddToScheme,
		reportsv1alpha1.Install, agentsv1beta1.AddToScheme, extensionsv1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) //nolint:forbidigo // A scheme that cannot be built is a fault of this file.
		}
	}
	return s
}

// Namespace makes a namespace for one story, with the labels given as key and value
// in turn, and removes it when the story ends.
func (c *Cluster) Namespace(ctx context.Context, t *testing.T, labels ...string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-", Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		ns.Labels[labels[i]] = labels[i+1]
	}
	if err := c.Create(ctx, ns); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(ctx), ns); client.IgnoreNotFound(err) != nil {
			t.Errorf("delete namespace %s: %v", ns.Name, err)
		}
	})
	return ns.Name
}
