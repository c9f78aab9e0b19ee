// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	testclock "k8s.io/utils/clock/testing"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/policies"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// world is what a judgement looks up: one namespace, and nothing that could be referred
// to.
type world struct {
	tier string
}

func (w world) Namespace(context.Context, string) (engine.NamespaceInfo, error) {
	return engine.NamespaceInfo{Name: "team", Labels: map[string]string{"platform.agents.x-k8s.io/tier": w.tier}}, nil
}

func (world) RuntimeClasses(context.Context) (RuntimeClasses, error) {
	return RuntimeClasses{Existing: sets.New("gvisor"), Usable: sets.New("gvisor")}, nil
}

func (world) Template(context.Context, string, string) (map[string]any, error) { return nil, nil }

func (world) Pool(context.Context, string, string) (map[string]any, error) { return nil, nil }

func (world) Colliding(context.Context, string, string, string) (string, error) { return "", nil }

// library is an engine with the rules of the library.
func library(t *testing.T) *engine.Engine {
	t.Helper()
	rules, err := engine.New()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := policies.Library()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rules.Load(t.Context(), modules, engine.Configuration{}); err != nil {
		t.Fatal(err)
	}
	return rules
}

func judgeOf(rules *engine.Engine, tier string) *Judge {
	platform := &config.Platform{DefaultTier: "open", Tiers: map[string]config.Tier{
		"open":   {Creates: []string{"Sandbox"}, Egress: config.TierEgress{Profile: "none"}},
		"closed": {Creates: []string{"SandboxClaim"}, Egress: config.TierEgress{Profile: "none"}},
	}}
	return &Judge{
		Engine: rules, Lookup: world{tier}, Clock: testclock.NewFakePassiveClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)),
		Current: func() *config.Platform { return platform },
	}
}

func sandbox(metadata, pod map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": metadata,
		"spec": map[string]any{"podTemplate": map[string]any{"spec": pod}},
	}
}

func hardened() map[string]any {
	return map[string]any{
		"automountServiceAccountToken": false, "enableServiceLinks": false,
		"securityContext": map[string]any{"seccompProfile": map[string]any{"type": "RuntimeDefault"}},
		"containers": []any{map[string]any{
			"name": "main", "image": "registry.example.com/main:1.2", "securityContext": map[string]any{"allowPrivilegeEscalation": false},
		}},
	}
}

// What was stored was allowed once; what counts is whether it would be today.
func TestWhatIsStoredIsJudgedAsIfItWereCreatedToday(t *testing.T) {
	bare := hardened()
	delete(bare, "enableServiceLinks")
	host := hardened()
	host["hostNetwork"] = true
	written := map[string]any{"agents.x-k8s.io/sandbox-name-hash": "abc"}
	cases := map[string]struct {
		tier       string
		object     map[string]any
		controller bool
		// denied are the rules that refuse, audited those that are recorded.
		denied, audited []string
	}{
		"what is as it should be":            {"open", sandbox(map[string]any{"name": "s"}, hardened()), false, nil, nil},
		"what the controllers wrote":         {"open", sandbox(map[string]any{"name": "s", "labels": written}, hardened()), false, nil, nil},
		"a default that it lacks":            {"open", sandbox(map[string]any{"name": "s"}, bare), false, nil, []string{RuleDefaults}},
		"what a rule denies":                 {"open", sandbox(map[string]any{"name": "s"}, host), false, []string{"host-namespaces"}, nil},
		"a tenant's own where he may not":    {"closed", sandbox(map[string]any{"name": "s"}, hardened()), false, []string{"tier"}, nil},
		"a claim's own in the same place":    {"closed", sandbox(map[string]any{"name": "s"}, hardened()), true, nil, nil},
		"a namespace of a tier that is gone": {"gone", sandbox(map[string]any{"name": "s"}, hardened()), true, []string{"tier"}, nil},
	}
	rules := library(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j := judgeOf(rules, tc.tier)
			facts, err := j.Facts(t.Context(), "team")
			if err != nil {
				t.Fatal(err)
			}
			judged, err := j.Standing(t.Context(), Question{
				Kind: "Sandbox", Namespace: "team", Name: "s", Object: tc.object, Controller: tc.controller,
			}, facts)
			if err != nil {
				t.Fatal(err)
			}
			got := map[engine.Enforcement][]string{}
			for _, f := range Distinct(judged.Findings) {
				got[f.Enforcement] = append(got[f.Enforcement], f.Rule)
			}
			if diff := cmp.Diff(tc.denied, got[engine.Deny]); diff != "" {
				t.Errorf("refused by (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.audited, got[engine.Audit]); diff != "" {
				t.Errorf("recorded by (-want +got):\n%s", diff)
			}
			if judged.Digest != j.Engine.Digest() {
				t.Errorf("judged by %q, want the policies in force", judged.Digest)
			}
		})
	}
}

