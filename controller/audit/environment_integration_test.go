// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	reportsv1alpha1 "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/sandbox"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// server is the apiserver of all tests of this package; TestMain starts it.
var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Options{NoFsync: true}, &server)) }

// environment is a namespace that is the release's and a tenant's at once, with an audit
// of it alone.
type environment struct {
	*apiserver.Environment

	settings Settings
	auditor  *Auditor
	engine   *engine.Engine
	registry *prometheus.Registry
	// wrap is put around the connection of the audit; nil for nothing.
	wrap func(http.RoundTripper) http.RoundTripper
	// pools and claims are the clocks of those that run beside the audit.
	pools, claims apiserver.Clock
	// witness notes the verdicts that claims ask for.
	witness *witness
	// beside adds what else runs in the manager of the audit.
	beside func(context.Context, ctrl.Manager, *environment) error
}

func newEnvironment(t *testing.T, edits ...func(*environment)) *environment {
	t.Helper()
	e := &environment{Environment: server.NewEnvironment(t), registry: prometheus.NewRegistry()}
	judged, err := labels.Parse(corev1.LabelMetadataName + "=" + e.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	e.settings = Settings{Current: platform, Changed: make(chan event.GenericEvent), Judged: judged, Interval: time.Hour, CPUShare: 1, Reports: true}
	for _, edit := range edits {
		edit(e)
	}
	e.mayReadPolicies()
	byObject, err := sandbox.CacheByObject(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []map[client.Object]cache.ByObject{claim.CacheByObject(), policysource.CacheByObject(e.Namespace), CacheByObject()} {
		maps.Copy(byObject, more)
	}
	e.Run(apiserver.Setup{Add: e.add, ByObject: byObject, Wrap: e.wrap})
	e.Eventually("the policies are loaded", func() error {
		if !e.engine.Ready() {
			return errors.New("they are not")
		}
		return nil
	})
	return e
}

// platform has a tier in which tenants create claims only.
func platform() *config.Platform {
	made := apiserver.Platform()
	closed := made.Tiers["standard"]
	closed.Creates = []string{"SandboxClaim"}
	open := made.Tiers["standard"]
	open.Creates = []string{"Sandbox", "SandboxClaim"}
	made.Tiers = map[string]config.Tier{"standard": open, "closed": closed}
	return made
}

func (e *environment) add(ctx context.Context, mgr ctrl.Manager) error {
	rules, err := engine.New(engine.WithInventory(Inventory{Reader: mgr.GetClient()}))
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := reportsv1alpha1.Install(scheme); err != nil {
		return err
	}
	writer, err := client.New(mgr.GetConfig(), client.Options{Scheme: scheme, Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	e.engine, e.auditor = rules, New(mgr.GetClient(), writer, rules, e.Clock, e.settings)
	e.auditor.settle = 100 * time.Millisecond
	if e.auditor.reconciler.reporter != nil {
		e.auditor.reconciler.reporter.interval = 100 * time.Millisecond
	}
	m, err := policysource.NewMetrics(e.registry, config.ComponentController)
	if err != nil {
		return err
	}
	if _, err = policysource.SetUp(mgr, policysource.Options{Namespace: e.Namespace, Engine: rules, Metrics: m, Changed: e.auditor.PoliciesChanged}); err != nil {
		return err
	}
	if e.beside != nil {
		if err := e.beside(ctx, mgr, e); err != nil {
			return err
		}
	}
	return e.auditor.SetupWithManager(ctx, mgr, e.registry)
}

// mayReadPolicies gives the controllers what the chart gives them in the namespace of
// the release.
func (e *environment) mayReadPolicies() {
	e.Helper()
	e.Create(
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "policies"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "policies"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "policies"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: e.User}},
		},
	)
}

// configure puts the policies in force and waits for them.
func (e *environment) configure(data map[string]string) {
	e.Helper()
	before := e.engine.Digest()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "policies", Labels: map[string]string{keys.PolicySource: "true"}}, Data: data}
	if e.Exists("policies", &corev1.ConfigMap{}) {
		apiserver.Change(e.Environment, "policies", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data = data })
	} else {
		e.Create(configMap)
	}
	e.Eventually("the policies are in force", func() error {
		if e.engine.Digest() == before {
			return errors.New("they are as before")
		}
		return nil
	})
}

// enforce is the configuration of the rule that the tests look at.
func enforce(enforcement engine.Enforcement) map[string]string {
	return map[string]string{policysource.ConfigurationKey: fmt.Sprintf("rules: {host-namespaces: {enforcement: %q}}", enforcement)}
}

// label sets a label of the namespace.
func (e *environment) label(key, value string) {
	e.Helper()
	var namespace corev1.Namespace
	if err := e.Client.Get(e.Context(), client.ObjectKey{Name: e.Namespace}, &namespace); err != nil {
		e.Fatal(err)
	}
	before := namespace.DeepCopy()
	namespace.Labels[key] = value
	if err := e.Client.Patch(e.Context(), &namespace, client.MergeFrom(before)); err != nil {
		e.Fatal(err)
	}
}

// says waits until the series of violations of some rules are those that are wanted,
// each as "rule enforcement count".
func (e *environment) says(rules string, want ...string) {
	e.Helper()
	e.Eventually(fmt.Sprintf("the metric tells %q of %s", want, rules), func() error {
		var got []string
		for _, series := range published(e.T, e.registry) {
			namespace, rest, _ := strings.Cut(series, " ")
			if rule, _, _ := strings.Cut(rest, " "); namespace == e.Namespace && slices.Contains(strings.Fields(rules), rule) {
				got = append(got, rest)
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("it tells %q", got)
		}
		return nil
	})
}

// report reads the report that the tests look at, which has no name when there is none.
func (e *environment) report() (*reportsv1alpha1.Report, error) {
	scheme := runtime.NewScheme()
	if err := reportsv1alpha1.Install(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	var found reportsv1alpha1.Report
	return &found, client.IgnoreNotFound(c.Get(e.Context(), e.Key(reportOfSandboxes), &found))
}

// makeSandbox is a Sandbox that no rule has anything to say about but the one that is
// broken by the edit.
func makeSandbox(name string, edits ...func(*corev1.PodSpec)) *agentsv1beta1.Sandbox {
	made := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: name}}
	made.Spec.PodTemplate.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/main:1.2"}}}
	for _, edit := range edits {
		edit(&made.Spec.PodTemplate.Spec)
	}
	return made
}

// makeTemplate is a template of such Sandboxes.
func makeTemplate() *extensionsv1beta1.SandboxTemplate {
	made := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: "template"}}
	made.Spec.PodTemplate.Spec = makeSandbox("").Spec.PodTemplate.Spec
	return made
}

func onHostNetwork(pod *corev1.PodSpec) { pod.HostNetwork = true }

func newEnvironmentClient(t *testing.T) client.Client {
	t.Helper()
	admin, err := apiserver.NewClient(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// asUnstructured names a report for a client that does not know its type.
func asUnstructured(report *reportsv1alpha1.Report) client.Object {
	named := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: report.Namespace, Name: report.Name}}
	named.SetGroupVersionKind(kindReport)
	return named
}
