// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

const (
	ourController    = "system:serviceaccount:tools-west:q7-blue-controller"
	garbageCollector = "system:serviceaccount:kube-system:generic-garbage-collector"
	deletesNamespace = "system:serviceaccount:kube-system:namespace-controller"
	// controllerManager is who all controllers of Kubernetes are where they have one identity.
	controllerManager = "system:kube-controller-manager"

	podResource  = "pods.v1."
	kindResource = "sandboxes.v1beta1.agents.x-k8s.io"
)

// guard is one request and the rule that refuses it, none if it passes.
type guard struct {
	write
	want string
}

func checkGuards(t *testing.T, cases map[string]guard) {
	t.Helper()
	in := elsewhere
	in.set = []string{"backstop.rules=Always"}
	policies := backstop(t, render(t, in))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			messages := refusals(t, policies, tc.write)
			want := slices.DeleteFunc([]string{tc.want}, func(id string) bool { return id == "" })
			if diff := cmp.Diff(want, rulesOfRefusals(messages), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("refused by (-want +got):\n%s%s", diff, strings.Join(messages, "\n"))
			}
		})
	}
}

// meta is an object of that kind with more lines in its metadata and below it.
func meta(kind, inMetadata, below string) string {
	version := "v1"
	switch kind {
	case "Sandbox":
		version = "agents.x-k8s.io/v1beta1"
	case "SandboxTemplate", "SandboxClaim", "SandboxWarmPool":
		version = "extensions.agents.x-k8s.io/v1beta1"
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: one, namespace: tenant%s}\n%s", version, kind, inMetadata, below)
}

