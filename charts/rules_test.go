// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	verdicts "github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/policies"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// stock is what exists in the cluster: a RuntimeClass of a sandboxed runtime, and one of another.
type stock struct{}

func (stock) List(_ context.Context, data engine.Data, _ string) (map[string]any, error) {
	if data == engine.DataRuntimeClasses {
		return map[string]any{"gvisor": map[string]any{"handler": "runsc"}, "runc": map[string]any{"handler": "runc"}}, nil
	}
	return map[string]any{}, nil
}

// rulesOf returns the rules of an environment, loaded as the webhook loads them.
func rulesOf(t *testing.T, r rendered) *engine.Engine {
	t.Helper()
	source, _ := policiesOf(t, r)
	cfg, err := engine.ParseConfiguration(source.Name, []byte(source.Data["policy.yaml"]))
	if err != nil {
		t.Fatalf("the webhook refuses policy.yaml: %v", err)
	}
	modules, err := policies.Library()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := engine.New(engine.WithInventory(stock{}))
	if err != nil {
		t.Fatal(err)
	}
	report, err := rules.Load(t.Context(), modules, cfg)
	if err != nil || len(report.Broken) > 0 {
		t.Fatalf("the webhook refuses the rules: %v, broken %v", err, report.Broken)
	}
	return rules
}

// hardened is a Pod with what admission sets on it in the tier standard.
const hardened = `
automountServiceAccountToken: false
runtimeClassName: gvisor
securityContext: {seccompProfile: {type: RuntimeDefault}}
containers:
  - name: workspace
    image: python:3.12-slim
    command: [sh, -c, sleep infinity]
    resources: {limits: {cpu: "1", memory: 512Mi, ephemeral-storage: 4Gi}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [NET_RAW]}}
    volumeMounts: [{name: workspace-volume, mountPath: /workspace}]
`

// podOf returns the hardened Pod with a change.
func podOf(t *testing.T, change func(spec, container map[string]any)) map[string]any {
	t.Helper()
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(hardened), &spec); err != nil {
		t.Fatal(err)
	}
	change(spec, spec["containers"].([]any)[0].(map[string]any))
	return spec
}

// judge returns the rules that refuse a Sandbox with a Pod in the tier standard.
func judge(t *testing.T, rules *engine.Engine, r rendered, change func(spec, container map[string]any)) []string {
	t.Helper()
	return judgeIn(t, rules, r, "standard", podOf(t, change))
}

// judgeIn returns the rules that refuse a Sandbox with that Pod in a tier.
func judgeIn(t *testing.T, rules *engine.Engine, r rendered, tierName string, spec map[string]any) []string {
	t.Helper()
	var denied []string
	for _, finding := range denialsIn(t, rules, r, tierName, spec).Findings {
		denied = append(denied, finding.Rule)
	}
	slices.Sort(denied)
	return slices.Compact(denied)
}

// denialsIn are the findings that refuse a Sandbox with that Pod in a tier.
func denialsIn(t *testing.T, rules *engine.Engine, r rendered, tierName string, spec map[string]any) verdicts.Judgement {
	t.Helper()
	var tier map[string]any
	_, choice, _ := platform(t, r).TierOf(tierName)
	data, err := json.Marshal(choice)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &tier); err != nil {
		t.Fatal(err)
	}
	pod := map[string]any{"spec": spec}
	object := map[string]any{
		"apiVersion": "agents.x-k8s.io/v1beta1", "kind": engine.KindSandbox,
		"metadata": map[string]any{"name": "agent-workspace", "namespace": "tenant"}, "spec": map[string]any{"podTemplate": pod},
	}
	decision := rules.Evaluate(t.Context(), engine.Input{
		Operation: "CREATE", Kind: engine.KindSandbox, User: engine.UserInfo{Username: "alice"}, Object: object,
		Namespace: engine.NamespaceInfo{Name: "tenant"}, Pod: pod, PodPath: "spec.podTemplate", Tier: tier, TierName: tierName,
		Source: engine.SourceAdmission,
	})
	for _, finding := range decision.Denials() {
		if finding.Failure {
			t.Errorf("rule %s failed: %s", finding.Rule, finding.Message)
		}
	}
	return verdicts.Judgement{Findings: decision.Denials(), Document: object}
}

