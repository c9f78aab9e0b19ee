// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/effective"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/validation"
)

func decode(text string) map[string]any {
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		panic(fmt.Sprintf("%v in %s", err, text)) //nolint:forbidigo // the literal of a test is wrong
	}
	return object
}

// creation is the CREATE of an object in a namespace of the tier standard.
func creation(kind, object string) validation.Input {
	in := validation.Input{
		Operation: "CREATE", Kind: kind, Object: decode(object),
		TierName: "standard", TierKnown: true, Tiers: []string{"restricted", "standard"},
		Tier: config.Tier{
			Egress:  config.TierEgress{Profile: "public", Allowed: []string{"none"}},
			Creates: []string{"Sandbox", "SandboxClaim"},
		},
		RuntimeClasses: sets.New("gvisor", "runc"), UsableClasses: sets.New("gvisor", "runc"), LabelDomains: []string{"sandbox.users.io", "team.example.com"},
		Now:  time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC),
		Pool: decode(`{}`), Template: decode(`{}`),
	}
	if kind == "Sandbox" || kind == "SandboxTemplate" {
		in.Effective = effective.OfOwn(in.Object)
	}
	return in
}

// update is the UPDATE from one object to another.
func update(kind, old, object string) validation.Input {
	in := creation(kind, object)
	in.Operation, in.OldObject = "UPDATE", decode(old)
	return in
}

// with changes an input.
func with(in validation.Input, change func(*validation.Input)) validation.Input {
	change(&in)
	return in
}

// texts shows each fault as a user would read it.
func texts(faults []validation.Fault) []string {
	var list []string
	for _, f := range faults {
		prefix := ""
		if f.Warning {
			prefix = "warning "
		}
		list = append(list, fmt.Sprintf("%s%s: %s (%v): %s. Fix: %s", prefix, f.Rule, f.Field, f.BadValue, f.Detail, f.Remedy))
	}
	return list
}

const reservedText = "the key is reserved for the controllers. Fix: "