func TestLabelsOfTheControllers(t *testing.T) {
	labelled := func(kind, label, value string) string {
		return meta(kind, fmt.Sprintf(", labels: {app: a, %s: %q}", label, value), "")
	}
	plain := meta("Pod", ", labels: {app: a}", "")
	ours := labelled("Pod", keys.SandboxNameHash, "00000000")
	handedOver := labelled("Pod", keys.Adoptable, "true")
	checkGuards(t, map[string]guard{
		"a Pod that joins a Sandbox's Service": {write{resource: podResource, object: ours}, "reserved-metadata"},
		"a Pod that picks an egress profile":   {write{resource: podResource, object: labelled("Pod", keys.EgressProfile, "public")}, "reserved-metadata"},
		"a label by way of the scheduler": {
			write{resource: "pods/binding.v1.", object: labelled("Binding", keys.SandboxNameHash, "00000000")}, "reserved-metadata",
		},
		"the same, by the old way": {
			write{resource: "bindings.v1.", object: labelled("Binding", keys.Sandbox, "true")}, "reserved-metadata",
		},
		"a Binding of the scheduler's": {
			write{user: "system:kube-scheduler", resource: "pods/binding.v1.", object: labelled("Binding", "topology.kubernetes.io/zone", "a")}, "",
		},
		"a Service": {
			write{resource: "services.v1.", object: labelled("Service", keys.ClaimUID, "u")}, "reserved-metadata",
		},
		"a volume claim": {
			write{resource: "persistentvolumeclaims.v1.", object: labelled("PersistentVolumeClaim", keys.SandboxNameHash, "x")}, "reserved-metadata",
		},
		"a ReplicaSet's Pod": {
			write{user: "system:serviceaccount:kube-system:replicaset-controller", resource: podResource, object: ours}, "reserved-metadata",
		},
		"a Deployment's, where the controller manager has one identity": {
			write{user: controllerManager, resource: podResource, object: ours}, "reserved-metadata",
		},
		"the controller manager marks a Pod": {write{user: controllerManager, resource: "pods/status.v1.", object: ours, old: plain}, ""},
		"a label that changes":               {write{resource: podResource, object: labelled("Pod", keys.SandboxNameHash, "1"), old: ours}, "reserved-metadata"},
		"a label that is taken off":          {write{resource: podResource, object: plain, old: ours}, "reserved-metadata"},
		"a label that appears":               {write{resource: podResource, object: ours, old: plain}, "reserved-metadata"},
		"a label by way of the status":       {write{resource: "pods/status.v1.", object: ours, old: plain}, "reserved-metadata"},
		"all labels taken off":               {write{resource: podResource, object: meta("Pod", "", ""), old: ours}, "reserved-metadata"},
		"a label of the user's own":          {write{resource: podResource, object: plain}, ""},
		"a domain that looks like ours":      {write{resource: podResource, object: labelled("Pod", "notagents.x-k8s.io/a", "x")}, ""},
		"no label at all":                    {write{resource: podResource, object: meta("Pod", "", "")}, ""},
		"a hand-over by its user":            {write{resource: podResource, object: handedOver}, ""},
		"one in a tier that allows it":       {write{resource: podResource, object: handedOver, tier: "trusted"}, ""},
		"one in a tier that refuses it":      {write{resource: podResource, object: handedOver, tier: "restricted"}, "reserved-metadata"},
		"one in a tier without a name":       {write{resource: podResource, object: handedOver, emptyTier: true}, ""},
		"one in a tier that is none":         {write{resource: podResource, object: handedOver, tier: "lax"}, "reserved-metadata"},
		"one that comes with an update":      {write{resource: podResource, object: handedOver, old: plain, tier: "restricted"}, "reserved-metadata"},
		"one that stays":                     {write{resource: podResource, object: handedOver, old: handedOver, tier: "restricted"}, ""},
		"one that is taken back":             {write{resource: podResource, object: plain, old: handedOver, tier: "restricted"}, ""},
		"a user's label beside ours":         {write{resource: podResource, object: strings.Replace(ours, "app: a", "app: b", 1), old: ours}, ""},
		"a kubelet's status beside ours":     {write{user: "system:node:one", resource: "pods/status.v1.", object: ours, old: ours}, ""},
		"our controller":                     {write{user: ourController, resource: podResource, object: ours}, ""},
		"a controller of another release":    {write{user: "system:serviceaccount:tenant:q7-blue-controller", resource: podResource, object: ours}, "reserved-metadata"},
		"an administrator":                   {write{may: "*", resource: podResource, object: ours}, ""},
		"a restore tool with the right":      {write{may: "bypass backstop/labels", resource: podResource, object: ours}, ""},
		"one with another right":             {write{may: "bypass backstop/pods", resource: podResource, object: ours}, "reserved-metadata"},
	})
}

// Whoever hands something over where nothing is adopted hears why, and that the tier says so.
func TestARefusedHandOverNamesTheTier(t *testing.T) {
	pod := meta("Pod", fmt.Sprintf(", labels: {%s: %q}", keys.Adoptable, "true"), "")
	got := refusals(t, backstop(t, render(t, elsewhere)), write{resource: podResource, object: pod, tier: "restricted"})
	want := []string{"reserved-metadata: metadata.labels[" + keys.Adoptable + "] (true): tier restricted allows no adoption. " +
		"Fix: Leave the label out; the Sandbox makes what it needs itself."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refused with (-want +got):\n%s", diff)
	}
}

