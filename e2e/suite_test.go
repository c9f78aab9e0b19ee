// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e tells the stories of the platform's users against a real cluster in
// which make up installed the bundle. One file is one story, in the words of the
// person who lives it. Stories that change the release, or what holds for all, are told
// one by one; those that keep to their namespaces then go on side by side.
package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// cluster is the cluster under test; TestMain connects to it.
var cluster *kit.Cluster

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	var err error
	if cluster, err = kit.Connect(); err != nil {
		return 0, err
	}
	for _, name := range []string{"agent-sandbox-controller", "agent-sandbox-webhook"} {
		key := client.ObjectKey{Namespace: kit.ReleaseNamespace, Name: name}
		if err := cluster.Get(context.Background(), key, &appsv1.Deployment{}); err != nil {
			return 0, fmt.Errorf("the bundle is not installed, run make up: %w", err)
		}
	}
	return m.Run(), nil
}
