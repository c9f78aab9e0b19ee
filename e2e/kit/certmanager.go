// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// CertManager installs the definitions of cert-manager, as its module has them, and runs
// its controllers and cainjector until the story ends: a process beside the Pods, as an
// administrator.
func (c *Cluster) CertManager(ctx context.Context, t *testing.T) {
	t.Helper()
	program, err := apiserver.Program(ctx, "cert-manager")
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range certManagerDefinitions(ctx, t) {
		if err := c.Create(ctx, definition); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("install %s: %v", definition.Name, err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.WithoutCancel(ctx), definition); client.IgnoreNotFound(err) != nil {
				t.Errorf("remove %s: %v", definition.Name, err)
			}
		})
	}
	Eventually(ctx, t, "the apiserver knows Certificates", func(ctx context.Context) error {
		return c.List(ctx, &certmanagerv1.CertificateList{})
	})
	log := filepath.Join(t.TempDir(), "cert-manager.log")
	daemon, err := apiserver.Launch("cert-manager", program, log, "-kubeconfig="+c.Kubeconfig, "-namespace="+ReleaseNamespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := daemon.Failure(); err != nil {
			t.Error(err)
		}
		if err := daemon.Stop(); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("the log of cert-manager:\n%s", text)
		}
	})
}

// certManagerDefinitions are those of certificates and issuers; the controllers ask for
// no others.
func certManagerDefinitions(ctx context.Context, t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	if err != nil {
		t.Fatalf("find the module of cert-manager: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "deploy", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the module of cert-manager has no definitions: %v", err)
	}
	var found []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		content, err := os.ReadFile(file)
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err == nil {
			err = yaml.Unmarshal(content, definition)
		}
		if err != nil {
			t.Fatal(fmt.Errorf("read %s: %w", file, err))
		}
		found = append(found, definition)
	}
	return found
}