func TestOwnersAndNamesOfOurKinds(t *testing.T) {
	owned := func(owner string) string {
		return meta("Sandbox", ", ownerReferences: [{"+owner+", name: x, uid: u}]", "")
	}
	claimed := owned("apiVersion: extensions.agents.x-k8s.io/v1beta1, kind: SandboxClaim, controller: true")
	plain := meta("Sandbox", "", "")
	created := func(object string) write { return write{resource: kindResource, object: object} }
	checkGuards(t, map[string]guard{
		"the Pod's own name": {created(meta("Sandbox", `, annotations: {agents.x-k8s.io/pod-name: one}`, hardenedSpec)), ""},
		"another Pod's name": {created(meta("Sandbox", `, annotations: {agents.x-k8s.io/pod-name: two}`, hardenedSpec)), "reserved-metadata"},
		"another Pod's name that it has": {write{
			resource: kindResource, object: meta("Sandbox", `, annotations: {agents.x-k8s.io/pod-name: two, a: b}`, hardenedSpec),
			old: meta("Sandbox", `, annotations: {agents.x-k8s.io/pod-name: two}`, hardenedSpec),
		}, ""},
		"somebody else as the creator": {
			write{user: "ann", resource: kindResource, object: meta("Sandbox", `, annotations: {platform.agents.x-k8s.io/creator: bob}`, hardenedSpec)},
			"reserved-metadata",
		},
		"the writer as the creator": {
			write{user: "ann", resource: kindResource, object: meta("Sandbox", `, annotations: {platform.agents.x-k8s.io/creator: ann}`, hardenedSpec)}, "",
		},
		"the writer as the creator of what was another's": {write{
			user: "ann", resource: kindResource, object: meta("Sandbox", `, annotations: {platform.agents.x-k8s.io/creator: ann}`, hardenedSpec),
			old: meta("Sandbox", `, annotations: {platform.agents.x-k8s.io/creator: bob}`, hardenedSpec),
		}, "reserved-metadata"},
		"a creator that the object has": {write{
			user: "ann", resource: kindResource, object: meta("Sandbox", `, annotations: {platform.agents.x-k8s.io/creator: bob, a: b}`, hardenedSpec),
			old: meta("Sandbox", `, annotations: {platform.agents.x-k8s.io/creator: bob}`, hardenedSpec),
		}, ""},
		"a forged owner":         {write{resource: kindResource, object: claimed, old: plain}, "forged-owner"},
		"an owner that goes":     {write{resource: kindResource, object: plain, old: claimed}, "forged-owner"},
		"an owner that stays":    {write{resource: kindResource, object: claimed, old: claimed}, ""},
		"an owner of the user's": {write{resource: kindResource, object: owned("apiVersion: apps/v1, kind: Deployment, controller: true"), old: plain}, ""},
		"one that controls nothing": {
			write{resource: kindResource, object: owned("apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox"), old: plain}, "",
		},
		"the garbage collector": {write{user: garbageCollector, resource: kindResource, object: plain, old: claimed}, ""},
		"our controller":        {write{user: ourController, resource: kindResource, object: claimed, old: plain}, ""},
		"one on its way out": {write{
			resource: kindResource, object: plain,
			old: strings.Replace(claimed, "name: one", "name: one, deletionTimestamp: 2026-11-29T00:00:00Z", 1),
		}, ""},
		"the platform's own namespace": {write{
			resource: kindResource, object: meta("Sandbox", "", hardenedSpec), namespace: "tools-west",
		}, "platform-namespace"},
		"kube-system": {write{
			resource: "sandboxclaims.v1beta1.extensions.agents.x-k8s.io", object: meta("SandboxClaim", "", ""), namespace: "kube-system",
		}, "platform-namespace"},
		"a tier that does not exist":   {write{resource: kindResource, object: meta("Sandbox", "", hardenedSpec), tier: "lax"}, "tier"},
		"a tier without a name":        {write{resource: kindResource, object: meta("Sandbox", "", hardenedSpec), emptyTier: true}, ""},
		"a fault that is there before": {write{resource: kindResource, object: meta("Sandbox", ", labels: {a: b}", "spec: {podTemplate: {spec: {hostPID: true}}}"), old: meta("Sandbox", "", "spec: {podTemplate: {spec: {hostPID: true}}}")}, ""},
	})
}

const hardenedSpec = "spec: {podTemplate: {spec: {automountServiceAccountToken: false, containers: [{name: a, image: \"a:1\"}]}}}"

