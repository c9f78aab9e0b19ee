// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// What a request names may have been made a moment ago, so that no informer knows it
// yet. It is judged all the same.
func TestWhatTheInformersDoNotKnowYetIsReadLive(t *testing.T) {
	template := `"spec": {"podTemplate": {"spec": {"volumes": [{"name": "h", "hostPath": {"path": "/"}}], "containers": [{"name": "main", "image": "i:1"}]}}}}`
	decide := world{objects: []client.Object{
		extension(`{"kind": "SandboxTemplate", "metadata": {"name": "new", "namespace": "tenant"}, ` + template),
		extension(`{"kind": "SandboxWarmPool", "metadata": {"name": "new", "namespace": "tenant"}, "spec": {"sandboxTemplateRef": {"name": "new"}}}`),
		extension(`{"kind": "SandboxWarmPool", "metadata": {"name": "new", "namespace": "lost"}, "spec": {"sandboxTemplateRef": {"name": "new"}}}`),
	}}.judge(t)
	// Whatever there is, the cache is the one of a world without it.
	live, cached := lookupOf(t, decide), lookupOf(t, world{}.judge(t))
	decide.Lookup = Lookup{Cached: cached.Cached, Live: live.Live}
	scaled := scale("new", 1, 5)
	scaled.Namespace = "lost"
	for name, tc := range map[string]struct {
		request admissionv1.AdmissionRequest
		want    string
	}{
		"a claim":               {creation("tenant", "SandboxClaim", `{"metadata": {"name": "c"}, "spec": {"warmPoolRef": {"name": "new"}}}`), "hostpath"},
		"a pool that is scaled": {scaled, "lax"},
	} {
		t.Run(name, func(t *testing.T) {
			response := decide.Validate(t.Context(), admission.Request{AdmissionRequest: tc.request})
			if response.Allowed || !strings.Contains(response.Result.Message, tc.want) {
				t.Errorf("allowed %t, %v, want a refusal that names %s", response.Allowed, response.Result, tc.want)
			}
		})
	}
}

// The controllers make nothing from what is being deleted, and nothing is judged by it: it may say
// what nobody judged.
func TestWhatIsBeingDeletedIsNotJudgedBy(t *testing.T) {
	const deleted = `"finalizers": ["example.com/hold"], "deletionTimestamp": "2026-11-29T12:00:00Z"`
	decide := world{objects: []client.Object{
		extension(`{"kind": "SandboxTemplate", "metadata": {"name": "t", "namespace": "tenant", ` + deleted + `}, "spec": {}}`),
		extension(`{"kind": "SandboxWarmPool", "metadata": {"name": "p", "namespace": "tenant", ` + deleted + `}, "spec": {}}`),
	}}.judge(t)
	for kind, read := range map[string]func() (map[string]any, error){
		"a template": func() (map[string]any, error) { return decide.Lookup.Template(t.Context(), "tenant", "t") },
		"a pool":     func() (map[string]any, error) { return decide.Lookup.Pool(t.Context(), "tenant", "p") },
	} {
		if found, err := read(); err != nil || found != nil {
			t.Errorf("%s: found %v, %v, want none", kind, found, err)
		}
	}
}

func lookupOf(t *testing.T, decide *Judge) Lookup {
	t.Helper()
	lookup, ok := decide.Lookup.(Lookup)
	if !ok {
		t.Fatalf("the judge looks up by a %T", decide.Lookup)
	}
	return lookup
}

// The first of the tier's classes that exists and, if it selects nodes, has one that takes
// Pods is set. When no node of any class of the list does, the Pod waits for one.
func TestTheClassThatIsSetCanRunSomewhere(t *testing.T) {
	class := func(name string, nodes map[string]string) client.Object {
		c := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if nodes != nil {
			c.Scheduling = &nodev1.Scheduling{NodeSelector: nodes}
		}
		return c
	}
	node := func(labels map[string]string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: labels}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return n
	}
	cordoned := func(labels map[string]string) client.Object {
		n := node(labels)
		n.Spec.Unschedulable = true
		return n
	}
	vm := map[string]string{"vm": "yes"}
	cases := map[string]struct {
		objects []client.Object
		usable  []string
		// set is the class of a Sandbox that names none.
		set string
	}{
		"it does not exist":                        {nil, []string{"gvisor"}, "gvisor"},
		"it exists":                                {[]client.Object{class("kata", nil)}, []string{"gvisor", "kata"}, "kata"},
		"it selects any node":                      {[]client.Object{class("kata", map[string]string{})}, []string{"gvisor", "kata"}, "kata"},
		"it selects nodes and there is none":       {[]client.Object{class("kata", map[string]string{"vm": "yes"})}, []string{"gvisor"}, "gvisor"},
		"it selects nodes and there is another":    {[]client.Object{class("kata", map[string]string{"vm": "yes"}), node(map[string]string{"vm": "no"})}, []string{"gvisor"}, "gvisor"},
		"it selects nodes and there is half a one": {[]client.Object{class("kata", map[string]string{"vm": "yes", "zone": "a"}), node(map[string]string{"vm": "yes"})}, []string{"gvisor"}, "gvisor"},
		"it selects nodes and the one is cordoned": {[]client.Object{class("kata", vm), cordoned(vm)}, []string{"gvisor", "kata"}, "gvisor"},
		"it selects nodes and there is one":        {[]client.Object{class("kata", map[string]string{"vm": "yes"}), node(map[string]string{"vm": "yes", "zone": "a"})}, []string{"gvisor", "kata"}, "kata"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			decide := world{objects: tc.objects}.judge(t)
			found, err := lookupOf(t, decide).RuntimeClasses(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.usable, sets.List(found.Usable)); diff != "" {
				t.Errorf("usable classes (-want +got):\n%s", diff)
			}
			request := creation("tenant", "Sandbox", `{"metadata": {"name": "box"}, "spec": {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "i:1"}]}}}}`)
			set := ""
			for _, operation := range decide.Mutate(t.Context(), admission.Request{AdmissionRequest: request}).Patches {
				if operation.Path == "/spec/podTemplate/spec/runtimeClassName" {
					set, _ = operation.Value.(string)
				}
			}
			if set != tc.set {
				t.Errorf("the class %q is set, want %q", set, tc.set)
			}
		})
	}
}
