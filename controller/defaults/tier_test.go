// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/defaults"
)

// everything is a tier that sets every field there is.
func everything(kind, object string) defaults.Request {
	request := standard(kind, object)
	request.Tier.RuntimeClass.Classes = []config.Class{{Name: "kata"}, {Name: "gvisor", HostUsers: new(false)}}
	request.Tier.Hardening.RootFilesystem = config.Default
	request.Tier.ServiceAccounts = []string{"agent", "builder"}
	request.Tier.Resources = config.Resources{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
	return request
}

// open is a tier that leaves every field to the tenant.
func open(kind, object string) defaults.Request {
	request := everything(kind, object)
	request.Tier.RuntimeClass.Classes, request.Tier.ServiceAccounts, request.Tier.Resources = nil, nil, config.Resources{}
	request.Tier.Hardening = config.Hardening{
		Token: config.Open, ServiceLinks: config.Open, UserNamespaces: config.Open, Seccomp: config.Open,
		PrivilegeEscalation: config.Open, Capabilities: config.Open, RootFilesystem: config.Open,
	}
	return request
}

// bounded is a tier that only sets a limit, and has room for two and a half of them.
func bounded(kind, object string) defaults.Request {
	request := open(kind, object)
	request.Tier.Resources = config.Resources{
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")},
	}
	return request
}

// scratch is a tier that only sets a limit of scratch space.
func scratch(kind, object string) defaults.Request {
	request := open(kind, object)
	request.Tier.Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1Gi")}
	return request
}

// inPod is an object with this Pod.
func inPod(pod string) string {
	return `{"metadata": {"name": "x"}, "spec": {"podTemplate": {"spec": ` + pod + `}}}`
}

func TestTiersSetWhatTheyName(t *testing.T) {
	const ofPod = `"automountServiceAccountToken": false, "enableServiceLinks": false, "runtimeClassName": "gvisor", "hostUsers": false,
		"serviceAccountName": "agent", "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}`
	const security = `"securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["NET_RAW"]}}`
	const resources = `"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"memory": "128Mi"}}`
	container := func(resources string) string {
		return `{` + ofPod + `, "containers": [{` + security + `, "resources": ` + resources + `}]}`
	}
	cases := map[string]struct {
		tier      func(kind, object string) defaults.Request
		pod, want string
	}{
		"a Pod that leaves everything open":  {everything, `{"containers": [{}]}`, `{` + ofPod + `, "containers": [{` + security + `, ` + resources + `}]}`},
		"a tier that leaves everything open": {open, `{"containers": [{}], "initContainers": [{}]}`, `{"containers": [{}], "initContainers": [{}]}`},
		"every list of containers, of which ephemeral ones have no resources": {
			everything, `{"initContainers": [{}, {"restartPolicy": "Always"}], "ephemeralContainers": [{}]}`,
			`{` + ofPod + `, "initContainers": [{` + security + `, ` + resources + `}, {"restartPolicy": "Always", ` + security + `, ` + resources + `}],
			  "ephemeralContainers": [{` + security + `}]}`,
		},
		"Windows gets what Windows knows": {
			everything, `{"os": {"name": "windows"}, "containers": [{}]}`,
			`{"os": {"name": "windows"}, "automountServiceAccountToken": false, "enableServiceLinks": false,
			  "serviceAccountName": "agent", "containers": [{` + resources + `}]}`,
		},
		"another class says nothing of user namespaces": {
			everything, `{"runtimeClassName": "kata"}`,
			`{"automountServiceAccountToken": false, "enableServiceLinks": false, "runtimeClassName": "kata", "serviceAccountName": "agent",
			  "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}`,
		},
		"a Pod that shares the node's namespaces cannot have its own users": {
			everything, `{"hostPID": true}`,
			`{"hostPID": true, "automountServiceAccountToken": false, "enableServiceLinks": false, "runtimeClassName": "gvisor",
			  "serviceAccountName": "agent", "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}`,
		},
		"nor can one with a raw device": {
			everything, `{"containers": [{"volumeDevices": [{"name": "a"}], ` + security + `, ` + resources + `}]}`,
			`{"automountServiceAccountToken": false, "enableServiceLinks": false, "runtimeClassName": "gvisor", "serviceAccountName": "agent",
			  "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}, "containers": [{"volumeDevices": [{"name": "a"}], ` + security + `, ` + resources + `}]}`,
		},
		"a ServiceAccount of the tenant's by its old name": {
			everything, `{"serviceAccount": "builder"}`,
			`{"serviceAccount": "builder", "automountServiceAccountToken": false, "enableServiceLinks": false, "runtimeClassName": "gvisor", "hostUsers": false,
			  "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}`,
		},
		"an empty name of a ServiceAccount is none": {everything, `{"serviceAccountName": "", "serviceAccount": ""}`, `{` + ofPod + `, "serviceAccount": ""}`},
		"amounts of the tenant's": {
			everything, container(`{"limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"memory": "64Mi"}}`),
			container(`{"limits": {"cpu": "500m", "memory": "64Mi"}, "requests": {"memory": "64Mi"}}`),
		},
		"a limit alone, which is the request too": {
			everything, container(`{"limits": {"memory": "4Gi"}}`), container(`{"limits": {"cpu": "2", "memory": "4Gi"}}`),
		},
		"a request above the limit of the tier": {
			everything, container(`{"requests": {"memory": "4096Mi", "cpu": 3}}`),
			container(`{"limits": {"cpu": "3", "memory": "4096Mi"}, "requests": {"memory": "4096Mi", "cpu": 3}}`),
		},
		"an amount that is none is the schema's to refuse": {
			everything, container(`{"requests": {"memory": "much"}}`),
			container(`{"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"memory": "much"}}`),
		},
		"as many containers as the tier has room for": {
			bounded, `{"containers": [{}, {}], "initContainers": [{}, {"restartPolicy": "Always", "resources": {"limits": {"cpu": "1"}}}]}`,
			`{"containers": [{"resources": {"limits": {"cpu": "2"}}}, {"resources": {"limits": {"cpu": "2"}}}],
			  "initContainers": [{"resources": {"limits": {"cpu": "2"}}}, {"restartPolicy": "Always", "resources": {"limits": {"cpu": "1"}}}]}`,
		},
		"one more, which nobody asked so much for": {
			bounded, `{"containers": [{}, {}], "initContainers": [{"restartPolicy": "Always"}]}`,
			`{"containers": [{}, {}], "initContainers": [{"restartPolicy": "Always"}]}`,
		},
		"an init container beside a sidecar that leaves no room": {
			bounded, `{"initContainers": [{"restartPolicy": "Always", "resources": {"limits": {"cpu": "4"}}}, {}]}`,
			`{"initContainers": [{"restartPolicy": "Always", "resources": {"limits": {"cpu": "4"}}}, {}]}`,
		},
		"resources of the Pod as a whole": {
			everything, `{"resources": {"limits": {"memory": "2Gi"}}, "containers": [{` + security + `}]}`,
			`{` + ofPod + `, "resources": {"limits": {"memory": "2Gi"}}, "containers": [{` + security + `, "resources": {"limits": {"cpu": "2"}}}]}`,
		},
		"a resource that no Pod as a whole can have": {
			scratch, `{"resources": {"limits": {"ephemeral-storage": "2Gi"}}, "containers": [{}]}`,
			`{"resources": {"limits": {"ephemeral-storage": "2Gi"}}, "containers": [{"resources": {"limits": {"ephemeral-storage": "1Gi"}}}]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := inPod(tc.pod)
			request := tc.tier("Sandbox", object)
			request.Object = apply(t, object, defaults.Operations(request))
			if diff := cmp.Diff(any(decode(tc.want)), podOf(request.Object)["spec"]); diff != "" {
				t.Errorf("patched Pod (-want +got):\n%s", diff)
			}
			if again := defaults.Operations(request); len(again) > 0 {
				t.Errorf("a second pass has operations: %v", again)
			}
			if unmet := defaults.Unmet(request); len(unmet) > 0 {
				t.Errorf("the patched object has unmet defaults: %v", unmet)
			}
		})
	}
}

// A Pod that a claim borrows is judged as its Sandbox will be: hardened.
func TestHardenSetsWhatOperationsAdd(t *testing.T) {
	object := inPod(`{"containers": [{"resources": {"requests": {"memory": "2Gi"}}}], "initContainers": [{"securityContext": null}]}`)
	request := everything("Sandbox", object)
	want := podOf(apply(t, object, defaults.Operations(request)))
	got := podOf(decode(object))
	defaults.Harden(got, request.Tier, request.RuntimeClasses, request.FreeClasses)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Harden() (-Operations +Harden):\n%s", diff)
	}
}

func podOf(object map[string]any) map[string]any {
	spec, _ := object["spec"].(map[string]any)
	pod, _ := spec["podTemplate"].(map[string]any)
	return pod
}
