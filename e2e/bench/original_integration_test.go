// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package bench

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

const (
	originalModule = "sigs.k8s.io/agent-sandbox"
	// rounds is how often the two controllers take turns.
	rounds = 3
)

// original is the controller that this API comes from, as its manifest with extensions
// installs it, without the webhooks. It returns its version too.
func original(ctx context.Context, tb testing.TB) (s subject, version string) {
	tb.Helper()
	root, err := apiserver.Root()
	check(tb, err)
	tools := filepath.Join(root, ".tools", "original")
	ask := exec.CommandContext(ctx, "go", "list", "-m", "-json", originalModule)
	ask.Dir = tools
	answer, err := ask.Output()
	check(tb, err)
	var module struct{ Dir, Version string }
	check(tb, json.Unmarshal(answer, &module))
	return subject{
		product: &apiserver.Product{
			Module: tools, Command: originalModule + "/cmd/agent-sandbox-controller",
			Definitions: filepath.Join(module.Dir, "k8s", "crds", "*.yaml"),
			Roles:       filepath.Join(module.Dir, "k8s", "*rbac.generated.yaml"),
		},
		flags: []string{"--extensions", "--enable-webhook=false"},
	}, module.Version
}

// Claims of the original and of ours, in turn and each on an apiserver of its own, on the
// same nodes, pools and loads: run with -benchtime=1x.
func BenchmarkBesideTheOriginal(b *testing.B) {
	text := "Begun " + machine(b) + ".\n\n"
	theirs, version := original(b.Context(), b)
	var beside Beside
	for range rounds {
		b.Run("original", func(b *testing.B) { beside.Original = Sum(beside.Original, round(b, theirs)) })
		b.Run("ours", func(b *testing.B) { beside.Ours = Sum(beside.Ours, round(b, unjudged(b))) })
	}
	floor := ""
	b.Run("bare", func(b *testing.B) {
		floor = newDesk(newWorld(b, unjudged(b)), 100).holdToBare(b.Context(), steady(2, 20))
	})
	for _, miss := range beside.Misses() {
		b.Error(miss)
	}
	publish(b, "original", text+beside.Table(version)+"\n"+floor+"\n\nEnded "+machine(b)+".\n")
}

// round puts a controller under every load.
func round(b *testing.B, s subject) (results []Result) {
	b.Helper()
	d := newDesk(newWorld(b, s), 100)
	for _, l := range []load{steady(2, 20), steady(5, 20), burst("burst of 100", 100)} {
		result, _ := d.measure(b.Context(), l)
		results = append(results, result)
	}
	return results
}
