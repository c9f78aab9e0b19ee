// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/release"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// rules returns every rule of a release with the name of its role.
func rules(r rendered) map[string][]rbacv1.PolicyRule {
	found := map[string][]rbacv1.PolicyRule{}
	for _, role := range all[*rbacv1.ClusterRole](r) {
		found["ClusterRole "+role.Name] = role.Rules
	}
	for _, role := range all[*rbacv1.Role](r) {
		found["Role "+role.Name] = role.Rules
	}
	return found
}

func TestRolesAreNarrow(t *testing.T) {
	for name, list := range rules(render(t, install{})) {
		for _, rule := range list {
			if slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*") {
				t.Errorf("%s has a wildcard: %v", name, rule)
			}
			for _, resource := range rule.Resources {
				if tooWide(name, rule, resource) {
					t.Errorf("%s may %v %s", name, rule.Verbs, resource)
				}
			}
		}
	}
}

// tooWide says whether a role could become anything in the cluster by a rule, as far as
// one of its resources goes.
func tooWide(role string, rule rbacv1.PolicyRule, resource string) bool {
	allowed := func(verbs ...string) bool {
		return !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(verbs, verb) })
	}
	switch resource {
	case "clusterroles", "clusterrolebindings", "roles", "rolebindings", "serviceaccounts", "serviceaccounts/token":
		return true
	case "nodes":
		return !allowed("get", "list", "watch")
	case "pods/exec": // only a tenant works in a Sandbox
		return role != "ClusterRole agent-sandbox-edit.agent-sandbox-system"
	case "secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations":
		everywhere := resource == "secrets" && strings.HasPrefix(role, "ClusterRole")
		return everywhere || len(rule.ResourceNames) == 0
	case "leases":
		return len(rule.ResourceNames) == 0 && !allowed("create")
	default:
		return false
	}
}

// make generate writes these files from the markers in the code.
func TestRolesHoldTheGeneratedRules(t *testing.T) {
	r := render(t, install{})
	for _, component := range []string{"controller", "webhook"} {
		data, err := os.ReadFile(filepath.Join(chartDir, "files", component+"-role.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var generated rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict(data, &generated); err != nil {
			t.Fatalf("%s: %v", component, err)
		}
		role := named[*rbacv1.ClusterRole](t, r, "agent-sandbox-"+component+".agent-sandbox-system")
		if diff := cmp.Diff(generated.Rules, role.Rules[:len(generated.Rules)]); diff != "" || len(generated.Rules) == 0 {
			t.Errorf("rules of the %s (-generated +rendered):\n%s", component, diff)
		}
	}
}

func allows(list []rbacv1.PolicyRule, verb, group, resource, name string) bool {
	return slices.ContainsFunc(list, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Verbs, verb) && slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, name))
	})
}

// Reports are a kind of others, so the controller may write them only where it does.
func TestReportsMayBeWrittenWhereTheyAre(t *testing.T) {
	for name, tc := range map[string]struct {
		set  []string
		want bool
	}{
		"by default":           {nil, true},
		"without reports":      {[]string{"audit.reports=false"}, false},
		"without an audit":     {[]string{"audit.enabled=false"}, false},
		"without both of them": {[]string{"audit.enabled=false", "audit.reports=false"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := elsewhere
			in.set = tc.set
			list := rules(render(t, in))
			cluster, namespace := list["ClusterRole q7-blue-controller.tools-west"], list["Role q7-blue-controller"]
			for verb, resource := range map[string]string{"patch": "reports", "delete": "reports", "watch": "customresourcedefinitions"} {
				group := map[string]string{"reports": "openreports.io", "customresourcedefinitions": "apiextensions.k8s.io"}[resource]
				if got := allows(cluster, verb, group, resource, "reports.openreports.io"); got != tc.want {
					t.Errorf("the controller may %s %s: %t, want %t", verb, resource, got, tc.want)
				}
			}
			if allows(cluster, "watch", "apiextensions.k8s.io", "customresourcedefinitions", "another") {
				t.Error("the controller may watch every definition")
			}
			if !allows(namespace, "watch", "", "configmaps", "any") {
				t.Error("the controller may not watch policies, so claims would get no waiting Sandbox")
			}
		})
	}
}

