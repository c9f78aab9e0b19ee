// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package charts_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// The ceiling of the tier build is the Service trusted/git. Before there is one, who opens
// the Pods behind it hears so when he applies it; afterwards he may, and no more than that.
func (s served) ceilingOfAService(t *testing.T) {
	s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "build", Labels: map[string]string{keys.Tier: "build"}}})
	apply := func(egress string) error {
		return s.Create(t.Context(), written(t, "build", "extensions.agents.x-k8s.io/v1beta1", "SandboxTemplate",
			`{"podTemplate": {"spec": {"containers": [{"name": "a", "image": "a:1"}]}}, "networkPolicy": {"egress": [`+egress+`]}}`), client.DryRunAll)
	}
	const pods = `{"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "trusted"}}, "podSelector": {"matchLabels": {"app": "git"}}}], ` +
		`"ports": [{"port": 8443}]}`
	const nothing = "Service trusted/git opens nothing: there is no such Service"
	for _, egress := range []string{pods, "{}"} {
		if err := apply(egress); err == nil || !strings.Contains(err.Error(), nothing) {
			t.Errorf("without the Service, %s is answered with %v, want %q", egress, err, nothing)
		}
	}
	git := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "trusted", Name: "git"}}
	git.Spec.Selector, git.Spec.Ports = map[string]string{"app": "git"}, []corev1.ServicePort{{Port: 8443}}
	s.create(t, git)
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = apply(pods)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("the Pods behind the Service may not be opened: %v", last)
	}
	for _, egress := range []string{strings.Replace(pods, "8443", "22", 1), "{}"} {
		if err := apply(egress); err == nil || strings.Contains(err.Error(), "opens nothing") || !strings.Contains(fmt.Sprint(err), "egress-ceiling") {
			t.Errorf("with the Service, %s is answered with %v, want a refusal of egress-ceiling", egress, err)
		}
	}
}