func TestMetadata(t *testing.T) {
	const plain = `{"metadata": {"name": "x"}}`
	cases := map[string]struct {
		in   validation.Input
		want []string
	}{
		"keys of the user are his": {creation("Sandbox", `{"metadata": {"name": "x", "labels": {"app": "y"}, "annotations": {"a/b": "c"}}}`), nil},
		"what our mutation sets is allowed": {
			creation("Sandbox", `{"metadata": {"name": "x", "annotations": {"agents.x-k8s.io/pod-name": "x", "platform.agents.x-k8s.io/defaulted": "a"}}}`), nil,
		},
		"a reserved label is refused": {
			creation("Sandbox", `{"metadata": {"name": "x", "labels": {"agents.x-k8s.io/claim-uid": "u"}}}`),
			[]string{`reserved-metadata: metadata.labels[agents.x-k8s.io/claim-uid] (u): ` + reservedText +
				`The label is written by the controllers only: remove it.`},
		},
		"a reserved label that a controller writes is allowed": {
			with(creation("Sandbox", `{"metadata": {"name": "x", "labels": {"agents.x-k8s.io/claim-uid": "u"}}}`),
				func(in *validation.Input) { in.Controller = true }), nil,
		},
		"a reserved label that was there before is no fault": {
			update("Sandbox", `{"metadata": {"name": "x", "labels": {"agents.x-k8s.io/claim-uid": "u"}}}`,
				`{"metadata": {"name": "x", "labels": {"agents.x-k8s.io/claim-uid": "u", "app": "y"}}}`), nil,
		},
		"a reserved label that changes is refused": {
			update("Sandbox", `{"metadata": {"name": "x", "labels": {"agents.x-k8s.io/claim-uid": "u"}}}`,
				`{"metadata": {"name": "x", "labels": {"agents.x-k8s.io/claim-uid": "v"}}}`),
			[]string{`reserved-metadata: metadata.labels[agents.x-k8s.io/claim-uid] (v): ` + reservedText +
				`The label is written by the controllers only: remove it.`},
		},
		"a reserved label that is removed is refused": {
			update("SandboxTemplate", `{"metadata": {"name": "x", "labels": {"agents.x-k8s.io/sandbox-template-ref-hash": "u"}}}`, plain),
			[]string{`reserved-metadata: metadata.labels[agents.x-k8s.io/sandbox-template-ref-hash] (): ` + reservedText +
				`Keep the key, it is written by the controllers only: use apply or patch instead of replace.`},
		},
		"who creates an object may say so": {
			with(creation("Sandbox", `{"metadata": {"name": "x", "annotations": {"platform.agents.x-k8s.io/creator": "ann"}}}`),
				func(in *validation.Input) { in.User = "ann" }), nil,
		},
		"who changes it may not": {
			with(update("Sandbox", plain, `{"metadata": {"name": "x", "annotations": {"platform.agents.x-k8s.io/creator": "ann"}}}`),
				func(in *validation.Input) { in.User = "ann" }),
			[]string{`reserved-metadata: metadata.annotations[platform.agents.x-k8s.io/creator] (ann): ` + reservedText +
				`The annotation names who created the object: leave it as it is, it is set for you on creation.`},
		},
		"a key of the user's own table may be removed": {
			update("Sandbox", `{"metadata": {"name": "x", "annotations": {"platform.agents.x-k8s.io/egress-profile": "none"}}}`, plain), nil,
		},
		"reserved keys of a podTemplate are warned of": {
			creation("Sandbox", `{"metadata": {"name": "x"}, "spec": {"podTemplate": {"metadata": {"labels": {"agents.x-k8s.io/a": "b"}}}}}`),
			[]string{`warning reserved-metadata: spec.podTemplate.metadata.labels[agents.x-k8s.io/a] (b): ` +
				`the key is reserved for the controllers and does not reach the Pod. Fix: Remove the key.`},
		},
		"reserved keys of a volume are refused": {
			creation("Sandbox", `{"metadata": {"name": "x"}, "spec": {"volumeClaimTemplates": [{"metadata": {"name": "v", "annotations": {"agents.x-k8s.io/a": "b"}}}]}}`),
			[]string{`reserved-metadata: spec.volumeClaimTemplates[0].metadata.annotations[agents.x-k8s.io/a] (b): ` + reservedText + `Remove the key.`},
		},
		"reserved keys that a claim adds to a Pod are refused, once": {
			with(creation("SandboxClaim", `{"metadata": {"name": "x"}, "spec": {"additionalPodMetadata": {"labels": {"agents.x-k8s.io/a": "b"}}}}`),
				func(in *validation.Input) { in.Effective = effective.OfClaim(in.Object, in.Template) }),
			[]string{`reserved-metadata: spec.additionalPodMetadata.labels[agents.x-k8s.io/a] (b): ` + reservedText + `Remove the key.`},
		},
	}
	check(t, cases)
}

