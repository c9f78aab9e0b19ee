// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	verdicts "github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// backedUp are the rules of the library that hold without the webhook. No exemption relaxes them: what it let through
// nobody would run.
var backedUp = []string{
	"automount-token", "ephemeral-in-template", "host-namespaces", "host-port", "hostpath", "privileged", "projected-identity", "runtimeclass-required",
}

func TestNothingRelaxesARuleThatIsBackedUp(t *testing.T) {
	var floor []string
	for _, info := range rulesOf(t, render(t, install{})).Catalogue() {
		if info.Floor && !engine.IsNative(info.ID) {
			floor = append(floor, info.ID)
		}
	}
	if diff := cmp.Diff(backedUp, floor); diff != "" {
		t.Errorf("rules with floor: true (-want those that are backed up +got):\n%s", diff)
	}
}

// podChanges are what the rules and the backstop are both asked about.
var podChanges = map[string]func(spec, container map[string]any){
	"nothing wrong":       func(_, _ map[string]any) {},
	"privileged":          func(_, c map[string]any) { c["securityContext"] = map[string]any{"privileged": true} },
	"not privileged":      func(_, c map[string]any) { c["securityContext"] = map[string]any{"privileged": false} },
	"no security context": func(_, c map[string]any) { delete(c, "securityContext") },
	"a privileged init container": func(s, _ map[string]any) {
		s["initContainers"] = []any{
			map[string]any{"name": "a", "image": "a:1"},
			map[string]any{"name": "b", "image": "b:1", "securityContext": map[string]any{"privileged": true}},
		}
	},
	"an ephemeral container": func(s, _ map[string]any) {
		s["ephemeralContainers"] = []any{map[string]any{"name": "e", "image": "e:1"}}
	},
	"a privileged ephemeral container": func(s, _ map[string]any) {
		s["ephemeralContainers"] = []any{map[string]any{"name": "e", "image": "e:1", "securityContext": map[string]any{"privileged": true}}}
	},
	"no ephemeral container":   func(s, _ map[string]any) { s["ephemeralContainers"] = []any{} },
	"the node's network":       func(s, _ map[string]any) { s["hostNetwork"] = true },
	"the node's processes":     func(s, _ map[string]any) { s["hostPID"] = true },
	"the node's IPC":           func(s, _ map[string]any) { s["hostIPC"] = true },
	"none of the node's":       func(s, _ map[string]any) { s["hostNetwork"], s["hostPID"], s["hostIPC"] = false, false, false },
	"all of the node's":        func(s, _ map[string]any) { s["hostNetwork"], s["hostPID"], s["hostIPC"] = true, true, true },
	"a path of the node":       volume("hostPath", map[string]any{"path": "/etc"}),
	"another path of the node": volume("hostPath", map[string]any{"path": "/"}),
	"a path without its name":  volume("hostPath", map[string]any{}),
	"a path that is made":      volume("hostPath", map[string]any{"path": "/etc", "type": "DirectoryOrCreate"}),
	"an emptyDir":              volume("emptyDir", map[string]any{}),
	"a projected ConfigMap":    projected("configMap", map[string]any{"name": "a"}),
	"a projected token":        projected("serviceAccountToken", map[string]any{"path": "t"}),
	"a token of an audience":   projected("serviceAccountToken", map[string]any{"path": "t", "audience": "vault", "expirationSeconds": int64(600)}),
	"a long token of it":       projected("serviceAccountToken", map[string]any{"path": "t", "audience": "vault", "expirationSeconds": int64(86400)}),
	"a projected token twice": volume("projected", map[string]any{"sources": []any{
		map[string]any{"serviceAccountToken": map[string]any{"path": "t"}}, map[string]any{"serviceAccountToken": map[string]any{"path": "t"}},
	}}),
	"a token beside a ConfigMap": volume("projected", map[string]any{"sources": []any{
		map[string]any{"configMap": map[string]any{"name": "a"}}, map[string]any{"serviceAccountToken": map[string]any{"path": "t"}},
	}}),
	"a projected trust bundle": projected("clusterTrustBundle", map[string]any{"path": "t"}),
	"a projected certificate":  projected("podCertificate", map[string]any{"keyType": "ED25519"}),
	"a port of the node":       portList(map[string]any{"containerPort": int64(80)}, map[string]any{"containerPort": int64(81), "hostPort": int64(8081)}),
	"it on one address":        portList(map[string]any{"containerPort": int64(81), "hostPort": int64(8081), "hostIP": "192.0.2.1"}),
	"it on the loopback":       portList(map[string]any{"containerPort": int64(81), "hostPort": int64(8081), "hostIP": "127.0.0.1"}),
	"it over UDP":              portList(map[string]any{"containerPort": int64(81), "hostPort": int64(8081), "protocol": "UDP"}),
	"another port of the node": portList(map[string]any{"containerPort": int64(81), "hostPort": int64(8082)}),
	"it under another number":  portList(map[string]any{"containerPort": int64(91), "hostPort": int64(8081)}),
	"two ports of the node": portList(map[string]any{"containerPort": int64(81), "hostPort": int64(8081)},
		map[string]any{"containerPort": int64(82), "hostPort": int64(8082)}),
	"one port of it twice": portList(map[string]any{"containerPort": int64(81), "hostPort": int64(8081)},
		map[string]any{"containerPort": int64(82), "hostPort": int64(8081)}),
	"a named port of the node": portList(map[string]any{"name": "web", "containerPort": int64(81), "hostPort": int64(8081)}),
	"a port of its own":        portList(map[string]any{"containerPort": int64(80), "hostPort": int64(0)}),
	"a token":                  func(s, _ map[string]any) { s["automountServiceAccountToken"] = true },
	"a token by default":       func(s, _ map[string]any) { delete(s, "automountServiceAccountToken") },
	"a token of a robot":       func(s, _ map[string]any) { s["automountServiceAccountToken"], s["serviceAccountName"] = true, "robot" },
	"no RuntimeClass":          func(s, _ map[string]any) { delete(s, "runtimeClassName") },
	"another RuntimeClass":     func(s, _ map[string]any) { s["runtimeClassName"] = "runc" },
	"the other of the tier":    func(s, _ map[string]any) { s["runtimeClassName"] = "kata" },
	"several faults, all named": func(s, c map[string]any) {
		s["hostPID"], c["securityContext"] = true, map[string]any{"privileged": true}
	},
}

