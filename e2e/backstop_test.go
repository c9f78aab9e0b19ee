// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
)

// The webhook is gone and its failure policy is Ignore: what must hold still holds, a
// Sandbox without faults is still made, and nothing of the platform's own is writable.
func TestBackstopHoldsWithoutTheWebhook(t *testing.T) {
	ctx := t.Context()
	withoutTheWebhook(ctx, t)
	ns := cluster.Namespace(ctx, t)
	const sound = "automountServiceAccountToken: false\nterminationGracePeriodSeconds: 1"
	cases := map[string]struct{ rule, pod, container string }{
		"a privileged container": {"privileged", sound, "securityContext: {privileged: true}"},
		"the node's network":     {"host-namespaces", sound + "\nhostNetwork: true", ""},
		"a path of the node":     {"hostpath", sound + "\nvolumes: [{name: a, hostPath: {path: /etc}}]", ""},
		"a port of the node":     {"host-port", sound, "ports: [{containerPort: 80, hostPort: 80}]"},
		"a ServiceAccount token": {"automount-token", "automountServiceAccountToken: true", ""},
		"a projected token":      {"projected-identity", sound + "\nvolumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: a}}]}}]", ""},
		"an ephemeral container": {"ephemeral-in-template", sound + "\nephemeralContainers: [{name: a, image: \"a:1\"}]", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster.MustRefuse(ctx, t, ns, sandboxWith("refused", tc.pod, tc.container)).MustName(t, "backstop", tc.rule+": spec.podTemplate.spec.")
		})
	}
	t.Run("a tier that requires a RuntimeClass", func(t *testing.T) {
		restricted := cluster.Namespace(ctx, t, keys.Tier, "restricted")
		cluster.MustRefuse(ctx, t, restricted, sandboxWith("refused", sound, "")).MustName(t, "runtimeclass-required", "gvisor")
	})
	t.Run("the platform's own namespace", func(t *testing.T) {
		cluster.MustRefuse(ctx, t, kit.ReleaseNamespace, sandboxWith("refused", sound, "")).MustName(t, "platform-namespace")
	})
	t.Run("a forged label", func(t *testing.T) {
		forged := strings.Replace(sandboxWith("refused", sound, ""), "metadata: {name: refused}",
			"metadata: {name: refused, labels: {agents.x-k8s.io/claim-uid: a}}", 1)
		if err := tenantOf(ctx, t, ns).Create(ctx, kit.Object(t, ns, forged)); !refusedBy(err, "reserved-metadata") {
			t.Errorf("a tenant's attempt ended with %v, want it refused by reserved-metadata", err)
		}
	})
	t.Run("its part of the corpus", func(t *testing.T) { backstopJudgesCorpus(ctx, t) })
	cluster.MustApply(ctx, t, ns, sandboxWith("sound", sound, ""))
	cluster.WaitReady(ctx, t, ns, "sound")
}

// heldRules are those of the library that the backstop holds for Pods.
var heldRules = []string{
	"privileged", "host-namespaces", "hostpath", "host-port", "automount-token", "projected-identity", "ephemeral-in-template", "runtimeclass-required",
}

// backstopJudgesCorpus sends every manifest of the corpus, with what admission would have
// set on its Pod, as a tenant does: those that break a rule which the backstop holds are
// refused for it, and no other for one of these.
func backstopJudgesCorpus(ctx context.Context, t *testing.T) {
	t.Helper()
	cases, err := corpus.Cases(os.DirFS("corpus"))
	if err != nil {
		t.Fatal(err)
	}
	namespaces := corpusNamespaces(ctx, t)
	tenants := map[string]client.Client{}
	for name, namespace := range namespaces {
		tenants[name] = tenantOf(ctx, t, namespace)
	}
	refused, passed := 0, 0
	for _, c := range cases {
		if !isOneOfTenants(c) || tenants[c.Namespace] == nil {
			continue
		}
		object := placed(c.Last(), namespaces[c.Namespace])
		setUnless(object, false, "automountServiceAccountToken")
		setUnless(object, "gvisor", "runtimeClassName")
		err := tenants[c.Namespace].Create(ctx, object, client.DryRunAll)
		want, asStated := heldAsStated(c, err)
		switch {
		case !asStated:
			t.Errorf("%s: %s: the answer is %v, want it refused: %t, for %+v", c.Name, c.Story, err, want, c.Denials)
		case want:
			refused++
		default:
			passed++
		}
	}
	if refused < 60 || passed < 140 {
		t.Errorf("%d manifests were refused and %d passed, want at least 60 and 140", refused, passed)
	}
}

