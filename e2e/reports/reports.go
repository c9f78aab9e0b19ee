// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reports brings the definition of the kind Report of openreports.io into a cluster
// of the tests, as its own module has it.
package reports

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	interval = 100 * time.Millisecond
	// patience bounds a hang.
	patience = time.Minute
)

// Install makes the cluster know reports and returns what takes them away, which waits
// until they are gone. A cluster that knows them already is left as it is.
func Install(t *testing.T, c client.Client) (remove func()) {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openreports/reports-api").Output()
	if err != nil {
		t.Fatalf("find the module of reports: %v", err)
	}
	content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "config", "crd", "openreports.io_reports.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var made apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(content, &made); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &made); apierrors.IsAlreadyExists(err) {
		return func() {}
	} else if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := removed(context.Background(), c, &made); err != nil {
			t.Error(err)
		}
	}
}

func removed(ctx context.Context, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) error {
	err := client.IgnoreNotFound(c.Delete(ctx, definition))
	if err == nil { // the next test must not meet what is on its way out
		err = wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(definition), definition)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", definition.Name, err)
	}
	return nil
}
