// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ceilings_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/ceilings"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// strict is a tier that requires everything.
func strict() config.Tier {
	amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("4Gi")}
	return config.Tier{
		RuntimeClass: config.RuntimeClass{Classes: []config.Class{{Name: "kata", HostUsers: new(false)}, {Name: "gvisor"}}},
		Hardening: config.Hardening{
			Token: config.Require, ServiceLinks: config.Require, UserNamespaces: config.Require, Seccomp: config.Require,
			PrivilegeEscalation: config.Require, Capabilities: config.Require, RootFilesystem: config.Require,
		},
		DropCapabilities: []string{"NET_RAW", "SYS_CHROOT"}, ServiceAccounts: []string{"agent", "builder"}, Resources: config.Resources{Max: amounts, PodLevel: true},
	}
}

// sound is a Pod that keeps to it.
const sound = `
automountServiceAccountToken: false
enableServiceLinks: false
runtimeClassName: kata
hostUsers: false
serviceAccountName: agent
securityContext: {seccompProfile: {type: RuntimeDefault}}
containers:
- name: main
  resources: {limits: {cpu: 1, memory: 1Gi}}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [NET_RAW, SYS_CHROOT], add: [CHOWN]}
`

// pod is a sound Pod with these fields instead of its own.
func pod(t *testing.T, fields string) *corev1.PodSpec {
	t.Helper()
	var merged, changes map[string]any
	for text, into := range map[string]*map[string]any{sound: &merged, fields: &changes} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	maps.Copy(merged, changes)
	text, err := yaml.Marshal(merged)
	if err != nil {
		t.Fatal(err)
	}
	var spec corev1.PodSpec
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		t.Fatal(err)
	}
	return &spec
}

const (
	secure = `securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}`
	// main is a sound container.
	main = `{name: main, resources: {limits: {cpu: 1, memory: 1Gi}}, ` + secure + `}`
)

// containers is a list of a sound container and a second one.
func containers(list, second string) string {
	return list + ": [" + main + ", " + second + "]"
}

// with is a container with these limits and this security context.
func with(limits, security string) string {
	return "{name: b, resources: {limits: " + limits + "}, securityContext: {" + security + "}}"
}

const enough = "{cpu: 1, memory: 1Gi}"