// heldAsStated says whether the rules that the backstop holds refuse a case, and whether
// the answer is that: a refusal for a rule that the case states, about its field, and none
// by a rule that it does not state. Where another policy of the backstop answered first,
// that has to be for what is stated, too.
func heldAsStated(c corpus.Case, err error) (refused, asStated bool) {
	rule := guardedRule(err)
	held := slices.Contains(heldRules, rule) || slices.Contains(guardRules, rule)
	refused = slices.ContainsFunc(c.Denials, func(f corpus.Finding) bool {
		return slices.Contains(heldRules, f.Rule) || slices.Contains(guardRules, f.Rule) && c.Unguarded == ""
	})
	if !refused {
		return false, !held
	}
	return true, held && slices.ContainsFunc(c.Denials, func(f corpus.Finding) bool {
		return f.Rule == rule && names(err.Error(), corpus.Finding{Rule: rule, Field: listOf(f.Field)})
	})
}

// listOf is the list of ports, sources or owners that a field is in, which the policies name
// instead of the member, and any other field itself.
func listOf(field string) string {
	for _, list := range []string{".ports", ".sources", ".ownerReferences"} {
		if before, _, found := strings.Cut(field, list+"["); found {
			return before + list
		}
	}
	return field
}

// isOneOfTenants says whether a case is one manifest of a tenant's, for the chart's own
// values.
func isOneOfTenants(c corpus.Case) bool {
	return len(c.Documents) == 1 && c.Offline == "" && c.Values == "" && c.User == ""
}

// setUnless sets a field of the Pod, if there is one, that is not set, as admission does.
func setUnless(object *unstructured.Unstructured, value any, name string) {
	path := []string{"spec", "podTemplate", "spec"}
	pod, found, err := unstructured.NestedMap(object.Object, path...)
	if old := pod[name]; err == nil && found && (old == nil || old == "") {
		_ = unstructured.SetNestedField(object.Object, value, append(path, name)...)
	}
}

// withoutTheWebhook scales it to nothing with failure policy Ignore until the story ends.
func withoutTheWebhook(ctx context.Context, t *testing.T) {
	t.Helper()
	release := cluster.Helm("agent-sandbox", kit.ReleaseNamespace)
	key := client.ObjectKey{Namespace: kit.ReleaseNamespace, Name: "agent-sandbox-webhook"}
	scale := func(ctx context.Context, replicas int32) error {
		deployment := &appsv1.Deployment{}
		if err := cluster.Get(ctx, key, deployment); err != nil {
			return err
		}
		patch := client.MergeFrom(deployment.DeepCopy())
		deployment.Spec.Replicas = &replicas
		return cluster.Patch(ctx, deployment, patch)
	}
	t.Cleanup(func() {
		after := context.WithoutCancel(ctx)
		if err := errors.Join(scale(after, 1), release.Install(after, nil)); err != nil {
			t.Errorf("bring the webhook back: %v", err)
		}
	})
	if err := release.Install(ctx, nil, "webhook.validating.failurePolicy=Ignore"); err != nil {
		t.Fatalf("upgrade: %v", err)
	}
	if err := scale(ctx, 0); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(ctx, t, "no Pod of the webhook is left", func(ctx context.Context) error {
		var pods corev1.PodList
		labels := client.MatchingLabels{"app.kubernetes.io/component": "webhook", "app.kubernetes.io/name": "agent-sandbox"}
		if err := cluster.List(ctx, &pods, client.InNamespace(kit.ReleaseNamespace), labels); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d are left", len(pods.Items))
		}
		return nil
	})
}

// A tenant with the built-in role edit cannot take a Sandbox's isolation away, join it,
// or change its Pod behind the Sandbox's back; an administrator can, and what he takes
// away comes back.
func TestTenantCannotOpenASandbox(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t)
	cluster.MustApply(ctx, t, ns, sandboxWith("workspace", "terminationGracePeriodSeconds: 1", ""))
	cluster.WaitReady(ctx, t, ns, "workspace")
	tenant := tenantOf(ctx, t, ns)
	floor := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: isolation.FloorName}}
	pod := cluster.PodOf(ctx, t, ns, "workspace")
	open := []byte(`{"spec": {"egress": [{}]}}`)
	cases := map[string]struct {
		rule string
		try  func() error
	}{
		"deletes the floor":  {"managed-network-policy", func() error { return tenant.Delete(ctx, floor) }},
		"deletes everything": {"managed-network-policy", func() error { return tenant.DeleteAllOf(ctx, &networkingv1.NetworkPolicy{}, client.InNamespace(ns)) }},
		"opens the floor":    {"managed-network-policy", func() error { return tenant.Patch(ctx, floor.DeepCopy(), client.RawPatch(types.MergePatchType, open)) }},
		"takes the label off a Pod": {"reserved-metadata", func() error {
			return tenant.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"`+keys.Sandbox+`": null}}}`)))
		}},
		"makes a Pod with it": {"reserved-metadata", func() error {
			return tenant.Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "twin", Labels: map[string]string{keys.EgressProfile: "public"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: probeImage}}},
			})
		}},
		"changes the Pod's image": {"sandbox-pod", func() error {
			return tenant.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec": {"containers": [{"name": "workspace", "image": "`+probeImage+`"}]}}`)))
		}},
		"adds an ephemeral container": {"sandbox-pod", func() error {
			debugged := pod.DeepCopy()
			debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: probeImage}}}
			return tenant.SubResource("ephemeralcontainers").Update(ctx, debugged)
		}},
		"gives the default account a role": {"sandbox-credentials", func() error {
			return tenant.Create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "open"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "default", Namespace: ns}},
			})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := tc.try(); !refusedBy(err, tc.rule) {
				t.Errorf("ended with %v, want it refused by %s", err, tc.rule)
			}
		})
	}
	t.Run("and may still do what is his", func(t *testing.T) {
		err := tenant.Create(ctx, &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "own"},
			Spec:       networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
		})
		if err != nil {
			t.Errorf("a NetworkPolicy of his own: %v", err)
		}
		if err := tenant.Delete(ctx, pod); err != nil {
			t.Errorf("delete the Pod: %v", err)
		}
	})
	t.Run("an administrator's deletion is repaired", func(t *testing.T) { deleteFloor(ctx, t, ns) })
}