// The keys that users may write are those of the table in Go.
func TestTheBackstopKnowsTheTableOfKeys(t *testing.T) {
	policies := backstop(t, render(t, elsewhere))
	reserved := []string{
		keys.SandboxNameHash, keys.WarmPoolSandbox, keys.SandboxTemplateRefHash, keys.LaunchType, keys.ClaimUID, keys.Adoptable,
		keys.SandboxTemplateRef, keys.SandboxName, keys.ClaimFirstReadyAt, keys.Tier, keys.Sandbox, keys.Ingress, keys.Template, keys.RetainedBy, keys.RetainedFor, keys.MaxLifetime, "new.agents.x-k8s.io/a",
	}
	for _, key := range keys.UserKeys() {
		reserved = append(reserved, key.Name)
	}
	kindsOf := map[string]string{
		"Sandbox": "sandboxes.v1beta1.agents.x-k8s.io", "SandboxTemplate": "sandboxtemplates.v1beta1.extensions.agents.x-k8s.io",
		"SandboxClaim": "sandboxclaims.v1beta1.extensions.agents.x-k8s.io", "SandboxWarmPool": "sandboxwarmpools.v1beta1.extensions.agents.x-k8s.io",
	}
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	for form, member := range map[keys.Form]string{keys.Label: "labels", keys.Annotation: "annotations"} {
		for kind, resource := range kindsOf {
			for _, key := range reserved {
				t.Run(fmt.Sprintf("%s %s of a %s", form, key, kind), func(t *testing.T) {
					value := validValue(key, now)
					if other := "x-" + value; isListed(key) {
						if got := refusals(t, policies, write{user: "ann", resource: resource, object: meta(kind, fmt.Sprintf(", %s: {%s: %q}", member, key, other), "")}); len(got) == 0 {
							t.Errorf("the backstop takes %q", other)
						}
					}
					object := meta(kind, fmt.Sprintf(", %s: {%s: %q}", member, key, value), "")
					subject := keys.Subject{Kind: kind, Name: "one", User: "ann", Now: now}
					allowed := keys.CheckUser(form, key, value, subject) == nil
					if got := refusals(t, policies, write{user: "ann", resource: resource, object: object}); allowed != (len(got) == 0) {
						t.Errorf("allowed on creation: %t, and the backstop says %q", allowed, got)
					}
					subject.Stored = true
					addable := keys.CheckUser(form, key, value, subject) == nil
					if got := refusals(t, policies, write{user: "ann", resource: resource, object: object, old: meta(kind, "", "")}); addable != (len(got) == 0) {
						t.Errorf("allowed later: %t, and the backstop says %q", addable, got)
					}
					got := refusals(t, policies, write{user: "ann", resource: resource, object: meta(kind, "", ""), old: object})
					if allowed != (len(got) == 0) {
						t.Errorf("may be removed: %t, and the backstop says %q", allowed, got)
					}
				})
			}
		}
	}
}

// isListed says whether users may write only some values of a key.
func isListed(key string) bool {
	return slices.ContainsFunc(keys.UserKeys(), func(k keys.Key) bool { return k.Name == key && len(k.Values) > 0 })
}

func validValue(key string, now time.Time) string {
	for _, k := range keys.UserKeys() {
		if k.Name == key && len(k.Values) > 0 {
			return k.Values[0]
		}
	}
	return map[string]string{keys.PodName: "one", keys.Creator: "ann", keys.ControllerFirstObservedAt: now.Format(time.RFC3339), keys.BindTimeout: "30s"}[key]
}