// Rules see the resolvers that the Pod will ask, which the egress profile decides.
func TestRulesSeeTheResolversOfTheProfile(t *testing.T) {
	ours := []any{"192.0.2.53"}
	made := map[string]any{"name": "s", "annotations": map[string]any{"agents.x-k8s.io/sandbox-template-ref": "python"}}
	asks := map[string]any{"name": "s", "annotations": map[string]any{"platform.agents.x-k8s.io/egress-profile": "none"}}
	cases := map[string]struct {
		kind     string
		object   map[string]any
		template map[string]any
		want     any
	}{
		"a Sandbox of its own":             {kind: "Sandbox", object: sandbox(map[string]any{"name": "s"}, hardened()), want: ours},
		"a Sandbox of another profile":     {kind: "Sandbox", object: sandbox(asks, hardened())},
		"a Sandbox made from a template":   {kind: "Sandbox", object: sandbox(made, hardened())},
		"a template, which runs nothing":   {kind: "SandboxTemplate", object: sandbox(map[string]any{"name": "s"}, hardened())},
		"a pool":                           {kind: "SandboxWarmPool", object: map[string]any{}, template: sandbox(map[string]any{"name": "t"}, hardened()), want: ours},
		"a pool, of a template that asks":  {kind: "SandboxWarmPool", object: map[string]any{}, template: sandbox(asks, hardened()), want: []any{"8.8.8.8", "1.1.1.1"}},
		"a claim":                          {kind: "SandboxClaim", object: map[string]any{}, template: sandbox(map[string]any{"name": "t"}, hardened()), want: ours},
		"a claim of a pool that has none":  {kind: "SandboxClaim", object: map[string]any{}},
		"a Sandbox that chose for himself": {kind: "Sandbox", object: sandbox(map[string]any{"name": "s"}, map[string]any{"dnsPolicy": "Default"})},
	}
	j := judgeOf(nil, "open")
	j.Current().EgressProfiles = map[string]config.EgressProfile{"none": {}, "own": {Nameservers: []string{"192.0.2.53"}}}
	j.Current().Tiers["open"] = config.Tier{Egress: config.TierEgress{Profile: "own", Allowed: []string{"none"}}}
	facts, err := j.Facts(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := Question{Kind: tc.kind, Object: tc.object}
			pod := effectiveOf(q, tc.template, facts)
			followProfile(&pod, q, tc.template, facts)
			spec, _ := pod.Pod["spec"].(map[string]any)
			dns, _ := spec["dnsConfig"].(map[string]any)
			if diff := cmp.Diff(tc.want, dns["nameservers"]); diff != "" {
				t.Errorf("nameservers (-want +got):\n%s", diff)
			}
		})
	}
}

// Nodes of a class may come when a Pod waits for one: then it needs none.
func TestAClassWhoseNodesComeNeedsNone(t *testing.T) {
	j := judgeOf(nil, "open")
	j.Lookup = nodeless{}
	j.Current().RuntimeClassesFromZero = []string{"kata", "wasm"}
	facts, err := j.Facts(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	want := RuntimeClasses{Existing: sets.New("gvisor", "kata"), Usable: sets.New("kata"), Free: sets.New("kata")}
	if diff := cmp.Diff(want, facts.Classes); diff != "" {
		t.Errorf("RuntimeClasses (-want +got):\n%s", diff)
	}
}

// nodeless is a world whose RuntimeClasses have no nodes.
type nodeless struct{ world }

func (nodeless) RuntimeClasses(context.Context) (RuntimeClasses, error) {
	return RuntimeClasses{Existing: sets.New("gvisor", "kata"), Usable: sets.New[string](), Free: sets.New[string]()}, nil
}

// Sandboxes of a pool, and those of its claims, get the volumes of the template, which was stored when other rules held.
func TestAPoolAndAClaimAreJudgedByTheVolumesOfTheTemplate(t *testing.T) {
	bound := map[string]any{"spec": map[string]any{
		"podTemplate": map[string]any{"spec": hardened()},
		"volumeClaimTemplates": []any{map[string]any{
			"metadata": map[string]any{"name": "data"}, "spec": map[string]any{"volumeName": "pv-of-another-tenant"},
		}},
	}}
	pool := map[string]any{"metadata": map[string]any{"name": "pool"}, "spec": map[string]any{"replicas": 1, "sandboxTemplateRef": map[string]any{"name": "template"}}}
	claim := map[string]any{"metadata": map[string]any{"name": "claim"}, "spec": map[string]any{"warmPoolRef": map[string]any{"name": "pool"}}}
	j := judgeOf(library(t), "open")
	j.Lookup = shelf{Lookup: j.Lookup, pool: pool, template: bound}
	facts, err := j.Facts(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	for kind, object := range map[string]map[string]any{"SandboxWarmPool": pool, "SandboxClaim": claim} {
		judged, err := j.Submitted(t.Context(), Question{Operation: OperationCreate, Kind: kind, Namespace: "team", Name: "x", Object: object}, facts)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(judged.Findings, func(f engine.Finding) bool { return f.Rule == "volume-binding" })
		if at < 0 || judged.Findings[at].Enforcement != engine.Deny || judged.Findings[at].Field != "template.spec.volumeClaimTemplates[0].spec.volumeName" {
			t.Errorf("%s: findings %+v, want that the volume is refused", kind, judged.Findings)
			continue
		}
		if got := identity(judged.Findings[at], judged.Document); !strings.Contains(got, "volumeClaimTemplates[data]") {
			t.Errorf("%s: the finding is known by %q, want the name of the volume in it", kind, got)
		}
	}
}

// shelf has one pool and one template.
type shelf struct {
	Lookup
	pool, template map[string]any
}

func (s shelf) Pool(context.Context, string, string) (map[string]any, error) { return s.pool, nil }

func (s shelf) Template(context.Context, string, string) (map[string]any, error) {
	return s.template, nil
}