// A namespace with Sandboxes, templates of which the policies are managed, goes away.
func TestNamespaceWithSandboxesIsDeleted(t *testing.T) {
	ctx := t.Context()
	ns := cluster.Namespace(ctx, t, keys.Tier, "standard")
	cluster.MustApply(ctx, t, ns, sandboxWith("workspace", "terminationGracePeriodSeconds: 1", ""))
	cluster.WaitReady(ctx, t, ns, "workspace")
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	if err := cluster.Delete(ctx, object); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(ctx, t, "the namespace is gone", func(ctx context.Context) error {
		err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return fmt.Errorf("it is %s: %+v", object.Status.Phase, object.Status.Conditions)
		}
		return client.IgnoreNotFound(err)
	})
}

// A tier is the platform team's to give.
func TestTierIsGivenByThePlatformTeam(t *testing.T) {
	ctx := t.Context()
	namespaces := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"create", "get", "patch", "update"}},
			{APIGroups: []string{"platform.agents.x-k8s.io"}, Resources: []string{"tiers"}, ResourceNames: []string{"standard"}, Verbs: []string{"use"}},
		},
	}
	mustCreate(ctx, t, namespaces)
	mustCreate(ctx, t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespaces.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "lead"}},
	})
	cluster.AwaitAccess(ctx, t, "lead", authorizationv1.ResourceAttributes{Verb: "create", Resource: "namespaces"})
	lead, err := cluster.As("lead")
	if err != nil {
		t.Fatal(err)
	}
	made := func(c client.Client, tier string) error {
		return c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-", Labels: map[string]string{keys.Tier: tier}}}, client.DryRunAll)
	}
	if err := made(lead, "standard"); err != nil {
		t.Errorf("a tier that he may use: %v", err)
	}
	if err := made(lead, "trusted"); !refusedBy(err, "may not put a namespace into tier trusted") {
		t.Errorf("a tier that he may not use ended with %v", err)
	}
	if err := made(cluster.Client, "lax"); err == nil || !strings.Contains(err.Error(), "restricted, standard, trusted") {
		t.Errorf("a tier that does not exist ended with %v, want the list of tiers", err)
	}
}

// tenantOf returns the cluster as one sees it who has the built-in role edit in a
// namespace, and may bind roles there.
func tenantOf(ctx context.Context, t *testing.T, ns string) client.Client {
	t.Helper()
	mustCreate(ctx, t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "tenant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tenant-" + ns}},
	})
	mustCreate(ctx, t, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "debug"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers"}, Verbs: []string{"update", "patch"}}},
	})
	mustCreate(ctx, t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "debug"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "debug"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tenant-" + ns}},
	})
	for _, may := range []authorizationv1.ResourceAttributes{
		{Namespace: ns, Verb: "create", Group: rbacv1.GroupName, Resource: "rolebindings"},
		{Namespace: ns, Verb: "update", Resource: "pods", Subresource: "ephemeralcontainers"},
	} {
		cluster.AwaitAccess(ctx, t, "tenant-"+ns, may)
	}
	tenant, err := cluster.As("tenant-" + ns)
	if err != nil {
		t.Fatal(err)
	}
	return tenant
}

func mustCreate(ctx context.Context, t *testing.T, object client.Object) {
	t.Helper()
	if err := cluster.Create(ctx, object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Delete(context.WithoutCancel(ctx), object); client.IgnoreNotFound(err) != nil {
			t.Errorf("clean up: %v", err)
		}
	})
}

// refusedBy says whether admission refused with that text; the authorizer's refusals do
// not count.
func refusedBy(err error, text string) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) &&
		strings.Contains(err.Error(), "ValidatingAdmissionPolicy") && strings.Contains(err.Error(), text)
}