func TestOwnersOfWhatASandboxMakes(t *testing.T) {
	owned := func(kind, owner string) string {
		return meta(kind, ", ownerReferences: [{"+owner+", name: x, uid: u}]", "")
	}
	const sandbox = "apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox, controller: true"
	pod, plain := owned("Pod", sandbox), meta("Pod", "", "")
	moved := strings.Replace(pod, "uid: u", "uid: v", 1)
	checkGuards(t, map[string]guard{
		"a Pod":                                       {write{resource: podResource, object: pod}, "forged-owner"},
		"a Pod that gets the owner":                   {write{resource: podResource, object: pod, old: plain}, "forged-owner"},
		"a Pod that gets another one":                 {write{resource: podResource, object: moved, old: pod}, "forged-owner"},
		"by way of the status":                        {write{resource: "pods/status.v1.", object: pod, old: plain}, "forged-owner"},
		"a Service":                                   {write{resource: "services.v1.", object: owned("Service", sandbox)}, "forged-owner"},
		"a volume claim":                              {write{resource: "persistentvolumeclaims.v1.", object: owned("PersistentVolumeClaim", sandbox)}, "forged-owner"},
		"a Pod of a claim's":                          {write{resource: podResource, object: owned("Pod", "apiVersion: extensions.agents.x-k8s.io/v1beta1, kind: SandboxClaim, controller: true")}, "forged-owner"},
		"an owner that stays":                         {write{resource: podResource, object: pod, old: pod}, ""},
		"an owner of the user's":                      {write{resource: podResource, object: owned("Pod", "apiVersion: apps/v1, kind: ReplicaSet, controller: true")}, ""},
		"one that controls nothing":                   {write{resource: podResource, object: owned("Pod", "apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox")}, ""},
		"no owner":                                    {write{resource: podResource, object: plain}, ""},
		"our controller":                              {write{user: ourController, resource: podResource, object: pod}, ""},
		"the garbage collector":                       {write{user: garbageCollector, resource: podResource, object: pod, old: plain}, ""},
		"a Pod that a controller of Kubernetes makes": {write{user: controllerManager, resource: podResource, object: pod}, "forged-owner"},
		"an administrator":                            {write{may: "*", resource: podResource, object: pod}, ""},
		"a restore tool with the right":               {write{may: "bypass backstop/owners", resource: podResource, object: pod}, ""},
		"one with another right":                      {write{may: "bypass backstop/labels", resource: podResource, object: pod}, "forged-owner"},
	})
}

func TestNetworkPoliciesOfTheControllers(t *testing.T) {
	policy := func(manager, profile string) string {
		return fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n"+
			"metadata: {name: agent-sandbox-deny-all, namespace: tenant, labels: {%s: %s}}\nspec: {podSelector: {matchLabels: {a: %s}}}", keys.ManagedBy, manager, profile)
	}
	ours, opened, others := policy(isolation.Manager, "b"), policy(isolation.Manager, "c"), policy("somebody", "b")
	const resource, refused = "networkpolicies.v1.networking.k8s.io", "managed-network-policy"
	checkGuards(t, map[string]guard{
		"one that is deleted":            {write{resource: resource, old: ours}, refused},
		"one that is changed":            {write{resource: resource, object: opened, old: ours}, refused},
		"one that loses its label":       {write{resource: resource, object: others, old: ours}, refused},
		"one that gets the label":        {write{resource: resource, object: ours, old: others}, refused},
		"one that is made with it":       {write{resource: resource, object: ours}, refused},
		"one of the tenant's is made":    {write{resource: resource, object: others}, ""},
		"one of the tenant's is deleted": {write{resource: resource, old: others}, ""},
		"our controller makes":           {write{user: ourController, resource: resource, object: ours}, ""},
		"our controller repairs":         {write{user: ourController, resource: resource, object: ours, old: opened}, ""},
		"a namespace is deleted":         {write{user: deletesNamespace, resource: resource, old: ours}, ""},
		"a template is deleted":          {write{user: garbageCollector, resource: resource, old: ours}, ""},
		"an administrator deletes":       {write{may: "*", resource: resource, old: ours}, ""},
	})
}

