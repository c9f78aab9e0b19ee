// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// onlyPodSecurity returns the findings of the two rules.
func onlyPodSecurity(d engine.Decision) []engine.Finding {
	var found []engine.Finding
	for _, f := range d.Findings {
		if strings.HasPrefix(f.Rule, "pss-") {
			found = append(found, f)
		}
	}
	return found
}

// tier is the JSON of a tier's Pod Security.
func tier(deny, warn, version string) map[string]any {
	return map[string]any{"podSecurity": map[string]any{"deny": deny, "warn": warn, "version": version}}
}

const (
	base = "spec.podTemplate.spec"
	main = base + ".containers[0]"
)

func TestPodSecurityNamesTheFieldOfEachCheck(t *testing.T) {
	container := func(fields string) string { return "containers: [{name: a, image: 'a:1', " + fields + "}]" }
	baseline := func(field, value string) []brief { return []brief{{engine.RulePSSBaseline, "Deny", field, value}} }
	cases := map[string]struct {
		changes []string
		want    []brief
	}{
		"Privileged": {[]string{container("securityContext: {privileged: true}")}, baseline(main+".securityContext.privileged", "true")},
		"Privileged init container": {
			[]string{"initContainers: [{name: a, image: a}, {name: b, image: b, securityContext: {privileged: true}}]"},
			baseline(base+".initContainers[1].securityContext.privileged", "true"),
		},
		"Privileged ephemeral container": {
			[]string{"ephemeralContainers: [{name: a, image: a, securityContext: {privileged: true}}]"},
			baseline(base+".ephemeralContainers[0].securityContext.privileged", "true"),
		},
		"Host namespaces": {[]string{"hostIPC: true", "hostPID: false"}, baseline(base+".hostIPC", "true")},
		"Host path": {
			[]string{"volumes: [{name: a, emptyDir: {}}, {name: b, hostPath: {path: /}}]"},
			baseline(base+".volumes[1].hostPath", "hostPath"),
		},
		"Host path behind another source": {
			[]string{"volumes: [{name: b, configMap: {name: a}, hostPath: {path: /}}]"}, baseline(base+".volumes[0].hostPath", "hostPath"),
		},
		"Host port": {[]string{container("ports: [{containerPort: 1, hostPort: 2}]")}, baseline(main+".ports[0].hostPort", "2")},
		"Capabilities": {
			[]string{container("securityContext: {capabilities: {add: [SYS_ADMIN]}}")},
			baseline(main+".securityContext.capabilities.add[0]", "SYS_ADMIN"),
		},
		"Proc mount": {
			[]string{container("securityContext: {procMount: Unmasked}")}, baseline(main+".securityContext.procMount", "Unmasked"),
		},
		"Proc mount with user namespaces": {
			[]string{"hostUsers: false", container("securityContext: {procMount: Unmasked}")},
			baseline(main+".securityContext.procMount", "Unmasked"),
		},
		"Seccomp of the Pod": {
			[]string{"securityContext: {seccompProfile: {type: Unconfined}}"}, baseline(base+".securityContext.seccompProfile.type", "Unconfined"),
		},
		"Seccomp of a container": {
			[]string{container("securityContext: {seccompProfile: {type: Unconfined}}")},
			baseline(main+".securityContext.seccompProfile.type", "Unconfined"),
		},
		"AppArmor": {
			[]string{"securityContext: {appArmorProfile: {type: Unconfined}}"}, baseline(base+".securityContext.appArmorProfile.type", "Unconfined"),
		},
		"SELinux": {
			[]string{"securityContext: {seLinuxOptions: {user: system_u}}"}, baseline(base+".securityContext.seLinuxOptions.user", "system_u"),
		},
		"Sysctls": {
			[]string{"securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}"},
			baseline(base+".securityContext.sysctls[0]", `{"name":"kernel.msgmax","value":"1"}`),
		},
		"Host process": {
			[]string{"securityContext: {windowsOptions: {hostProcess: true}}"},
			baseline(base+".securityContext.windowsOptions.hostProcess", "true"),
		},
		"Probe of another host": {
			[]string{container("livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}")},
			baseline(main+".livenessProbe.httpGet.host", "169.254.169.254"),
		},
		"Host ports among others": {
			[]string{container("ports: [{containerPort: 1}, {containerPort: 2, hostPort: 2}, {containerPort: 3, hostPort: 3}]")},
			[]brief{{engine.RulePSSBaseline, "Deny", main + ".ports[1].hostPort", "2"}, {engine.RulePSSBaseline, "Deny", main + ".ports[2].hostPort", "3"}},
		},
		"A capability beside a harmless one, in an init container": {
			[]string{"initContainers: [{name: a, image: a, securityContext: {capabilities: {add: [CHOWN, SYS_ADMIN]}}}]"},
			baseline(base+".initContainers[0].securityContext.capabilities.add[1]", "SYS_ADMIN"),
		},
		"A sysctl beside a safe one": {
			[]string{"securityContext: {sysctls: [{name: kernel.shm_rmid_forced, value: '1'}, {name: kernel.msgmax, value: '1'}]}"},
			baseline(base+".securityContext.sysctls[1]", `{"name":"kernel.msgmax","value":"1"}`),
		},
		"SELinux of a container, with a type that is allowed": {
			[]string{container("securityContext: {seLinuxOptions: {type: container_t, role: r, level: s0}}")},
			baseline(main+".securityContext.seLinuxOptions.role", "r"),
		},
		"A hook of another host beside a probe of its own": {
			[]string{container("readinessProbe: {tcpSocket: {host: '', port: 1}}, lifecycle: {preStop: {httpGet: {host: a, port: 1}}}")},
			baseline(main+".lifecycle.preStop.httpGet.host", "a"),
		},
		"Nothing": {},
	}
	e := loaded(t, "")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := requestOf(t, tc.changes...)
			in.Tier = tier("baseline", "", "v1.37")
			found := onlyPodSecurity(e.Evaluate(context.Background(), in))
			if diff := cmp.Diff(tc.want, briefs(found)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			for _, f := range found {
				if f.Remediation == "" || f.Remediation == "Change the field as the finding says." || f.Message == "" {
					t.Errorf("no remedy of its own: %s", show(t, f))
				}
			}
		})
	}
}