func TestTheWebhookMayFillWhatTheChartLeavesEmpty(t *testing.T) {
	const registration = "admissionregistration.k8s.io"
	for provider, want := range map[string]bool{"self": true, "cert-manager": false} {
		in := elsewhere
		in.set = []string{"certificates.provider=" + provider}
		r := render(t, in)
		h := webhooks(t, r)
		list := rules(r)
		cluster, namespace := list["ClusterRole q7-blue-webhook.tools-west"], list["Role q7-blue-webhook"]
		for _, verb := range []string{"get", "list", "watch", "update"} {
			trusts := allows(cluster, verb, registration, "mutatingwebhookconfigurations", h.mutateObject.GetName()) &&
				allows(cluster, verb, registration, "validatingwebhookconfigurations", h.validateObject.GetName())
			if trusts != (want || verb == "get") {
				t.Errorf("provider %s: the webhook may %s its configurations: %t", provider, verb, trusts)
			}
			if serves := allows(namespace, verb, "", "secrets", "q7-blue-webhook-cert"); serves != want {
				t.Errorf("provider %s: the webhook may %s its certificate: %t, want %t", provider, verb, serves, want)
			}
		}
		if allows(cluster, "update", registration, "validatingwebhookconfigurations", "another") ||
			allows(namespace, "get", "", "secrets", "another") || allows(namespace, "list", "", "secrets", "another") {
			t.Errorf("provider %s: the webhook may change what is not its own", provider)
		}
		if !allows(namespace, "watch", "", "configmaps", "any") {
			t.Errorf("provider %s: the webhook may not watch policies", provider)
		}
		if !allows(namespace, "create", "events.k8s.io", "events", "") {
			t.Errorf("provider %s: the webhook may not tell of a broken policy", provider)
		}
	}
}