func volume(source string, value any) func(spec, container map[string]any) {
	return func(spec, _ map[string]any) {
		spec["volumes"] = []any{map[string]any{"name": "a", "emptyDir": map[string]any{}}, map[string]any{"name": "b", source: value}}
	}
}

func projected(source string, value any) func(spec, container map[string]any) {
	return volume("projected", map[string]any{"sources": []any{map[string]any{source: value}}})
}

func portList(list ...any) func(spec, container map[string]any) {
	return func(_, container map[string]any) { container["ports"] = list }
}

// The backstop and the rule of the same name never disagree, in any tier, whatever the
// values say of the rule.
func TestTheBackstopJudgesLikeTheRules(t *testing.T) {
	environments := map[string][]string{
		"the defaults": nil,
		"parameters": {
			"policies.rules.automount-token.parameters.allowServiceAccounts={robot}",
			"policies.rules.projected-identity.parameters.allowedAudiences={vault}",
			"policies.rules.runtimeclass-required.parameters.always=true",
		},
		"a rule that only warns": {"policies.rules.hostpath.enforcement=Warn", "policies.rules.host-port.enforcement=Audit"},
		"a rule that is off":     {`policies.rules.privileged.enforcement=Off`},
		"a floor": {
			"platform.tiers.standard.runtimeClass.floor=kata", "platform.tiers.standard.runtimeClass.classes={kata}",
			"platform.tiers.trusted.runtimeClass.floor=runc", "platform.runtimeClassOrder={kata,gvisor,runc}",
		},
		"a tier that requires gVisor": {"platform.tiers.standard.runtimeClass.required=true", "platform.tiers.standard.runtimeClass.classes={gvisor}"},
	}
	refused := map[string]bool{}
	for env, set := range environments {
		r := render(t, install{set: append([]string{"backstop.rules=Always"}, set...)})
		rules, policies := rulesOf(t, r), backstop(t, r)
		for name, change := range podChanges {
			for _, tier := range []string{"trusted", "standard", "restricted"} {
				t.Run(name+", tier "+tier+", "+env, func(t *testing.T) {
					spec := podOf(t, change)
					want := slices.DeleteFunc(judgeIn(t, rules, r, tier, spec), func(id string) bool { return !slices.Contains(backedUp, id) })
					got := refusals(t, policies, write{resource: "sandboxes.v1beta1.agents.x-k8s.io", object: sandboxOf(t, "Sandbox", spec), tier: tier})
					if diff := cmp.Diff(want, rulesOfRefusals(got), cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("refused by (-rules +backstop):\n%s", diff)
					}
					template := write{resource: "sandboxtemplates.v1beta1.extensions.agents.x-k8s.io", object: sandboxOf(t, "SandboxTemplate", spec), tier: tier}
					if diff := cmp.Diff(got, refusals(t, policies, template)); diff != "" {
						t.Errorf("a template is judged otherwise (-Sandbox +template):\n%s", diff)
					}
					for _, id := range want {
						refused[id] = true
					}
				})
			}
		}
	}
	for _, id := range backedUp {
		if !refused[id] {
			t.Errorf("no manifest breaks rule %s, so that nothing was compared", id)
		}
	}
}

