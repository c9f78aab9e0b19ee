// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lifetime"
)

// compared is the patch that a comparison of the whole objects gives.
func compared(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// encoded is a patch from one state of an object to another.
func encoded(t *testing.T, patch client.Patch, after client.Object) []byte {
	t.Helper()
	text, err := patch.Data(after)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// expectPatch checks a patch: it says what a comparison would say, and what it is applied to
// becomes what was wanted.
func expectPatch(t *testing.T, patch client.Patch, before, after client.Object) {
	t.Helper()
	got := encoded(t, patch, after)
	if diff := cmp.Diff(decoded(t, encoded(t, compared(before), after)), decoded(t, got)); diff != "" || patch.Type() != compared(before).Type() {
		t.Errorf("the patch is of type %s (-a comparison +got):\n%s", patch.Type(), diff)
	}
	applied, err := jsonpatch.MergePatch(asText(t, before), got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decoded(t, asText(t, after)), decoded(t, applied)); diff != "" {
		t.Errorf("the object becomes (-want +got):\n%s", diff)
	}
}

func asText(t *testing.T, object any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestThePatchOfASandboxIsWhatAComparisonGives(t *testing.T) {
	type metadata = agentsv1beta1.PodMetadata
	pod := func(m metadata) func(*agentsv1beta1.Sandbox) {
		return func(s *agentsv1beta1.Sandbox) { s.Spec.PodTemplate.ObjectMeta = m }
	}
	some := map[string]string{"a": "1", "b": "2"}
	cases := map[string]struct {
		change func(*agentsv1beta1.Sandbox)
		claim  func(*extensionsv1beta1.SandboxClaim)
		pod    metadata
	}{
		"as the pool made it":                      {},
		"labels and annotations of the Pod":        {pod: metadata{Labels: map[string]string{"app": "workspace", "x": "\"<>&\u2028"}, Annotations: some}},
		"a Pod that had annotations and labels":    {change: pod(metadata{Labels: some, Annotations: some})},
		"a Pod that had none":                      {change: pod(metadata{}), pod: metadata{Labels: some, Annotations: some}},
		"a Pod that keeps what it has":             {change: pod(metadata{Labels: some}), pod: metadata{Labels: some}},
		"a Pod with other values and one key less": {change: pod(metadata{Labels: some}), pod: metadata{Labels: map[string]string{"a": "3"}}},
		"a Pod with an empty value":                {change: pod(metadata{Annotations: some}), pod: metadata{Annotations: map[string]string{"a": ""}}},
		"a creator and a trace": {
			change: func(s *agentsv1beta1.Sandbox) { s.Annotations[keys.Creator] = "alice" },
			claim: func(c *extensionsv1beta1.SandboxClaim) {
				c.Annotations = map[string]string{keys.TraceContext: `{"traceparent":"00-1"}`}
				c.Labels = map[string]string{keys.CreatedBy: "go-client"}
			},
		},
		"no annotations at all": {change: func(s *agentsv1beta1.Sandbox) { s.Annotations = nil }},
		"several owners": {change: func(s *agentsv1beta1.Sandbox) {
			s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "mine", UID: "u"})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, claim := makeSandbox(), makeClaim("claim")
			if tc.change != nil {
				tc.change(before)
			}
			if tc.claim != nil {
				tc.claim(claim)
			}
			after := handOver(before, claim, tc.pod)
			expectPatch(t, metadataPatch(before, after), before, after)
			lifetime.Note(after, config.Tier{MaxLifetime: metav1.Duration{Duration: 3600}})
			expectPatch(t, metadataPatch(before, after), before, after)
			maintained := after.DeepCopy()
			maintained.Spec.PodTemplate.ObjectMeta = before.Spec.PodTemplate.ObjectMeta
			expectPatch(t, metadataPatch(after, maintained), after, maintained)
		})
	}
}

func TestThePatchOfAStatusIsWhatAComparisonGives(t *testing.T) {
	status := func(name string, addresses []string, reasons ...string) extensionsv1beta1.SandboxClaimStatus {
		s := extensionsv1beta1.SandboxClaimStatus{SandboxStatus: extensionsv1beta1.SandboxStatus{Name: name, PodIPs: addresses}}
		for _, reason := range reasons {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: reason, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon())})
		}
		return s
	}
	one, two := []string{"10.1.2.3"}, []string{"10.1.2.3", "fd00::1"}
	cases := map[string]struct {
		before, after extensionsv1beta1.SandboxClaimStatus
	}{
		"the first of a claim":               {status("", nil), status("box", one, "Ready")},
		"trouble and no Sandbox":             {status("", nil), status("", nil, "Ready")},
		"a Sandbox that gets its address":    {status("box", nil, "Ready"), status("box", one, "Ready")},
		"one that gets a second address":     {status("box", one, "Ready"), status("box", two, "Ready")},
		"one that loses its addresses":       {status("box", two, "Ready"), status("box", nil, "Ready")},
		"one whose addresses are none":       {status("box", two, "Ready"), status("box", []string{}, "Ready")},
		"one that is gone":                   {status("box", one, "Finished", "Ready"), status("", nil, "Ready")},
		"one that has finished, and no more": {status("box", one, "Ready"), status("box", one, "Finished", "Ready")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := makeClaim("claim", func(c *extensionsv1beta1.SandboxClaim) { c.ResourceVersion, c.Status = "7", tc.before })
			after := before.DeepCopy()
			after.Status = tc.after
			expectPatch(t, statusPatch(before, tc.after), before, after)
		})
	}
}

// The writes of the hot path are made without encoding the objects.
func TestAPatchAllocatesAFractionOfWhatAComparisonDoes(t *testing.T) {
	box, s := makeSandbox(), makeScope()
	s.claim.ResourceVersion, s.sandbox = "7", box
	taken, bound := handOver(box, s.claim, agentsv1beta1.PodMetadata{Labels: map[string]string{"app": "workspace"}}), s.claim.DeepCopy()
	bound.Status = desiredStatus(s)
	cases := map[string]struct {
		patch         func() client.Patch
		before, after client.Object
	}{
		"of a Sandbox": {func() client.Patch { return metadataPatch(box, taken) }, box, taken},
		"of a status":  {func() client.Patch { return statusPatch(s.claim, bound.Status) }, s.claim, bound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			count := func(patch func() client.Patch) float64 {
				return testing.AllocsPerRun(20, func() { encoded(t, patch(), tc.after) })
			}
			got, comparison := count(tc.patch), count(func() client.Patch { return compared(tc.before) })
			if t.Logf("%.0f allocations, a comparison %.0f", got, comparison); 4*got > comparison {
				t.Errorf("the patch takes %.0f allocations, want at most a quarter of the %.0f of a comparison", got, comparison)
			}
		})
	}
}