func TestPodsOfSandboxesStayAsTheyAre(t *testing.T) {
	pod := func(inMetadata, spec string) string {
		return meta("Pod", ", labels: {"+keys.Sandbox+": \"true\"}"+inMetadata, "spec: {containers: [{name: a, image: a}]"+spec+"}")
	}
	ours, foreign := pod("", ""), meta("Pod", "", "spec: {}")
	owned := pod(", ownerReferences: [{apiVersion: agents.x-k8s.io/v1beta1, kind: Sandbox, name: one, uid: u, controller: true}]", "")
	debugged := pod("", ", ephemeralContainers: [{name: b, image: b}]")
	checkGuards(t, map[string]guard{
		"another image":                {write{resource: podResource, object: strings.Replace(ours, "image: a", "image: b", 1), old: ours}, "sandbox-pod"},
		"an ephemeral container":       {write{resource: "pods/ephemeralcontainers.v1.", object: debugged, old: ours}, "sandbox-pod"},
		"another size":                 {write{resource: "pods/resize.v1.", object: pod("", ", resources: {limits: {cpu: 1}}"), old: ours}, "sandbox-pod"},
		"an owner that goes":           {write{resource: podResource, object: ours, old: owned}, "sandbox-pod"},
		"an annotation of the user's":  {write{resource: podResource, object: pod(", annotations: {a: b}", ""), old: ours}, ""},
		"a Pod of nobody's":            {write{resource: "pods/ephemeralcontainers.v1.", object: meta("Pod", "", "spec: {a: b}"), old: foreign}, ""},
		"our controller adopts":        {write{user: ourController, resource: podResource, object: owned, old: ours}, ""},
		"a node":                       {write{user: "system:node:a", groups: []string{"system:nodes"}, resource: podResource, object: debugged, old: ours}, ""},
		"an administrator looks at it": {write{may: "*", resource: "pods/ephemeralcontainers.v1.", object: debugged, old: ours}, ""},
	})
}

func TestTiersOfNamespaces(t *testing.T) {
	ns := func(labels string) string {
		return "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {a: b" + labels + "}}"
	}
	tier := func(name string) string { return ns(", " + keys.Tier + ": " + name) }
	const resource = "namespaces.v1."
	checkGuards(t, map[string]guard{
		"without a tier":                     {write{resource: resource, object: ns("")}, ""},
		"a tier that nobody gave":            {write{resource: resource, object: tier("trusted")}, "tier"},
		"a tier that may be used":            {write{may: "use tiers/trusted", resource: resource, object: tier("trusted")}, ""},
		"another than that":                  {write{may: "use tiers/restricted", resource: resource, object: tier("trusted"), old: tier("restricted")}, "tier"},
		"a tier that does not exist":         {write{may: "*", resource: resource, object: tier("lax")}, "tier"},
		"a tier that is kept":                {write{resource: resource, object: tier("restricted"), old: tier("restricted")}, ""},
		"one that does not exist, kept":      {write{resource: resource, object: tier("lax"), old: tier("lax")}, ""},
		"by way of the status":               {write{resource: "namespaces/status.v1.", object: tier("trusted"), old: tier("restricted")}, "tier"},
		"by way of finalizing it":            {write{resource: "namespaces/finalize.v1.", object: tier("trusted"), old: tier("restricted")}, "tier"},
		"finalized by who deletes it":        {write{user: deletesNamespace, resource: "namespaces/finalize.v1.", object: tier("restricted"), old: tier("restricted")}, ""},
		"the label taken off":                {write{resource: resource, object: ns(""), old: tier("restricted")}, "tier"},
		"taken off by who may use that tier": {write{may: "use tiers/standard", resource: resource, object: ns(""), old: tier("restricted")}, ""},
	})
	got := refusals(t, backstop(t, render(t, elsewhere)), write{may: "*", resource: resource, object: tier("lax")})
	if len(got) != 1 || !strings.Contains(got[0], "(lax)") || !strings.Contains(got[0], "restricted, standard, trusted") {
		t.Errorf("refused with %q, want the value and the list", got)
	}
}