// An update is excused by the backstop for what the webhook excuses it for, from every Pod
// of the table to every Pod of it with another image.
func TestTheBackstopHasTheRatchetOfTheWebhook(t *testing.T) {
	r := render(t, install{set: []string{"backstop.rules=Always"}})
	rules, policies := rulesOf(t, r), backstop(t, r)
	excused := map[string]bool{}
	for _, tier := range []string{"standard", "restricted"} {
		old, next, judged := map[string]string{}, map[string]string{}, map[string]verdicts.Judgement{}
		for name, change := range podChanges {
			spec := podOf(t, change)
			old[name], judged[name] = sandboxOf(t, "Sandbox", spec), denialsIn(t, rules, r, tier, spec)
			spec["containers"].([]any)[0].(map[string]any)["image"] = "python:3.13-slim"
			next[name] = sandboxOf(t, "Sandbox", spec)
		}
		for before := range podChanges {
			for after := range podChanges {
				t.Run("tier "+tier+", from "+before+" to "+after, func(t *testing.T) {
					brought, tolerated := verdicts.Ratchet(judged[after], judged[before], verdicts.ChangesSpec)
					got := refusals(t, policies, write{resource: kindResource, object: next[after], old: old[before], tier: tier})
					if diff := cmp.Diff(backedUpOf(brought), rulesOfRefusals(got), cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("refused by (-rules +backstop):\n%s", diff)
					}
					for _, id := range backedUpOf(tolerated) {
						excused[id] = true
					}
				})
			}
		}
	}
	for _, id := range backedUp {
		if !excused[id] {
			t.Errorf("no update keeps a fault against rule %s, so that nothing was compared", id)
		}
	}
}

