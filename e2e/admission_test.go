// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// deed is one request to the apiserver, of which nothing is kept, with the answer that
// it deserves.
type deed struct {
	what string
	// ask returns the object as it would be stored.
	ask func(ctx context.Context) (*unstructured.Unstructured, error)
	// refusal is a part of the right refusal; empty when it has to be admitted.
	refusal string
	// hardens says that what is admitted has to come back with the defaults.
	hardens bool
}

// verdict is what became of the deed.
func (d deed) verdict(ctx context.Context) (kit.Verdict, string) {
	object, err := d.ask(ctx)
	switch {
	case d.refusal == "" && err != nil:
		return kit.Wrong, fmt.Sprintf("%s: %v", d.what, err)
	case d.refusal == "" && d.hardens && !isHardened(object):
		return kit.Unchecked, fmt.Sprintf("%s came back without the hardened defaults: annotations %v", d.what, object.GetAnnotations())
	case d.refusal == "":
		return kit.Right, ""
	case err == nil:
		return kit.Unchecked, d.what
	case !strings.Contains(err.Error(), d.refusal):
		return kit.Wrong, fmt.Sprintf("%s: %v", d.what, err)
	}
	return kit.Right, ""
}

func isHardened(object *unstructured.Unstructured) bool {
	mounts, set, err := unstructured.NestedBool(object.Object, "spec", "podTemplate", "spec", "automountServiceAccountToken")
	return err == nil && set && !mounts && object.GetAnnotations()[keys.Defaulted] != ""
}

// admission asks in turn for what has to be hardened, what has to be refused and what is
// fine as it is: new objects of all four kinds, and changes of those that are there.
func admission(ctx context.Context, t *testing.T) kit.Load {
	t.Helper()
	ns := cluster.Namespace(ctx, t)
	const pod, admin = "terminationGracePeriodSeconds: 1", "securityContext: {capabilities: {add: [SYS_ADMIN]}}"
	stored := kit.Object(t, ns, sandboxWith("stored", pod, ""))
	if err := unstructured.SetNestedField(stored.Object, "Suspended", "spec", "operatingMode"); err != nil {
		t.Fatal(err)
	}
	mustCreate(ctx, t, stored)
	cluster.MustApply(ctx, t, ns, asTemplate(sandboxWith("python", pod, "")))
	pool := cluster.MustApply(ctx, t, ns, emptyPool)
	deeds := []deed{
		{"a Sandbox", creating(t, ns, sandboxWith("good", pod, "")), "", true},
		{"a Sandbox with SYS_ADMIN", creating(t, ns, sandboxWith("bad", pod, admin)), "SYS_ADMIN", false},
		{"a template", creating(t, ns, asTemplate(sandboxWith("good", pod, ""))), "", true},
		{"a template with SYS_ADMIN", creating(t, ns, asTemplate(sandboxWith("bad", pod, admin))), "SYS_ADMIN", false},
		{"a claim", creating(t, ns, kit.Readme(t, "manifest: claim")), "", false},
		{"a claim that leaves the floor", creating(t, ns, strings.Replace(kit.Readme(t, "manifest: claim"), "spec: {",
			`spec: {additionalPodMetadata: {labels: {platform.agents.x-k8s.io/sandbox: "false"}}, `, 1)), "reserved-metadata", false},
		{"a label on a Sandbox", changing(stored, `{"metadata": {"labels": {"a": "b"}}}`), "", false},
		{"a Sandbox that gets SYS_ADMIN", changing(stored, `{"spec": {"podTemplate": {"spec": {"containers": [
			{"name": "workspace", "image": "python:3.12-slim", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]}}}}`), "SYS_ADMIN", false},
		{"a pool that grows", changing(pool, `{"spec": {"replicas": 1}}`), "", false},
	}
	return kit.Load{Interval: pace, Askers: outstanding, Patience: toCatchUp, Ask: func(ctx context.Context, i int) (kit.Verdict, string) {
		return deeds[i%len(deeds)].verdict(ctx)
	}}
}

// creating makes a new object.
func creating(t *testing.T, ns, manifest string) func(context.Context) (*unstructured.Unstructured, error) {
	t.Helper()
	object := kit.Object(t, ns, manifest)
	return func(ctx context.Context) (*unstructured.Unstructured, error) {
		made := object.DeepCopy()
		return made, cluster.Create(ctx, made, client.DryRunAll)
	}
}

// changing patches an object that is there.
func changing(object *unstructured.Unstructured, patch string) func(context.Context) (*unstructured.Unstructured, error) {
	return func(ctx context.Context) (*unstructured.Unstructured, error) {
		changed := object.DeepCopy()
		return changed, cluster.Patch(ctx, changed, client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	}
}