// A ceiling may name Services, and what these open is what the webhook judges by.
func TestTheWebhookReadsServicesWhereAProfileNamesThem(t *testing.T) {
	for name, tc := range map[string]struct {
		rule string
		want bool
	}{
		"by ranges alone": {`{cidrs: [203.0.113.0/24]}`, false},
		"by a Service":    {`{services: [{namespace: tools, name: git}]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			if err := yaml.Unmarshal([]byte("platform: {egressProfiles: {build: {rules: ["+tc.rule+"]}}}"), &values); err != nil {
				t.Fatal(err)
			}
			r, err := install{}.tryValues(values)
			if err != nil {
				t.Fatal(err)
			}
			list := rules(r)["ClusterRole agent-sandbox-webhook.agent-sandbox-system"]
			for _, verb := range []string{"get", "list", "watch"} {
				if got := allows(list, verb, "", "services", "git"); got != tc.want {
					t.Errorf("the webhook may %s Services: %t, want %t", verb, got, tc.want)
				}
			}
			if allows(list, "create", "", "services", "git") || allows(list, "patch", "", "services", "git") {
				t.Error("the webhook may change Services")
			}
		})
	}
}

func TestTheControllerLeadsInItsNamespace(t *testing.T) {
	list := rules(render(t, elsewhere))["Role q7-blue-controller"]
	for _, verb := range []string{"get", "update", "create"} {
		if !allows(list, verb, "coordination.k8s.io", "leases", "a3317529.agent-sandbox.x-k8s.io") {
			t.Errorf("the controller may not %s its lease", verb)
		}
	}
	if allows(list, "update", "coordination.k8s.io", "leases", "another") {
		t.Error("the controller may take any lease")
	}
}

func TestTenantsRoles(t *testing.T) {
	aggregation := func(set ...string) map[string][]string {
		found := map[string][]string{}
		for _, role := range all[*rbacv1.ClusterRole](render(t, install{set: set})) {
			for label := range role.Labels {
				if to, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); ok {
					found[role.Name] = append(found[role.Name], to)
				}
			}
			slices.Sort(found[role.Name])
		}
		return found
	}
	want := map[string][]string{
		"agent-sandbox-view.agent-sandbox-system": {"admin", "edit", "view"},
		"agent-sandbox-edit.agent-sandbox-system": {"admin", "edit"},
	}
	got := aggregation()
	for name, to := range got {
		if len(to) == 0 {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("aggregation (-want +got):\n%s", diff)
	}
	for name, to := range aggregation("rbac.aggregateClusterRoles=false") {
		if len(to) > 0 {
			t.Errorf("%s is added to %v though aggregation is off", name, to)
		}
	}
	list := rules(render(t, install{}))
	view, edit := list["ClusterRole agent-sandbox-view.agent-sandbox-system"], list["ClusterRole agent-sandbox-edit.agent-sandbox-system"]
	for resource, group := range map[string]string{
		"sandboxes": "agents.x-k8s.io", "sandboxtemplates": "extensions.agents.x-k8s.io",
		"sandboxwarmpools": "extensions.agents.x-k8s.io", "sandboxclaims": "extensions.agents.x-k8s.io",
	} {
		if !allows(view, "watch", group, resource, "") || !allows(edit, "create", group, resource, "") || allows(view, "create", group, resource, "") {
			t.Errorf("the roles of tenants are wrong for %s", resource)
		}
	}
}

// The clean-up runs when nothing of ours does any more, before Helm deletes the rest.
func TestCleanUpStandsAlone(t *testing.T) {
	r := render(t, elsewhere)
	h := webhooks(t, r)
	weights := map[string]string{}
	for _, o := range r.objects {
		if !o.hook {
			if strings.HasSuffix(o.GetName(), "cleanup") {
				t.Errorf("%s is no hook, so it is gone or stays at the wrong time", o)
			}
			continue
		}
		if o.GetLabels()["app.kubernetes.io/component"] == "preflight" {
			continue
		}
		weights[o.GetKind()] = o.GetAnnotations()["helm.sh/hook-weight"]
		for key, want := range map[string]string{"helm.sh/hook": "pre-delete", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"} {
			if got := o.GetAnnotations()[key]; got != want {
				t.Errorf("%s: %s is %q, want %q", o, key, got, want)
			}
		}
	}
	want := map[string]string{"ServiceAccount": "-10", "ClusterRole": "-10", "ClusterRoleBinding": "-5", "Job": "0"}
	if diff := cmp.Diff(want, weights); diff != "" {
		t.Errorf("weights of the hooks (-want +got):\n%s", diff)
	}
	job := named[*batchv1.Job](t, r, "q7-blue-cleanup")
	if job.Spec.ActiveDeadlineSeconds == nil || job.Spec.TTLSecondsAfterFinished != nil {
		t.Errorf("deadline %v, time to live %v, want a deadline only", job.Spec.ActiveDeadlineSeconds, job.Spec.TTLSecondsAfterFinished)
	}
	spec := job.Spec.Template.Spec
	if len(spec.Volumes) > 0 || *spec.AutomountServiceAccountToken != true {
		t.Error("the clean-up depends on other objects of the release")
	}
	list := rules(r)["ClusterRole q7-blue-cleanup.tools-west"]
	if !allows(list, "delete", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", h.mutateObject.GetName()) ||
		!allows(list, "delete", "admissionregistration.k8s.io", "validatingwebhookconfigurations", h.validateObject.GetName()) {
		t.Error("the clean-up may not delete the webhook configurations")
	}
	named[*corev1.ServiceAccount](t, r, spec.ServiceAccountName)
}

func TestCleanUpIsSwitchedOff(t *testing.T) {
	for _, hook := range render(t, install{set: []string{"cleanup.enabled=false"}}).Hooks {
		if slices.Contains(hook.Events, release.HookPreDelete) {
			t.Errorf("%s is rendered though the clean-up is off", hook.Name)
		}
	}
}

// helm test runs the preflight, which may do in the release's namespace what it needs and
// nothing elsewhere. Its Pod stays, for its log.
func TestThePreflightIsATest(t *testing.T) {
	in := elsewhere
	in.set = []string{"image.pullSecrets={one,two}"}
	r := render(t, in)
	for _, o := range r.objects {
		if o.GetLabels()["app.kubernetes.io/component"] != "preflight" {
			continue
		}
		want := map[string]string{"helm.sh/hook": "test", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}
		if o.GetKind() == "Pod" {
			want["helm.sh/hook-delete-policy"] = "before-hook-creation"
		}
		for key, value := range want {
			if got := o.GetAnnotations()[key]; !o.hook || got != value {
				t.Errorf("%s: a hook %t, %s is %q, want %q", o, o.hook, key, got, value)
			}
		}
	}
	spec := named[*corev1.Pod](t, r, "q7-blue-preflight").Spec
	image := spec.Containers[0].Image
	want := []string{
		"preflight", "--namespace=tools-west", "--image=" + image, "--pull-secrets=one,two", "--config=/etc/agent-sandbox/platform.yaml",
	}
	if diff := cmp.Diff(want, spec.Containers[0].Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	list := rules(r)
	role, cluster := list["Role q7-blue-preflight"], list["ClusterRole q7-blue-preflight.tools-west"]
	for _, verb := range []string{"create", "get", "delete"} {
		if !allows(role, verb, "", "pods", "any") || allows(cluster, verb, "", "pods", "any") {
			t.Errorf("the preflight may not %s Pods of the namespace, or those of every namespace", verb)
		}
	}
	if !allows(role, "create", "networking.k8s.io", "networkpolicies", "any") || !allows(cluster, "list", "node.k8s.io", "runtimeclasses", "any") {
		t.Error("the preflight may not try what it has to")
	}
}