func TestOfPod(t *testing.T) {
	const hard = "allowPrivilegeEscalation: false, readOnlyRootFilesystem: true"
	cases := map[string]struct {
		fields string
		// want are rule, field and value of the breaches.
		want []string
	}{
		"a sound Pod":                               {``, nil},
		"a token":                                   {`automountServiceAccountToken: true`, []string{"tier-hardening automountServiceAccountToken (true)"}},
		"a token left open is never mounted":        {`automountServiceAccountToken: null`, nil},
		"service links":                             {`enableServiceLinks: true`, []string{"tier-hardening enableServiceLinks (true)"}},
		"service links left open":                   {`enableServiceLinks: null`, []string{"tier-hardening enableServiceLinks ()"}},
		"the node's users":                          {`hostUsers: true`, []string{"tier-hardening hostUsers (true)"}},
		"the node's users by saying nothing":        {`hostUsers: null`, []string{"tier-hardening hostUsers ()"}},
		"another class that has no user namespaces": {`{runtimeClassName: gvisor, hostUsers: null}`, nil},
		"no class at all":                           {`{runtimeClassName: null, hostUsers: true}`, nil},
		"seccomp switched off":                      {`securityContext: {seccompProfile: {type: Unconfined}}`, []string{"tier-hardening securityContext.seccompProfile.type (Unconfined)"}},
		"no seccomp":                                {`securityContext: null`, []string{"tier-hardening securityContext.seccompProfile ()"}},
		"a seccomp profile of the node's":           {`securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}`, nil},
		"seccomp switched off in one container": {
			containers("containers", with(enough, hard+", capabilities: {drop: [ALL]}, seccompProfile: {type: Unconfined}")),
			[]string{"tier-hardening containers[1].securityContext.seccompProfile.type (Unconfined)"},
		},
		"each container with a profile of its own": {
			"{securityContext: null, containers: [" + with(enough, hard+", capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}") + "]}", nil,
		},
		"a container that says nothing": {containers("containers", with(enough, "")), []string{
			"tier-hardening containers[1].securityContext.allowPrivilegeEscalation ()",
			"tier-hardening containers[1].securityContext.capabilities.drop ()",
			"tier-hardening containers[1].securityContext.readOnlyRootFilesystem ()",
		}},
		"an init container that may gain rights": {
			containers("initContainers", with(enough, "allowPrivilegeEscalation: true, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}")),
			[]string{"tier-hardening initContainers[1].securityContext.allowPrivilegeEscalation (true)"},
		},
		"a sidecar that writes its root": {
			containers("initContainers", "{name: b, restartPolicy: Always, resources: {limits: "+enough+"}, securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: false, capabilities: {drop: [ALL]}}}"),
			[]string{"tier-hardening initContainers[1].securityContext.readOnlyRootFilesystem (false)"},
		},
		"an ephemeral container, which has no resources": {
			"ephemeralContainers: [{name: b, securityContext: {" + hard + ", capabilities: {drop: [KILL]}}}]",
			[]string{"tier-hardening ephemeralContainers[0].securityContext.capabilities.drop (KILL)"},
		},
		"capabilities written in another way": {containers("containers", with(enough, hard+", capabilities: {drop: [cap_net_raw, Sys_Chroot]}")), nil},
		"one capability of the list":          {containers("containers", with(enough, hard+", capabilities: {drop: [NET_RAW]}")), []string{"tier-hardening containers[1].securityContext.capabilities.drop (NET_RAW)"}},
		"a dropped capability added again": {
			containers("containers", with(enough, hard+", capabilities: {drop: [ALL], add: [CHOWN, CAP_NET_RAW, all]}")), []string{
				"tier-hardening containers[1].securityContext.capabilities.add[1] (CAP_NET_RAW)",
				"tier-hardening containers[1].securityContext.capabilities.add[2] (all)",
			},
		},
		"another ServiceAccount":             {`serviceAccountName: admin`, []string{"tier-service-account serviceAccountName (admin)"}},
		"no ServiceAccount, which is one":    {`serviceAccountName: null`, []string{"tier-service-account serviceAccountName ()"}},
		"a listed one by its old name":       {`{serviceAccountName: null, serviceAccount: builder}`, nil},
		"another by its old name":            {`{serviceAccountName: null, serviceAccount: admin}`, []string{"tier-service-account serviceAccount (admin)"}},
		"two names, one of which is allowed": {`{serviceAccountName: agent, serviceAccount: admin}`, []string{"tier-service-account serviceAccount (admin)"}},
		"a container without limits": {containers("containers", with("{}", hard+", capabilities: {drop: [ALL]}")), []string{
			"tier-resources containers[1].resources.limits[cpu] ()", "tier-resources containers[1].resources.limits[memory] ()",
		}},
		"limits of zero, which are none": {containers("containers", with("{cpu: 0, memory: 1Gi}", hard+", capabilities: {drop: [ALL]}")), []string{"tier-resources containers[1].resources.limits[cpu] ()"}},
		"a negative limit offsets none":  {containers("containers", with("{cpu: -3, memory: 1Gi}", hard+", capabilities: {drop: [ALL]}")), []string{"tier-resources containers[1].resources.limits[cpu] (-3)"}},
		"all that the tier gives":        {containers("containers", with("{cpu: 3, memory: 3Gi}", hard+", capabilities: {drop: [ALL]}")), nil},
		"more in all":                    {containers("containers", with("{cpu: 3001m, memory: 3Gi}", hard+", capabilities: {drop: [ALL]}")), []string{"tier-resources containers (4001m)"}},
		"more of everything": {containers("containers", with("{cpu: 4, memory: 4Gi}", hard+", capabilities: {drop: [ALL]}")), []string{
			"tier-resources containers (5)", "tier-resources containers (5Gi)",
		}},
		"an init container runs before the others": {containers("initContainers", with("{cpu: 4, memory: 4Gi}", hard+", capabilities: {drop: [ALL]}")), nil},
		"a sidecar runs beside them": {
			containers("initContainers", "{name: b, restartPolicy: Always, resources: {limits: {cpu: 4, memory: 1Gi}}, "+secure+"}"),
			[]string{"tier-resources containers (5)"},
		},
		"a limit of the whole Pod": {"{resources: {limits: {cpu: 4, memory: 4Gi}}, containers: [{name: a, " + secure + "}]}", nil},
		"too much for the whole Pod": {
			"{resources: {limits: {cpu: 5, memory: 4Gi}}, containers: [{name: a, " + secure + "}]}", []string{"tier-resources resources.limits[cpu] (5)"},
		},
		"a Pod that calls itself Windows": {"{os: {name: windows}, securityContext: null}", []string{"tier-hardening securityContext.seccompProfile ()"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, breach := range ceilings.OfPod(pod(t, tc.fields), field.NewPath("spec"), strict()) {
				got = append(got, fmt.Sprintf("%s %s (%v)", breach.Rule, breach.Field[len("spec."):], breach.BadValue))
				if breach.Detail == "" || breach.Remedy == "" {
					t.Errorf("%s says neither what is wrong nor what to do: %q, %q", breach.Field, breach.Detail, breach.Remedy)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("breaches (-want +got):\n%s", diff)
			}
		})
	}
}

// Where everything is dropped, only the capability that Pod Security's restricted level
// allows may come back.
func TestWhereEverythingIsDropped(t *testing.T) {
	tier := config.Tier{DropCapabilities: []string{"ALL"}, Hardening: config.Hardening{Capabilities: config.Require}}
	spec := &corev1.PodSpec{Containers: []corev1.Container{{SecurityContext: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{
		Drop: []corev1.Capability{"NET_RAW"}, Add: []corev1.Capability{"NET_BIND_SERVICE", "CHOWN"},
	}}}}}
	var got []string
	for _, breach := range ceilings.OfPod(spec, field.NewPath("spec"), tier) {
		got = append(got, breach.Field+": "+breach.Remedy)
	}
	want := []string{
		"spec.containers[0].securityContext.capabilities.drop: Add ALL to the list.",
		"spec.containers[0].securityContext.capabilities.add[1]: Remove it from the list.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
}

// A cluster may start a Pod without the amounts that it has as a whole, or with them: both have to do.
func TestWhereAmountsOfAWholePodMayBeDropped(t *testing.T) {
	tier := strict()
	tier.Resources.PodLevel = false
	for name, tc := range map[string]struct {
		fields string
		want   []string
	}{
		"a limit of the whole Pod alone": {
			"{resources: {limits: {cpu: 4, memory: 4Gi}}, containers: [{name: a, " + secure + "}]}",
			[]string{"spec.containers[0].resources.limits[cpu]", "spec.containers[0].resources.limits[memory]"},
		},
		"too much of the whole Pod": {
			"{resources: {requests: {cpu: 100}, limits: {cpu: 100}}, containers: [" + main + "]}", []string{"spec.resources.limits[cpu]"},
		},
		"too much of the containers together": {
			"{resources: {limits: {cpu: 4}}, containers: [{name: b, resources: {limits: {cpu: 3, memory: 1Gi}}, " + secure + "}, {name: c, resources: {limits: {cpu: 3, memory: 1Gi}}, " + secure + "}]}",
			[]string{"spec.containers"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, breach := range ceilings.OfPod(pod(t, tc.fields), field.NewPath("spec"), tier) {
				if breach.Rule == ceilings.RuleResources {
					got = append(got, breach.Field)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("breaches (-want +got):\n%s", diff)
			}
		})
	}
}

// Kubernetes knows no scratch space of a whole Pod.
func TestScratchSpaceIsBoundedByContainer(t *testing.T) {
	tier := config.Tier{Resources: config.Resources{
		PodLevel: true, Max: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("4Gi")},
	}}
	spec := pod(t, "{resources: {limits: {ephemeral-storage: 1Gi}}, containers: [{name: a}]}")
	breaches := ceilings.OfPod(spec, field.NewPath("spec"), tier)
	if len(breaches) != 1 || breaches[0].Field != "spec.containers[0].resources.limits[ephemeral-storage]" {
		t.Errorf("breaches are %+v, want one of the container", breaches)
	}
}

// A tier that requires nothing has no ceilings, whatever a Pod asks for.
func TestATierThatRequiresNothing(t *testing.T) {
	spec := pod(t, "{automountServiceAccountToken: true, hostUsers: true, serviceAccountName: admin, containers: [{name: a, securityContext: {privileged: true}}]}")
	tier := config.Tier{DropCapabilities: []string{"ALL"}, Hardening: config.Hardening{Token: config.Default, Seccomp: config.Open}}
	if got := ceilings.OfPod(spec, field.NewPath("spec"), tier); len(got) > 0 {
		t.Errorf("breaches %v, want none", got)
	}
}