func TestPodSecurityRestricted(t *testing.T) {
	hardened := "containers: [{name: a, image: 'a:1', securityContext: " +
		"{allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}}]"
	restricted := func(field, value string) brief { return brief{engine.RulePSSRestricted, "Deny", field, value} }
	cases := map[string]struct {
		changes []string
		want    []brief
	}{
		"A hardened container passes": {changes: []string{hardened}},
		"Everything is missing": {
			changes: []string{"containers: [{name: a, image: 'a:1'}]"},
			want: []brief{
				restricted(main+".securityContext.allowPrivilegeEscalation", ""),
				restricted(main+".securityContext.capabilities.drop", ""),
				restricted(main+".securityContext.runAsNonRoot", ""),
				restricted(main+".securityContext.seccompProfile.type", ""),
			},
		},
		"Root in a user namespace": {
			changes: []string{hardened, "hostUsers: false", "securityContext: {runAsUser: 0}"},
			want:    []brief{restricted(base+".securityContext.runAsUser", "0")},
		},
		"A volume type": {
			changes: []string{hardened, "volumes: [{name: a, nfs: {server: a, path: /}}]"},
			want:    []brief{restricted(base+".volumes[0].nfs", "nfs")},
		},
		"A hostPath is reported once": {
			changes: []string{hardened, "volumes: [{name: a, hostPath: {path: /}}]"},
			want:    []brief{{engine.RulePSSBaseline, "Deny", base + ".volumes[0].hostPath", "hostPath"}},
		},
		"Windows does not switch checks off": {
			changes: []string{
				"os: {name: windows}",
				"containers: [{name: a, image: 'a:1', securityContext: {runAsNonRoot: true, capabilities: {add: [SYS_ADMIN], drop: [ALL]}, " +
					"allowPrivilegeEscalation: false, seccompProfile: {type: RuntimeDefault}}}]",
			},
			want: []brief{
				{engine.RulePSSBaseline, "Deny", main + ".securityContext.capabilities.add[0]", "SYS_ADMIN"},
			},
		},
		"A capability is added, and not all are dropped": {
			changes: []string{strings.Replace(hardened, "drop: [ALL]", "add: [NET_BIND_SERVICE, CHOWN], drop: [KILL]", 1)},
			want: []brief{
				restricted(main+".securityContext.capabilities.add[1]", "CHOWN"),
				restricted(main+".securityContext.capabilities.drop", `["KILL"]`),
			},
		},
		"A capability is added, and all are dropped": {
			changes: []string{strings.Replace(hardened, "drop: [ALL]", "add: [NET_BIND_SERVICE, CHOWN], drop: [ALL]", 1)},
			want:    []brief{restricted(main+".securityContext.capabilities.add[1]", "CHOWN")},
		},
		"Two sources of a volume": {
			changes: []string{hardened, "volumes: [{name: b, configMap: {name: a}, hostPath: {path: /}}]"},
			want:    []brief{{engine.RulePSSBaseline, "Deny", base + ".volumes[0].hostPath", "hostPath"}},
		},
		"runAsNonRoot false for the Pod": {
			changes: []string{hardened, "securityContext: {runAsNonRoot: false}"},
			want:    []brief{restricted(base+".securityContext.runAsNonRoot", "false")},
		},
	}
	e := loaded(t, "")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := requestOf(t, tc.changes...)
			in.Tier = tier("restricted", "", "v1.37")
			if diff := cmp.Diff(tc.want, briefs(onlyPodSecurity(e.Evaluate(context.Background(), in)))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatDecidesOnPodSecurity(t *testing.T) {
	enforce := func(level, version string) map[string]string {
		labels := map[string]string{"pod-security.kubernetes.io/enforce": level}
		if version != "" {
			labels["pod-security.kubernetes.io/enforce-version"] = version
		}
		return labels
	}
	// The Pod breaks one check of each level.
	cases := map[string]struct {
		tier          map[string]any
		labels        map[string]string
		configuration string
		// want maps rule to enforcement.
		want map[string]string
	}{
		"A tier that denies baseline and warns of restricted": {
			tier: tier("baseline", "restricted", "v1.37"), want: map[string]string{"pss-baseline": "Deny", "pss-restricted": "Warn"},
		},
		"A tier that denies restricted": {
			tier: tier("restricted", "", "v1.37"), want: map[string]string{"pss-baseline": "Deny", "pss-restricted": "Deny"},
		},
		"A tier that only warns": {
			tier: tier("privileged", "baseline", "v1.37"), want: map[string]string{"pss-baseline": "Warn"},
		},
		"A tier that asks for nothing": {tier: tier("privileged", "", "v1.37"), want: map[string]string{}},
		"No tier":                      {want: map[string]string{"pss-baseline": "Deny", "pss-restricted": "Warn"}},
		"A level that cannot be read":  {tier: tier("basline", "", "v1.37"), want: map[string]string{"pss-baseline": "Deny", "pss-restricted": "Deny"}},
		"The label raises":             {tier: tier("privileged", "", "v1.37"), labels: enforce("restricted", ""), want: map[string]string{"pss-baseline": "Deny", "pss-restricted": "Deny"}},
		"The label does not lower":     {tier: tier("baseline", "", "v1.37"), labels: enforce("privileged", ""), want: map[string]string{"pss-baseline": "Deny"}},
		"The label raises one of two":  {tier: tier("privileged", "restricted", "v1.37"), labels: enforce("baseline", ""), want: map[string]string{"pss-baseline": "Deny", "pss-restricted": "Warn"}},
		"The label that warns": {
			tier:   tier("privileged", "", "v1.37"),
			labels: map[string]string{"pod-security.kubernetes.io/warn": "restricted"}, want: map[string]string{"pss-baseline": "Warn", "pss-restricted": "Warn"},
		},
		"The label that records": {
			tier:   tier("baseline", "", "v1.37"),
			labels: map[string]string{"pod-security.kubernetes.io/audit": "restricted"}, want: map[string]string{"pss-baseline": "Deny", "pss-restricted": "Audit"},
		},
		"The label that warns does not weaken": {
			tier:   tier("baseline", "", "v1.37"),
			labels: map[string]string{"pod-security.kubernetes.io/warn": "baseline"}, want: map[string]string{"pss-baseline": "Deny"},
		},
		"A label that cannot be read":      {tier: tier("privileged", "", "v1.37"), labels: enforce("strict", ""), want: map[string]string{"pss-baseline": "Deny", "pss-restricted": "Deny"}},
		"A newer version is the latest":    {tier: tier("privileged", "", "v1.37"), labels: enforce("baseline", "v1.99"), want: map[string]string{"pss-baseline": "Deny"}},
		"An older version knows less":      {tier: tier("baseline", "", "v1.30"), want: map[string]string{}},
		"The version of the label":         {tier: tier("baseline", "", "v1.30"), labels: enforce("baseline", "v1.34"), want: map[string]string{"pss-baseline": "Deny"}},
		"The configuration raises":         {tier: tier("baseline", "", "v1.37"), configuration: "rules: {pss-restricted: {enforcement: Deny}}", want: map[string]string{"pss-baseline": "Deny", "pss-restricted": "Deny"}},
		"The configuration lowers no tier": {tier: tier("baseline", "", "v1.37"), configuration: "rules: {pss-baseline: {enforcement: Audit}}", want: map[string]string{"pss-baseline": "Deny"}},
		"The configuration without a tier": {configuration: "rules: {pss-baseline: {enforcement: Audit}, pss-restricted: {enforcement: 'Off'}}", want: map[string]string{"pss-baseline": "Audit"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// The check of probes exists from 1.34, that of privilege escalation from 1.8.
			in := requestOf(t, "containers: [{name: a, image: 'a:1', readinessProbe: {tcpSocket: {host: a, port: 1}}}]")
			in.Tier, in.Namespace.Labels = tc.tier, tc.labels
			got := map[string]string{}
			for _, f := range onlyPodSecurity(loaded(t, tc.configuration).Evaluate(context.Background(), in)) {
				if other, ok := got[f.Rule]; ok && other != string(f.Enforcement) {
					t.Errorf("%s has two enforcements: %s", f.Rule, show(t, f))
				}
				got[f.Rule] = string(f.Enforcement)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("enforcements (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPodThatCannotBeReadIsDenied(t *testing.T) {
	for name, change := range map[string]string{
		"Containers as an object":    "containers: {a: {name: a}}",
		"A context as text":          "securityContext: privileged",
		"A boolean as text":          "hostNetwork: 'true'",
		"A quantity that is none":    "containers: [{name: a, resources: {limits: {cpu: lots}}}]",
		"A container that is a list": "containers: [[]]",
		"A probe as text":            "containers: [{name: a, livenessProbe: often}]",
		"A host of a hook as number": "containers: [{name: a, lifecycle: {preStop: {httpGet: {host: 1}}}}]",
		"A port as text":             "containers: [{name: a, ports: [{hostPort: http}]}]",
		"Volumes as an object":       "volumes: {a: {emptyDir: {}}}",
		"A volume as text":           "volumes: [a]",
		"A volume's name as number":  "volumes: [{name: 1, emptyDir: {}}]",
		"A source as text":           "volumes: [{name: a, hostPath: /}]",
		"A source with a bad field":  "volumes: [{name: a, hostPath: {path: [/]}}]",
		"A size that is none":        "volumes: [{name: a, emptyDir: {sizeLimit: lots}}]",
		"A size that takes minutes":  "volumes: [{name: a, emptyDir: {sizeLimit: '1e-100000000'}}]",
		"An amount that does":        "containers: [{name: a, resources: {limits: {cpu: '1e-100000000'}}}]",
	} {
		t.Run(name, func(t *testing.T) {
			found := onlyPodSecurity(loaded(t, "").Evaluate(context.Background(), requestOf(t, change)))
			if len(found) != 1 || !found[0].Failure || found[0].Enforcement != engine.Deny {
				t.Errorf("want one failure that denies, got %s", show(t, found))
			}
		})
	}
	in := requestOf(t)
	in.Pod = map[string]any{"spec": "x"}
	if found := onlyPodSecurity(loaded(t, "").Evaluate(context.Background(), in)); len(found) != 1 || !found[0].Failure {
		t.Errorf("a spec that is text: %s", show(t, found))
	}
}

func TestPodSecurityReadsTheAnnotationsOfTheTemplate(t *testing.T) {
	in := requestOf(t)
	key := "container.apparmor.security.beta.kubernetes.io/workspace"
	in.Object["metadata"].(map[string]any)["annotations"] = map[string]any{key: "unconfined"}
	e := loaded(t, "")
	if found := onlyPodSecurity(e.Evaluate(context.Background(), in)); len(found) != 0 {
		t.Errorf("annotations of the Sandbox count: %s", show(t, found))
	}
	in.Pod["metadata"].(map[string]any)["annotations"] = map[string]any{key: "unconfined"}
	if found := onlyPodSecurity(e.Evaluate(context.Background(), in)); len(found) != 1 || found[0].Failure ||
		!strings.HasSuffix(found[0].Field, "podTemplate.metadata.annotations["+key+"]") || found[0].Value != "unconfined" {
		t.Errorf("annotations of the template do not count, or not as such: %s", show(t, found))
	}
	delete(in.Pod, "metadata")
	if found := onlyPodSecurity(e.Evaluate(context.Background(), in)); len(found) != 0 {
		t.Errorf("a Pod without metadata: %s", show(t, found))
	}
}

// What cannot be judged does what the strictest demand asks for, and nothing where nobody asks.
func TestAPodThatCannotBeJudgedIsAFindingOfTheStrictestDemand(t *testing.T) {
	cases := map[string]struct {
		in    func(engine.Input) engine.Input
		want  []brief
		rules []string
	}{
		"denied": {
			in:   func(in engine.Input) engine.Input { in.Tier = tier("baseline", "restricted", "v1.37"); return in },
			want: []brief{{engine.RulePSSBaseline, "Deny", "", ""}}, rules: []string{engine.RulePSSBaseline, engine.RulePSSRestricted},
		},
		"warned of": {
			in:   func(in engine.Input) engine.Input { in.Tier = tier("", "baseline", "v1.37"); return in },
			want: []brief{{engine.RulePSSBaseline, "Warn", "", ""}}, rules: []string{engine.RulePSSBaseline},
		},
		"nobody asks": {
			in: func(in engine.Input) engine.Input { in.Tier = tier("", "", "v1.37"); return in },
		},
		"a claim without a template": {
			in: func(in engine.Input) engine.Input { in.Kind, in.Pod = engine.KindSandboxClaim, nil; return in },
		},
	}
	check := func(t *testing.T, d engine.Decision, want []brief, rules []string) {
		t.Helper()
		if diff := cmp.Diff(want, briefs(onlyPodSecurity(d))); diff != "" {
			t.Errorf("findings (-want +got):\n%s", diff)
		}
		judged := slices.DeleteFunc(slices.Clone(d.Evaluated), func(id string) bool { return !strings.HasPrefix(id, "pss-") })
		if diff := cmp.Diff(rules, judged, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("rules (-want +got):\n%s", diff)
		}
	}
	free := loaded(t, withoutLibrary(t))
	for name, tc := range cases {
		t.Run(name+", all places are taken", func(t *testing.T) {
			within(t, func(t *testing.T, h *engine.Hold) {
				t.Helper()
				e := newEngine(t, engine.WithConcurrency(1))
				load(t, e, withoutLibrary(t), held())
				answered := make(chan engine.Decision)
				go func() { answered <- e.Evaluate(t.Context(), requestOf(t)) }()
				synctest.Wait()
				check(t, e.Evaluate(t.Context(), tc.in(requestOf(t))), tc.want, tc.rules)
				h.Release()
				<-answered
			})
		})
		t.Run(name+", it cannot be read", func(t *testing.T) {
			check(t, free.Evaluate(t.Context(), tc.in(requestOf(t, "hostPID: yes please"))), tc.want, tc.rules)
		})
	}
}