func check(t *testing.T, cases map[string]struct {
	in   validation.Input
	want []string
},
) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, texts(validation.Validate(tc.in))); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTier(t *testing.T) {
	restricted := func(in *validation.Input) {
		in.TierName = "restricted"
		in.Tier = config.Tier{
			RuntimeClass: config.RuntimeClass{Classes: []config.Class{{Name: "kata"}, {Name: "gvisor"}}, Required: true},
			Egress:       config.TierEgress{Profile: "dns-only"}, Creates: []string{"SandboxClaim"},
		}
	}
	const required = `runtimeclass-required: spec.podTemplate.spec.runtimeClassName (%s): tier "restricted" requires a RuntimeClass of its list. Fix: %s`
	sandbox := func(class string) string {
		return `{"metadata": {"name": "x"}, "spec": {"podTemplate": {"spec": {"runtimeClassName": "` + class + `"}}}}`
	}
	cases := map[string]struct {
		in   validation.Input
		want []string
	}{
		"a tier that nobody defined": {
			with(creation("SandboxWarmPool", `{"metadata": {"name": "x"}}`), func(in *validation.Input) { in.TierName, in.TierKnown = "lax", false }),
			[]string{`tier: namespace.metadata.labels[platform.agents.x-k8s.io/tier] (lax): there is no such tier. ` +
				`Fix: Ask the platform team to label the namespace with one of: restricted, standard.`},
		},
		"a bare Sandbox where tenants only claim": {
			with(creation("Sandbox", sandbox("gvisor")), restricted),
			[]string{`tier: kind (Sandbox): tenants may not create this kind in a namespace of tier "restricted". Fix: Create one of: SandboxClaim.`},
		},
		"a controller creates the Sandbox of a claim there": {
			with(creation("Sandbox", sandbox("gvisor")), func(in *validation.Input) { restricted(in); in.Controller = true }), nil,
		},
		"a Sandbox that is there may be suspended": {
			with(update("Sandbox", sandbox("gvisor"), strings.Replace(sandbox("gvisor"), `"spec": {`, `"spec": {"operatingMode": "Suspended", `, 1)), restricted), nil,
		},
		"a Sandbox that is there becomes another where tenants only claim": {
			with(update("Sandbox", sandbox("kata"), strings.Replace(sandbox("gvisor"), `"spec": {`, `"spec": {"service": true, `, 1)), restricted),
			[]string{
				`tier: spec.podTemplate (): tenants may not change what a Sandbox is in a namespace of tier "restricted". Fix: Create one of: SandboxClaim.`,
				`tier: spec.service (): tenants may not change what a Sandbox is in a namespace of tier "restricted". Fix: Create one of: SandboxClaim.`,
			},
		},
		"a controller changes one": {
			with(update("Sandbox", sandbox("kata"), sandbox("gvisor")), func(in *validation.Input) { restricted(in); in.Controller = true }), nil,
		},
		"a RuntimeClass that does not exist": {
			creation("Sandbox", sandbox("gvisr")),
			[]string{`warning runtimeclass-exists: spec.podTemplate.spec.runtimeClassName (gvisr): ` +
				`there is no such RuntimeClass, so the Pod cannot start. Fix: This cluster has: gvisor, runc.`},
		},
		"a RuntimeClass that the tier does not list": {
			with(creation("SandboxTemplate", sandbox("runc")), restricted),
			[]string{fmt.Sprintf(required, "runc", "Set it to one of: gvisor.")},
		},
		"no RuntimeClass where the cluster has none of the tier's": {
			with(creation("SandboxTemplate", `{"metadata": {"name": "x"}}`), func(in *validation.Input) { restricted(in); in.RuntimeClasses, in.UsableClasses = nil, nil }),
			[]string{fmt.Sprintf(required, "", "Ask the platform team to install one of: kata, gvisor; this cluster has none.")},
		},
		"a RuntimeClass for which there is no node": {
			with(creation("Sandbox", sandbox("gvisor")), func(in *validation.Input) { in.UsableClasses = sets.New("runc") }),
			[]string{`warning runtimeclass-exists: spec.podTemplate.spec.runtimeClassName (gvisor): ` +
				`no node has the labels that this RuntimeClass selects, so the Pod cannot start. Fix: This cluster has: runc.`},
		},
		"no RuntimeClass where the cluster has no node for the tier's": {
			with(creation("SandboxTemplate", `{"metadata": {"name": "x"}}`), func(in *validation.Input) { restricted(in); in.UsableClasses = sets.New("runc") }),
			[]string{fmt.Sprintf(required, "",
				"Ask the platform team to install one of: kata, gvisor; this cluster has gvisor (no node for it), runc.")},
		},
		"a RuntimeClass below the floor": {
			with(creation("Sandbox", sandbox("runc")), func(in *validation.Input) {
				in.Tier.RuntimeClass = config.RuntimeClass{Classes: []config.Class{{Name: "gvisor"}}, Floor: "gvisor", AtLeast: []string{"kata", "gvisor"}}
			}),
			[]string{`runtimeclass-required: spec.podTemplate.spec.runtimeClassName (runc): ` +
				`tier "standard" wants a RuntimeClass that isolates as gvisor does, or better. Fix: Set it to one of: gvisor.`},
		},
	}
	check(t, cases)
}

