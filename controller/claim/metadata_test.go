// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"errors"
	"strings"
	"testing"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

func TestMetadataThatAClaimMayAdd(t *testing.T) {
	domains := []string{"sandbox.users.io", "example.com"}
	label := func(key, value string) agentsv1beta1.PodMetadata {
		return agentsv1beta1.PodMetadata{Labels: map[string]string{key: value}}
	}
	annotation := func(key string) agentsv1beta1.PodMetadata {
		return agentsv1beta1.PodMetadata{Annotations: map[string]string{key: "x"}}
	}
	cases := map[string]struct {
		added agentsv1beta1.PodMetadata
		// want is how the message begins; empty for none.
		want string
	}{
		"nothing":                             {},
		"a label of an allowed domain":        {added: label("sandbox.users.io/task", "t")},
		"a label of a domain below":           {added: label("a.b.example.com/task", "")},
		"a label without a domain":            {label("task", "t"), "spec.additionalPodMetadata.labels[task]: the key needs a domain: write sandbox.users.io/task"},
		"a label of another domain":           {label("other.io/task", "t"), `spec.additionalPodMetadata.labels[other.io/task]: the domain "other.io" is not allowed: use sandbox.users.io, example.com`},
		"a domain that only ends alike":       {label("badexample.com/task", "t"), `spec.additionalPodMetadata.labels[badexample.com/task]: the domain`},
		"a domain above an allowed one":       {label("users.io/task", "t"), `spec.additionalPodMetadata.labels[users.io/task]: the domain`},
		"a label whose key is none":           {label("example.com/a b", "t"), `spec.additionalPodMetadata.labels[example.com/a b]: the key is no qualified name`},
		"a label whose value is none":         {label("example.com/a", "a b"), `spec.additionalPodMetadata.labels[example.com/a]: the value "a b" is no value of a label`},
		"the router's label":                  {label("app", "sandbox-router"), "spec.additionalPodMetadata.labels[app]: app=sandbox-router is the router's own"},
		"the router's label in other letters": {label("App", "Sandbox-Router"), "spec.additionalPodMetadata.labels[App]: App=Sandbox-Router is the router's own"},
		"an annotation of any domain":         {added: annotation("other.io/note")},
		"an annotation without a domain":      {added: annotation("note")},
		"an annotation whose key is none":     {annotation("a b"), "spec.additionalPodMetadata.annotations[a b]: the key is no qualified name"},
		"an annotation of Kubernetes":         {annotation("kubernetes.io/x"), "spec.additionalPodMetadata.annotations[kubernetes.io/x]: the domain kubernetes.io is not the claim's to set"},
		"an annotation of a part of it":       {annotation("seccomp.security.kubernetes.io/x"), "spec.additionalPodMetadata.annotations[seccomp.security.kubernetes.io/x]: the domain"},
		"an annotation of k8s.io":             {annotation("policy.k8s.io/x"), "spec.additionalPodMetadata.annotations[policy.k8s.io/x]: the domain k8s.io is"},
		"an annotation of the API":            {annotation(keys.PodName), "spec.additionalPodMetadata.annotations[agents.x-k8s.io/pod-name]: the domain agents.x-k8s.io is"},
		"an annotation of the platform":       {annotation(keys.EgressProfile), "spec.additionalPodMetadata.annotations[platform.agents.x-k8s.io/egress-profile]: the domain agents.x-k8s.io is"},
		"the word to the autoscaler":          {added: annotation("cluster-autoscaler.kubernetes.io/safe-to-evict")},
		"another word to the autoscaler":      {annotation("cluster-autoscaler.kubernetes.io/x"), "spec.additionalPodMetadata.annotations[cluster-autoscaler.kubernetes.io/x]: the domain"},
		"the trace that is handed on anyway":  {annotation(keys.TraceContext), "spec.additionalPodMetadata.annotations[opentelemetry.io/trace-context]: the controllers hand it on"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := checkMetadata(tc.added, domains)
			if tc.want == "" {
				if err != nil {
					t.Errorf("checkMetadata() = %v, want nil", err)
				}
				return
			}
			if r := (refusal{}); !errors.As(err, &r) || r.reason != ReasonInvalidMetadata || !strings.HasPrefix(r.Error(), tc.want) {
				t.Errorf("checkMetadata() = %v, want InvalidMetadata %q", err, tc.want)
			}
		})
	}
}