// What each environment refuses, by the rules themselves.
func TestWhatEachEnvironmentRefuses(t *testing.T) {
	nothing := func(_, _ map[string]any) {}
	cases := map[string]struct {
		change func(spec, container map[string]any)
		// want are the rules that refuse, by environment; "" is the defaults.
		want map[string][]string
	}{
		"a Sandbox of the examples, with limits": {nothing, nil},
		"one without limits": {
			func(_, container map[string]any) { delete(container, "resources") },
			map[string][]string{"staging": {"limits-required"}, "prod": {"ephemeral-limit", "limits-required"}},
		},
		"an image of a foreign registry": {
			func(_, container map[string]any) { container["image"] = "registry.example.com/team/tool:1.0" },
			map[string][]string{"staging": {"registry-allowed"}, "prod": {"registry-allowed"}},
		},
		"an image of another team's repository": {
			func(_, container map[string]any) { container["image"] = "team/tool:1.0" },
			map[string][]string{"staging": {"registry-allowed"}, "prod": {"registry-allowed"}},
		},
		"the kernel of the node": {
			func(spec, _ map[string]any) { delete(spec, "runtimeClassName") },
			map[string][]string{"prod": {"runtimeclass-required"}},
		},
		"a RuntimeClass that no tier names": {
			func(spec, _ map[string]any) { spec["runtimeClassName"] = "runc" },
			map[string][]string{
				"staging": {"runtimeclass-allowed"}, "prod": {"runtimeclass-allowed", "runtimeclass-backed", "runtimeclass-required"},
			},
		},
		"a volume of the default storage class": {claiming(map[string]any{}), nil},
		"a volume of another storage class":     {claiming(map[string]any{"storageClassName": "fast"}), map[string][]string{"prod": {"storage-class"}}},
		"one process table for all containers": {
			func(spec, _ map[string]any) { spec["shareProcessNamespace"] = true },
			map[string][]string{"prod": {"share-process-namespace"}},
		},
		"a token of the cluster": {
			func(spec, _ map[string]any) { spec["automountServiceAccountToken"] = true },
			map[string][]string{"": {"automount-token"}, "dev": {"automount-token"}, "staging": {"automount-token"}, "prod": {"automount-token"}},
		},
	}
	for _, env := range environments {
		r := render(t, install{}.with(env))
		rules := rulesOf(t, r)
		for name, tc := range cases {
			t.Run(name+" under the values of "+or(env, "defaults"), func(t *testing.T) {
				if diff := cmp.Diff(tc.want[env], judge(t, rules, r, tc.change)); diff != "" {
					t.Errorf("refused by (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// claiming adds a volume for the time of the Pod.
func claiming(more map[string]any) func(spec, _ map[string]any) {
	return func(spec, _ map[string]any) {
		claim := map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
		maps.Copy(claim, more)
		volume := map[string]any{"name": "scratch", "ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{"spec": claim}}}
		spec["volumes"] = []any{volume}
	}
}

// The classes that admission sets in a tier are no fault of the Sandbox that gets them; what
// the rule allows otherwise it still does.
func TestTheRuleAboutRuntimeClassesAllowsThoseOfTiers(t *testing.T) {
	own := "platform.tiers.standard.runtimeClass.classes={firecracker}"
	listed := `policies.rules.runtimeclass-allowed.parameters.allowed={confidential}`
	cases := map[string]struct {
		set   []string
		class string
		want  []string
	}{
		"of a tier":                     {[]string{own}, "firecracker", nil},
		"of another tier":               {[]string{own}, "gvisor", nil},
		"of a tier, with its users":     {[]string{"platform.tiers.standard.runtimeClass.classes[0].name=sysbox", "platform.tiers.standard.runtimeClass.classes[0].hostUsers=false"}, "sysbox", nil},
		"of no tier":                    {[]string{own}, "runc", []string{"runtimeclass-allowed"}},
		"what the values allow":         {[]string{own, listed}, "confidential", nil},
		"of a tier, beside the values'": {[]string{own, listed}, "firecracker", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := render(t, install{set: append(tc.set, "policies.rules.runtimeclass-allowed.enforcement=Deny")})
			named := func(spec, _ map[string]any) { spec["runtimeClassName"] = tc.class }
			if diff := cmp.Diff(tc.want, judge(t, rulesOf(t, r), r, named), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("refused by (-want +got):\n%s", diff)
			}
		})
	}
}

// The resolvers that a profile sets are no fault of the Sandbox that gets them; what the
// rule allows otherwise it still does.
func TestTheRuleAboutResolversAllowsThoseOfProfiles(t *testing.T) {
	asks := func(server string) func(spec, _ map[string]any) {
		return func(spec, _ map[string]any) {
			spec["dnsPolicy"], spec["dnsConfig"] = "None", map[string]any{"nameservers": []any{server}}
		}
	}
	own := "platform.egressProfiles.own.nameservers={192.0.2.53}"
	cases := map[string]struct {
		set    []string
		server string
		want   []string
	}{
		"of a profile":                      {[]string{own}, "192.0.2.53", nil},
		"of no profile":                     {[]string{own}, "192.0.2.54", []string{"dns"}},
		"what the rule allows":              {[]string{own}, "8.8.8.8", nil},
		"what the rule allows, without any": {nil, "1.1.1.1", nil},
		"what the values allow besides":     {[]string{own, "policies.rules.dns.parameters.allowedNameservers={198.51.100.53}"}, "198.51.100.53", nil},
		"what the values no longer allow":   {[]string{own, "policies.rules.dns.parameters.allowedNameservers={198.51.100.53}"}, "8.8.8.8", []string{"dns"}},
		"of a profile, beside the values'":  {[]string{own, "policies.rules.dns.parameters.allowedNameservers={198.51.100.53}"}, "192.0.2.53", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := render(t, install{set: append(tc.set, "policies.rules.dns.enforcement=Deny")})
			if diff := cmp.Diff(tc.want, judge(t, rulesOf(t, r), r, asks(tc.server)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("refused by (-want +got):\n%s", diff)
			}
		})
	}
}

// The ranges that the platform engineer names once are those of the rule about the cluster,
// besides its own.
func TestTheRuleAboutTheClusterKnowsItsRanges(t *testing.T) {
	const named = "platform.cluster.cidrs={198.51.100.0/24}"
	cases := map[string]struct {
		set  []string
		cidr string
		want []string
	}{
		"a range of the cluster":            {set: []string{named}, cidr: "198.51.100.0/25", want: []string{"egress-cluster"}},
		"a range beside it":                 {set: []string{named}, cidr: "192.0.2.0/24"},
		"a range of the rule's own":         {set: []string{named, "policies.rules.egress-cluster.parameters.clusterCIDRs={192.0.2.0/24}"}, cidr: "192.0.2.0/24", want: []string{"egress-cluster"}},
		"the cluster's, beside the rule's":  {set: []string{named, "policies.rules.egress-cluster.parameters.clusterCIDRs={192.0.2.0/24}"}, cidr: "198.51.100.0/24", want: []string{"egress-cluster"}},
		"the rule's, of an unnamed cluster": {set: []string{"policies.rules.egress-cluster.parameters.clusterCIDRs={192.0.2.0/24}"}, cidr: "192.0.2.0/24", want: []string{"egress-cluster"}},
		"another, of an unnamed cluster":    {set: []string{"policies.rules.egress-cluster.parameters.clusterCIDRs={192.0.2.0/24}"}, cidr: "198.51.100.0/24"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := render(t, install{set: append(tc.set, "policies.rules.egress-cluster.enforcement=Deny")})
			decision := rulesOf(t, r).Evaluate(t.Context(), engine.Input{
				Operation: "CREATE", Kind: engine.KindSandboxTemplate, User: engine.UserInfo{Username: "alice"}, Source: engine.SourceAdmission,
				Namespace: engine.NamespaceInfo{Name: "tenant"}, Object: map[string]any{
					"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": engine.KindSandboxTemplate, "metadata": map[string]any{"name": "a"},
					"spec": map[string]any{"networkPolicy": map[string]any{"egress": []any{map[string]any{"to": []any{map[string]any{"ipBlock": map[string]any{"cidr": tc.cidr}}}}}}},
				},
			})
			var got []string
			for _, finding := range decision.Denials() {
				if finding.Rule == "egress-cluster" || finding.Failure {
					got = append(got, finding.Rule)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("refused by (-want +got):\n%s", diff)
			}
		})
	}
}

// A limit of the Pod as a whole counts where Kubernetes keeps it.
func TestTheRulesAboutLimitsKnowTheVersionOfTheCluster(t *testing.T) {
	const keeps = ".parameters.podLevelResources"
	cases := map[string]struct {
		install install
		want    bool
	}{
		"from 1.34 on":                          {install{kubeVersion: "v1.34.0-gke.1"}, false},
		"not before":                            {install{kubeVersion: "v1.33.9"}, true},
		"before where the values say so":        {install{kubeVersion: "v1.33.9", set: []string{"policies.rules.limits-required" + keeps + "=true"}}, false},
		"not where the values say the opposite": {install{set: []string{"policies.rules.limits-required" + keeps + "=false"}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.install.set = append(tc.install.set, "policies.rules.limits-required.enforcement=Deny", "policies.rules.ephemeral-limit.enforcement=Deny")
			r := render(t, tc.install)
			want := map[string]bool{"limits-required": tc.want, "ephemeral-limit": true}
			denied := judge(t, rulesOf(t, r), r, func(spec, container map[string]any) {
				delete(container, "resources")
				spec["resources"] = map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}}
			})
			for rule, want := range want {
				if got := slices.Contains(denied, rule); got != want {
					t.Errorf("%s refuses: %t, want %t", rule, got, want)
				}
			}
		})
	}
}

// The same limit bounds the Pod of a tier where Kubernetes keeps it, and only there.
func TestTiersKnowTheVersionOfTheCluster(t *testing.T) {
	const set = "platform.tiers.restricted.resources.podLevel="
	for name, tc := range map[string]struct {
		install install
		want    bool
	}{
		"from 1.34 on":                          {install{kubeVersion: "v1.34.0-gke.1"}, true},
		"not before":                            {install{kubeVersion: "v1.33.9"}, false},
		"before where the values say so":        {install{kubeVersion: "v1.33.9", set: []string{set + "true"}}, true},
		"not where the values say the opposite": {install{set: []string{set + "false"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tier := platform(t, render(t, tc.install)).Tiers["restricted"]
			if tier.Resources.PodLevel != tc.want {
				t.Errorf("limits of a whole Pod count: %t, want %t", tier.Resources.PodLevel, tc.want)
			}
		})
	}
}

// The namespace of the release is one of the platform's, and the router is the one that the platform names, wherever
// they are installed.
func TestTheRulesKnowThePlatformsOwnNamespace(t *testing.T) {
	const own, usual = "sandbox-platform", "agent-sandbox-system"
	peer := func(namespace, app string) map[string]any {
		return map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
			"podSelector":       map[string]any{"matchLabels": map[string]any{"app": app}},
		}
	}
	cases := map[string]struct {
		install   install
		peer      map[string]any
		namespace string
		want      []string
	}{
		"the router where it is":            {install{namespace: own}, peer(own, "sandbox-router"), "tenant", nil},
		"its namesake where it usually is":  {install{namespace: own}, peer(usual, "sandbox-router"), "tenant", []string{"ingress-widened"}},
		"the router where it usually is":    {install{}, peer(usual, "sandbox-router"), "tenant", nil},
		"the router by another label":       {install{namespace: own, set: []string{"platform.router.podLabels.app=way-in"}}, peer(own, "way-in"), "tenant", nil},
		"the router in a third namespace":   {install{namespace: own, set: []string{"platform.router.namespace=third"}}, peer("third", "sandbox-router"), "tenant", nil},
		"a peer of the values beside it":    {install{namespace: own, set: []string{"policies.rules.ingress-widened.parameters.allowedPeers[0].podSelector.matchLabels.a=b"}}, peer(own, "sandbox-router"), "tenant", nil},
		"the namespace of the release":      {install{namespace: own}, nil, own, []string{"namespace-allowed"}},
		"a namespace that the values name":  {install{namespace: own, set: []string{"policies.rules.namespace-allowed.parameters.denied={other}"}}, nil, own, []string{"namespace-allowed"}},
		"a namespace that nobody names":     {install{namespace: own}, nil, "tenant", nil},
		"the usual one of another platform": {install{}, nil, own, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.install.set = append(tc.install.set, "policies.rules.ingress-widened.enforcement=Deny", "policies.rules.namespace-allowed.enforcement=Deny")
			policy := map[string]any{}
			if tc.peer != nil {
				policy["ingress"] = []any{map[string]any{"from": []any{tc.peer}}}
			}
			decision := rulesOf(t, render(t, tc.install)).Evaluate(t.Context(), engine.Input{
				Operation: "CREATE", Kind: engine.KindSandboxTemplate, User: engine.UserInfo{Username: "alice"}, Source: engine.SourceAdmission,
				Namespace: engine.NamespaceInfo{Name: tc.namespace}, Object: map[string]any{
					"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": engine.KindSandboxTemplate, "metadata": map[string]any{"name": "a"},
					"spec": map[string]any{"networkPolicy": policy},
				},
			})
			var got []string
			for _, finding := range decision.Denials() {
				if finding.Rule == "ingress-widened" || finding.Rule == "namespace-allowed" || finding.Failure {
					got = append(got, finding.Rule)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("refused by (-want +got):\n%s", diff)
			}
		})
	}
}