func TestEgressOfATier(t *testing.T) {
	const own = `{"metadata": {"name": "x"}, "spec": {"networkPolicy": {"egress": [
		{"to": [{"ipBlock": {"cidr": "198.51.100.0/24"}}, {"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}}}`
	ceiling := func(in *validation.Input) {
		in.Tier.Egress.Ceiling = "public"
		in.Platform = &config.Platform{EgressProfiles: map[string]config.EgressProfile{"public": {Internet: true}}}
	}
	services := func(in *validation.Input) {
		git := config.EgressProfile{Rules: []config.EgressRule{{Services: []config.EgressService{{Namespace: "tools", Name: "git"}}}}}
		in.Platform, _ = isolation.Resolve(&config.Platform{EgressProfiles: map[string]config.EgressProfile{"public": git, "none": git}}, isolation.Network{})
	}
	absent := func(profile string) []string {
		return []string{"warning egress-profile: metadata.annotations[platform.agents.x-k8s.io/egress-profile] (" + profile + "): Service tools/git opens nothing: " +
			"there is no such Service: create it, or remove it from the profile. Fix: Ask the platform team, or do without it: it is opened as soon as it can be."}
	}
	const chosen = `{"metadata": {"name": "x", "annotations": {"platform.agents.x-k8s.io/egress-profile": "everything"}}}`
	cases := map[string]struct {
		in   validation.Input
		want []string
	}{
		"an egress profile that the tier allows":  {creation("Sandbox", strings.Replace(chosen, "everything", "none", 1)), nil},
		"the tier's own egress profile":           {creation("SandboxTemplate", strings.Replace(chosen, "everything", "public", 1)), nil},
		"an egress profile on a claim is refused": {creation("SandboxClaim", `{"metadata": {"name": "x"}}`), nil},
		"an egress profile that the tier does not allow": {
			creation("Sandbox", chosen),
			[]string{`egress-profile: metadata.annotations[platform.agents.x-k8s.io/egress-profile] (everything): ` +
				`tier "standard" does not allow this egress profile. Fix: Choose one of: none, public; or remove the annotation.`},
		},
		"an egress profile whose Service is not there": {
			with(creation("SandboxTemplate", strings.Replace(chosen, "everything", "none", 1)), services), absent("none"),
		},
		"the tier's own, whose Service is not there": {with(creation("Sandbox", `{"metadata": {"name": "x"}}`), services), absent("public")},
		"the same, beside own rules of a template":   {with(creation("SandboxTemplate", own), services), nil},
		"the same, for a Sandbox that a controller makes": {
			with(creation("Sandbox", `{"metadata": {"name": "x"}}`), func(in *validation.Input) { services(in); in.Controller = true }), nil,
		},
		"own rules beyond the ceiling": {
			with(creation("SandboxTemplate", own), ceiling),
			[]string{`egress-ceiling: spec.networkPolicy.egress[0].to[1] (10.0.0.0/8): it covers 10.0.0.0: egress of tier "standard" goes no further ` +
				`than profile "public": leave that out by except, or narrow the range. Fix: Or ask the platform team for a namespace of another tier.`},
		},
		"own rules beyond a ceiling whose Service is not there": {
			with(creation("SandboxTemplate", strings.Replace(own, `, {"ipBlock": {"cidr": "10.0.0.0/8"}}`, "", 1)), func(in *validation.Input) {
				ceiling(in)
				in.Platform.EgressProfiles["public"] = config.EgressProfile{Rules: []config.EgressRule{{Services: []config.EgressService{{Namespace: "tools", Name: "git"}}}}}
				in.Platform, _ = isolation.Resolve(in.Platform, isolation.Network{})
			}),
			[]string{`egress-ceiling: spec.networkPolicy.egress[0].to[0] (198.51.100.0/24): it covers 198.51.100.0: egress of tier "standard" goes no further ` +
				`than profile "public" (Service tools/git opens nothing: there is no such Service: create it, or remove it from the profile): ` +
				`leave that out by except, or narrow the range. Fix: Or ask the platform team for a namespace of another tier.`},
		},
		"own rules beyond the ceiling, unmanaged": {
			with(creation("SandboxTemplate", strings.Replace(own, `"networkPolicy"`, `"networkPolicyManagement": "Unmanaged", "networkPolicy"`, 1)), ceiling), nil,
		},
		"own rules within the ceiling": {
			with(creation("SandboxTemplate", strings.Replace(own, "10.0.0.0/8", "203.0.113.0/24", 1)), ceiling), nil,
		},
		"a pool of a template whose own rules go beyond the ceiling": {
			with(creation("SandboxWarmPool", `{"metadata": {"name": "p"}}`), func(in *validation.Input) { ceiling(in); in.Template = decode(own) }),
			[]string{`warning egress-ceiling: template.spec.networkPolicy.egress[0].to[1] (<nil>): egress of tier "standard" does not go as far as this, ` +
				`so no Sandbox is made of the template. Fix: Ask its owner to narrow its rules, or the platform team for a namespace of another tier.`},
		},
		"a claim of a template with an egress profile that the tier does not allow": {
			with(creation("SandboxClaim", `{"metadata": {"name": "c"}}`), func(in *validation.Input) { in.Template = decode(chosen) }),
			[]string{`warning egress-profile: template.metadata.annotations[platform.agents.x-k8s.io/egress-profile] (everything): ` +
				`tier "standard" does not allow this egress profile, so no Sandbox is made of the template. ` +
				`Fix: Choose in the template one of: none, public; or remove the annotation.`},
		},
		"own rules where there is no ceiling": {creation("SandboxTemplate", own), nil},
	}
	check(t, cases)
}