// backedUpOf are the rules of findings that the backstop holds, sorted.
func backedUpOf(findings []engine.Finding) []string {
	var ids []string
	for _, finding := range findings {
		if slices.Contains(backedUp, finding.Rule) {
			ids = append(ids, finding.Rule)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func sandboxOf(t *testing.T, kind string, spec map[string]any) string {
	t.Helper()
	version := "agents.x-k8s.io/v1beta1"
	if kind != "Sandbox" {
		version = "extensions." + version
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "agent-workspace", "namespace": "tenant"},
		"spec": map[string]any{"podTemplate": map[string]any{"spec": spec}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A refusal says which field, which value, and what to do.
func TestRefusalsOfTheBackstopSayWhy(t *testing.T) {
	policies := backstop(t, render(t, install{set: []string{"backstop.rules=Always"}}))
	cases := map[string]struct{ change, want string }{
		"a container": {"a privileged init container", "privileged: spec.podTemplate.spec.initContainers[1].securityContext.privileged (true): "},
		"a volume":    {"a path of the node", "hostpath: spec.podTemplate.spec.volumes[1].hostPath (/etc): "},
		"two fields":  {"all of the node's", "host-namespaces: spec.podTemplate.spec.hostNetwork (true), spec.podTemplate.spec.hostPID (true), "},
		"a list":      {"another RuntimeClass", "runtimeclass-required: spec.podTemplate.spec.runtimeClassName (runc): tier restricted requires a RuntimeClass of its list. Fix: Set runtimeClassName to one of: gvisor, kata."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := sandboxOf(t, "Sandbox", podOf(t, podChanges[tc.change]))
			got := refusals(t, policies, write{resource: "sandboxes.v1beta1.agents.x-k8s.io", object: object, tier: "restricted"})
			if len(got) != 1 || !strings.HasPrefix(got[0], tc.want) {
				t.Errorf("refused with %q, want one that begins with %q", got, tc.want)
			}
		})
	}
}

// The apiserver asks the backstop first. While the webhook answers for every request, its
// answer, with every fault at once, is the one that a user gets.
func TestTheBackstopLeavesTheRulesToTheWebhookThatCannotBePassed(t *testing.T) {
	object := sandboxOf(t, "Sandbox", podOf(t, podChanges["a privileged init container"]))
	for set, want := range map[string]int{
		"webhook.validating.failurePolicy=Fail":   0,
		"webhook.validating.failurePolicy=Ignore": 1,
		"backstop.rules=Always":                   1,
	} {
		policies := backstop(t, render(t, install{set: []string{set}}))
		got := refusals(t, policies, write{resource: "sandboxes.v1beta1.agents.x-k8s.io", object: object, tier: "standard"})
		if len(got) != want {
			t.Errorf("with %s the backstop refuses with %q, want %d refusals", set, got, want)
		}
	}
}

func TestTheBackstopIsSwitched(t *testing.T) {
	if n := kinds(render(t, install{set: []string{"backstop.enabled=false"}})); n["ValidatingAdmissionPolicy"]+n["ValidatingAdmissionPolicyBinding"] != 0 {
		t.Errorf("the backstop is off, and %v are rendered", n)
	}
	r := render(t, install{set: []string{"backstop.validationActions={Warn,Audit}"}})
	for _, b := range all[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](r) {
		want := []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn, admissionregistrationv1.Audit}
		if diff := cmp.Diff(want, b.Spec.ValidationActions); diff != "" {
			t.Errorf("actions of %s (-want +got):\n%s", b.Name, diff)
		}
	}
	wantFailure(t, install{set: []string{"backstop.validationActions={Deny,Warn}"}}, "validationActions")
}

// The backstop sees an update after admission added defaults to what was there before it had them.
func TestWhatAdmissionAddsToAnOldPodIsNoFaultOfTheUpdate(t *testing.T) {
	r := render(t, install{set: []string{"backstop.rules=Always", "platform.tiers.standard.serviceAccounts={agent,other}"}})
	policies := backstop(t, r)
	old := func(s, _ map[string]any) {
		s["automountServiceAccountToken"] = true
		s["ephemeralContainers"] = []any{map[string]any{"name": "e", "image": "e:1"}}
	}
	with := func(account, image string, security map[string]any) func(s, c map[string]any) {
		return func(s, c map[string]any) {
			old(s, c)
			c["image"], s["serviceAccountName"] = "python:3.13-slim", account
			s["ephemeralContainers"] = []any{map[string]any{"name": "e", "image": image, "securityContext": security}}
		}
	}
	hardened := map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"NET_RAW"}}}
	cases := map[string]struct {
		after func(s, c map[string]any)
		want  []string
	}{
		"what it adds":           {with("agent", "e:1", hardened), nil},
		"an account of the tier": {with("other", "e:1", hardened), []string{"automount-token"}},
		"another image":          {with("agent", "e:2", hardened), []string{"ephemeral-in-template"}},
		"more than it adds":      {with("agent", "e:1", map[string]any{"runAsUser": int64(0)}), []string{"ephemeral-in-template"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := refusals(t, policies, write{
				resource: kindResource, tier: "standard",
				object: sandboxOf(t, "Sandbox", podOf(t, tc.after)), old: sandboxOf(t, "Sandbox", podOf(t, old)),
			})
			if diff := cmp.Diff(tc.want, rulesOfRefusals(got), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("refused by (-want +got):\n%s", diff)
			}
		})
	}
}