func TestNoRightsForTheCodeInASandbox(t *testing.T) {
	binding := func(kind, subjects string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: one}\nsubjects: [" + subjects + "]"
	}
	const (
		resource, clusterResource = "rolebindings.v1.rbac.authorization.k8s.io", "clusterrolebindings.v1.rbac.authorization.k8s.io"
		fallback                  = "{kind: ServiceAccount, name: default, namespace: tenant}"
		named                     = "{kind: ServiceAccount, name: sandbox-python, namespace: tenant}"
		robot                     = "{kind: ServiceAccount, name: robot, namespace: tenant}"
		refused                   = "sandbox-credentials"
	)
	one := binding("RoleBinding", fallback)
	checkGuards(t, map[string]guard{
		"the default account":                  {write{resource: resource, object: one}, refused},
		"the default account, with a tier":     {write{resource: resource, object: one, tier: "standard"}, refused},
		"the default account of elsewhere":     {write{resource: resource, object: one, namespace: "another"}, refused},
		"one for all that has no Sandbox":      {write{resource: resource, object: one, namespace: "kube-system"}, refused},
		"an account where no Sandbox can be":   {write{resource: resource, object: binding("RoleBinding", "{kind: ServiceAccount, name: default, namespace: kube-system}")}, ""},
		"such a one of the platform's":         {write{resource: resource, object: binding("RoleBinding", "{kind: ServiceAccount, name: default, namespace: tools-west}")}, ""},
		"such a one as a user":                 {write{resource: resource, object: binding("RoleBinding", "{kind: User, name: \"system:serviceaccount:kube-system:default\"}")}, ""},
		"all of those":                         {write{resource: resource, object: binding("RoleBinding", "{kind: Group, name: \"system:serviceaccounts:kube-system\"}")}, ""},
		"a namespace that looks like those":    {write{resource: resource, object: binding("RoleBinding", "{kind: User, name: \"system:serviceaccount:kube-system-2:default\"}")}, refused},
		"a group that looks like those":        {write{resource: resource, object: binding("RoleBinding", "{kind: Group, name: \"system:serviceaccounts:kube-system-2\"}")}, refused},
		"an account by its name":               {write{resource: resource, object: binding("RoleBinding", robot+","+named)}, refused},
		"an account as a user":                 {write{resource: resource, object: binding("RoleBinding", "{kind: User, name: \"system:serviceaccount:x:default\"}")}, refused},
		"every account":                        {write{resource: resource, object: binding("RoleBinding", "{kind: Group, name: \"system:serviceaccounts\"}")}, refused},
		"every account of a namespace":         {write{resource: resource, object: binding("RoleBinding", "{kind: Group, name: \"system:serviceaccounts:tenant\"}")}, refused},
		"an account of the tenant's":           {write{resource: resource, object: binding("RoleBinding", robot)}, ""},
		"a person":                             {write{resource: resource, object: binding("RoleBinding", "{kind: User, name: bob}")}, ""},
		"a binding that has it":                {write{resource: resource, object: binding("RoleBinding", robot+","+fallback), old: one}, ""},
		"a binding that gets it":               {write{resource: resource, object: one, old: binding("RoleBinding", robot)}, refused},
		"an administrator":                     {write{may: "*", resource: resource, object: one}, ""},
		"the whole cluster":                    {write{resource: clusterResource, object: binding("ClusterRoleBinding", fallback)}, refused},
		"the whole cluster, by a person":       {write{resource: clusterResource, object: binding("ClusterRoleBinding", "{kind: User, name: bob}")}, ""},
		"the whole cluster, where none can be": {write{resource: clusterResource, object: binding("ClusterRoleBinding", "{kind: ServiceAccount, name: default, namespace: kube-system}")}, ""},
		"the whole cluster, administrator":     {write{may: "bypass backstop/clusterrolebindings", resource: clusterResource, object: binding("ClusterRoleBinding", fallback)}, ""},
	})
}