func TestNames(t *testing.T) {
	const served = `{"metadata": {"name": "%s"}, "spec": {"service": true}}`
	long := strings.Repeat("a", 64)
	volumes := func(name string, vcts ...string) string {
		var list []string
		for _, vct := range vcts {
			list = append(list, `{"metadata": {"name": "`+vct+`"}}`)
		}
		return `{"metadata": {"name": "` + name + `"}, "spec": {"volumeClaimTemplates": [` + strings.Join(list, ",") + `]}}`
	}
	serviced := func(in *validation.Input) { in.Template = decode(`{"spec": {"service": true}}`) }
	borrowing := func(vcts ...string) func(in *validation.Input) {
		return func(in *validation.Input) {
			in.Template = decode(volumes("t", vcts...))
			in.Template["spec"].(map[string]any)["volumeClaimTemplatesPolicy"] = "Overrides"
			in.Effective = effective.OfClaim(in.Object, in.Template)
		}
	}
	relaxed := func(in *validation.Input) { in.RelaxedServiceNames = true }
	cases := map[string]struct {
		in validation.Input
		// fields are those of the expected faults.
		fields []string
	}{
		"a Service of a good name":                          {creation("Sandbox", fmt.Sprintf(served, "good-1")), nil},
		"a Service needs at most 63 characters":             {creation("Sandbox", fmt.Sprintf(served, long)), []string{"metadata.name"}},
		"a Service has no dot in its name":                  {creation("Sandbox", fmt.Sprintf(served, "a.b")), []string{"metadata.name"}},
		"a Service began with a letter before 1.36":         {creation("Sandbox", fmt.Sprintf(served, "1a")), []string{"metadata.name"}},
		"a Service may begin with a digit since":            {with(creation("Sandbox", fmt.Sprintf(served, "1a")), relaxed), nil},
		"without a Service a long name is good":             {creation("Sandbox", `{"metadata": {"name": "`+long+`"}}`), nil},
		"a name that is not known yet is not judged":        {creation("Sandbox", `{"metadata": {"generateName": "x-"}, "spec": {"service": true}}`), nil},
		"volumes of good names":                             {creation("Sandbox", volumes("x", "a", "b")), nil},
		"a volume without a name":                           {creation("Sandbox", volumes("x", "")), []string{"spec.volumeClaimTemplates[0].metadata.name"}},
		"two volumes of one name":                           {creation("SandboxTemplate", volumes("x", "a", "a")), []string{"spec.volumeClaimTemplates[1].metadata.name"}},
		"a volume with a dot in its name":                   {creation("SandboxTemplate", volumes("x", "a.b")), []string{"spec.volumeClaimTemplates[0].metadata.name"}},
		"a volume whose claim would have too long a name":   {creation("Sandbox", volumes(strings.Repeat("a", 250), "vol")), []string{"spec.volumeClaimTemplates[0].metadata.name"}},
		"a template whose NetworkPolicy's name is too long": {creation("SandboxTemplate", volumes(strings.Repeat("a", 239))), []string{"metadata.name"}},
		"a template whose NetworkPolicy's name just fits":   {creation("SandboxTemplate", volumes(strings.Repeat("a", 238))), nil},
		"a pool whose members have a Service":               {with(creation("SandboxWarmPool", volumes("a.b")), serviced), []string{"metadata.name"}},
		"a long pool name is cut for its members":           {with(creation("SandboxWarmPool", volumes(long)), serviced), nil},
		"a claim of a long name is warned of its template's volumes": {
			with(creation("SandboxClaim", volumes(strings.Repeat("a", 250))), borrowing("vol", "v")), []string{"warning metadata.name"},
		},
		"the name of a volume that it brings itself is refused": {
			with(creation("SandboxClaim", volumes(strings.Repeat("a", 250), "vol")), borrowing("vol")), []string{"spec.volumeClaimTemplates[0].metadata.name"},
		},
		"a claim whose template's volumes get good names": {with(creation("SandboxClaim", volumes(long)), borrowing("vol")), nil},
		"a claim is not told of its template's own fault": {with(creation("SandboxClaim", volumes("x")), borrowing("Vol")), nil},
		"a claim whose Sandbox has a Service is warned":   {with(creation("SandboxClaim", volumes("1a")), serviced), []string{"warning metadata.name"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var fields []string
			for _, f := range validation.Validate(tc.in) {
				if f.Rule != "names" || f.Remedy == "" {
					t.Errorf("unexpected fault %s: %v", f.Rule, f.Error)
				}
				prefix := ""
				if f.Warning {
					prefix = "warning "
				}
				fields = append(fields, prefix+f.Field)
			}
			if diff := cmp.Diff(tc.fields, fields); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	const pool = `{"metadata": {"name": "x"}, "spec": {"sandboxTemplateRef": {"name": "t"}}}`
	const claim = `{"metadata": {"name": "x"}, "spec": {"warmPoolRef": {"name": "p"}, "env": [{"name": "A", "value": "secret"}]}}`
	lost := func(in *validation.Input) { in.Template, in.Pool = nil, nil }
	cases := map[string]struct {
		in   validation.Input
		want []string
	}{
		"a pool whose template does not exist yet": {with(creation("SandboxWarmPool", pool), lost), []string{
			"warning reference: spec.sandboxTemplateRef.name (t): there is no SandboxTemplate yet, so nothing will start until it exists. " +
				"Fix: Create it, or correct the name.",
		}},
		"a claim whose pool does not exist yet": {with(creation("SandboxClaim", claim), lost), []string{
			"warning reference: spec.warmPoolRef.name (p): there is no SandboxWarmPool yet, so nothing will start until it exists. " +
				"Fix: Create it, or correct the name.",
		}},
		"a claim with a variable that its template does not take": {
			with(creation("SandboxClaim", claim), func(in *validation.Input) { in.Effective = effective.OfClaim(in.Object, in.Template) }),
			[]string{
				"warning claim-injection: spec.env (): the template does not let claims set variables: remove them, or ask for a template " +
					"whose envVarsInjectionPolicy is Allowed. Fix: Change the claim or the template: as it is, the claim gets no Sandbox.",
			},
		},
	}
	check(t, cases)
}

func TestErrorsLeavesWarningsOut(t *testing.T) {
	in := creation("Sandbox", `{"metadata": {"name": "1"}, "spec": {"service": true, "podTemplate": {"spec": {"runtimeClassName": "no"}}}}`)
	errs := validation.Errors(validation.Validate(in))
	if len(errs) != 1 || errs[0].Field != "metadata.name" {
		t.Errorf("Errors() = %v, want the one about metadata.name", errs)
	}
}

// The controller refuses the claim with the same rules; admission tells it at once.
func TestWhatAClaimAddsToItsPod(t *testing.T) {
	cases := map[string]struct {
		metadata string
		// want is the only fault; empty for none.
		want string
	}{
		"a label of the default domain":        {`{"labels": {"sandbox.users.io/a": "b"}}`, ""},
		"a label of a configured domain":       {`{"labels": {"team.example.com/a": "b"}}`, ""},
		"a label of a sub-domain":              {`{"labels": {"a.sandbox.users.io/a": "b"}}`, ""},
		"a label of a domain that ends alike":  {`{"labels": {"evilsandbox.users.io/a": "b"}}`, "labels[evilsandbox.users.io/a] (b): claims may not set labels of domain evilsandbox.users.io"},
		"a label of another domain":            {`{"labels": {"example.com/a": "b"}}`, "labels[example.com/a] (b): claims may not set labels of domain example.com"},
		"a label of Kubernetes":                {`{"labels": {"app.kubernetes.io/name": "b"}}`, "labels[app.kubernetes.io/name] (b): claims may not set labels of domain app.kubernetes.io"},
		"a label without a domain":             {`{"labels": {"a": "b"}}`, "labels[a] (b): a claim's label needs a domain"},
		"the router's label":                   {`{"labels": {"App": "Sandbox-Router"}}`, "labels[App] (Sandbox-Router): only the router has this label"},
		"a value that is none":                 {`{"labels": {"sandbox.users.io/a": "b c"}}`, "labels[sandbox.users.io/a] (b c): this is no value of a label"},
		"a key that is none":                   {`{"labels": {"sandbox.users.io/a b": "c"}}`, "labels[sandbox.users.io/a b] (c): this is no key of a label"},
		"a look-alike of the domain":           {`{"labels": {"sandbox.us\u0435rs.io/a": "b"}}`, "this is no key of a label"},
		"an annotation":                        {`{"annotations": {"example.com/a": "b c", "a": "b"}}`, ""},
		"an annotation of Kubernetes":          {`{"annotations": {"kubernetes.io/a": "b"}}`, "annotations[kubernetes.io/a] (b): claims may not set annotations of domain kubernetes.io"},
		"an annotation below it":               {`{"annotations": {"container.apparmor.security.beta.kubernetes.io/a": "b"}}`, "claims may not set annotations of domain container.apparmor"},
		"an annotation of k8s.io":              {`{"annotations": {"node.k8s.io/a": "b"}}`, "claims may not set annotations of domain node.k8s.io"},
		"the one that eviction needs":          {`{"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}}`, ""},
		"an annotation whose key is none":      {`{"annotations": {"a b": "c"}}`, "annotations[a b] (c): this is no key of an annotation"},
		"nothing":                              {`{}`, ""},
		"members that are no text are no news": {`{"labels": null, "annotations": 5}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := texts(validation.Validate(creation("SandboxClaim", `{"metadata": {"name": "c"}, "spec": {"warmPoolRef": {"name": "p"}, "additionalPodMetadata": `+tc.metadata+`}}`)))
			if tc.want == "" && len(got) == 0 {
				return
			}
			if tc.want == "" || len(got) != 1 || !strings.HasPrefix(got[0], "warning claim-injection: spec.additionalPodMetadata.") ||
				!strings.Contains(got[0], tc.want) || !strings.Contains(got[0], "so the claim gets no Sandbox") {
				t.Errorf("Validate() = %q, want one warning with %q", got, tc.want)
			}
		})
	}
}
