// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package charts_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/effective"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/corpus"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// guarded is a kube-apiserver with the backstop of a release, which warns of everything
// instead of refusing the first thing.
type guarded struct {
	// tenant writes as somebody without any right to pass, controller as that of the release.
	tenant, controller client.Client
	warned             *warnings
}

// warnings are what the apiserver warned of since they were last taken.
type warnings struct{ texts []string }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.texts = append(w.texts, text)
}

// messages are what the policies say in the warnings.
func (w *warnings) messages() []string {
	var messages []string
	for _, text := range w.texts {
		_, message, _ := strings.Cut(text, "' with binding '")
		if _, message, found := strings.Cut(message, ": "); found {
			messages = append(messages, message)
		}
	}
	w.texts = nil
	return messages
}

// rules are the ids of the rules that the warnings name, sorted.
func (w *warnings) rules() []string {
	return rulesOfRefusals(w.messages())
}

func newGuarded(t *testing.T, r rendered) *guarded {
	t.Helper()
	server, err := apiserver.Start(t.Context(), apiserver.Options{NoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := apiserver.NewClient(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}, Handler: "runsc"},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"agents.x-k8s.io", "extensions.agents.x-k8s.io"}, Resources: []string{"*"}, Verbs: []string{"create", "update", "delete"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tenant"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}},
		},
	}
	for name, labels := range corpus.Namespaces {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	for _, policy := range all[*admissionregistrationv1.ValidatingAdmissionPolicy](r) {
		objects = append(objects, policy)
	}
	for _, binding := range all[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](r) {
		objects = append(objects, binding)
	}
	for _, object := range objects {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatalf("make %T %s: %v", object, object.GetName(), err)
		}
	}
	err = apiserver.AwaitAccess(t.Context(), admin, authorizationv1.SubjectAccessReviewSpec{
		User: "jane", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: "agents.x-k8s.io", Resource: "sandboxes"},
	})
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{warned: &warnings{}}
	writer := func(config *rest.Config) client.Client {
		config = rest.CopyConfig(config)
		config.WarningHandler, config.WarningHandlerWithContext = nil, g.warned
		c, err := client.New(config, client.Options{Scheme: admin.Scheme(), Mapper: admin.RESTMapper()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	g.tenant, g.controller = writer(server.As("jane")), writer(server.As(releaseController, "system:masters"))
	g.awaitPolicies(t)
	return g
}

// writerOf writes as the user of a case.
func (g *guarded) writerOf(c corpus.Case) client.Client {
	if c.User == "controller" {
		return g.controller
	}
	return g.tenant
}

// awaitPolicies waits until the apiserver judges by its policies.
func (g *guarded) awaitPolicies(t *testing.T) {
	t.Helper()
	bad := manifest(t, sandboxOf(t, "Sandbox", podOf(t, podChanges["a path of the node"])))
	bad.SetNamespace("standard")
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := g.tenant.Create(ctx, bad.DeepCopy(), client.DryRunAll)
		return slices.Contains(g.warned.rules(), "hostpath"), err
	})
	if err != nil {
		t.Fatalf("wait for the policies: %v", err)
	}
}

// judgeWritten are the rules of the library that deny an object as it was written.
func judgeWritten(t *testing.T, rules *engine.Engine, r rendered, label string, object map[string]any) []string {
	t.Helper()
	name, choice, _ := platform(t, r).TierOf(label)
	data, err := json.Marshal(choice)
	if err != nil {
		t.Fatal(err)
	}
	var tier map[string]any
	if err := json.Unmarshal(data, &tier); err != nil {
		t.Fatal(err)
	}
	kind, _ := object["kind"].(string)
	pod := effective.OfOwn(object)
	decision := rules.Evaluate(t.Context(), engine.Input{
		Operation: "CREATE", Kind: kind, User: engine.UserInfo{Username: "jane"}, Object: object,
		Namespace: engine.NamespaceInfo{Name: "tenant"}, Pod: pod.Pod, PodPath: pod.Path, Tier: tier, TierName: name, Source: engine.SourceAdmission,
	})
	var denied []string
	for _, finding := range decision.Denials() {
		denied = append(denied, finding.Rule)
	}
	slices.Sort(denied)
	return slices.Compact(denied)
}

// On a real apiserver the backstop says of every manifest of the corpus, as it is
// written, what the rules of the same names say.
func TestApiserverAndRulesAgreeOnTheCorpus(t *testing.T) {
	r := render(t, install{set: []string{"backstop.rules=Always", "backstop.validationActions={Warn}"}})
	rules, guard := rulesOf(t, r), newGuarded(t, r)
	cases, err := corpus.Cases(os.DirFS("../e2e/corpus"))
	if err != nil {
		t.Fatal(err)
	}
	held := func(ids []string) []string {
		return slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(backedUp, id) })
	}
	asked, seen := 0, map[string]bool{}
	for _, c := range cases {
		if !hasPod(c) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(c.Last())}
			object.SetNamespace(c.Namespace)
			err := guard.tenant.Create(t.Context(), object, client.DryRunAll)
			got := held(guard.warned.rules())
			if apierrors.IsInvalid(err) {
				return // the schema has refused it before any policy was asked
			} else if err != nil {
				t.Fatal(err)
			}
			asked++
			for _, id := range got {
				seen[id] = true
			}
			want := held(judgeWritten(t, rules, r, corpus.Namespaces[c.Namespace][keys.Tier], c.Last()))
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: refused by (-rules +apiserver):\n%s", c.Story, diff)
			}
		})
	}
	if asked < 100 {
		t.Errorf("the apiserver was asked about %d manifests, want at least 100", asked)
	}
	for _, id := range backedUp {
		if !seen[id] {
			t.Errorf("no manifest breaks rule %s, so that nothing was compared", id)
		}
	}
}

// On a real apiserver the backstop says of every kind's creations and updates what the
// corpus states: it only warns here, so that even an object that is older than all rules
// can be stored.
func TestApiserverJudgesWritesAsTheCorpusStates(t *testing.T) {
	guard := newGuarded(t, render(t, install{set: []string{"backstop.rules=Always", "backstop.validationActions={Warn}"}}))
	asked, refused := map[bool]int{}, compared{}
	for _, c := range heldCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			stored := &unstructured.Unstructured{}
			for i, document := range c.Documents {
				guard.warned.texts = nil
				next := admitted(document)
				next.SetNamespace(c.Namespace)
				if i > 0 {
					next.SetResourceVersion(stored.GetResourceVersion())
				}
				if err := guard.put(t, c, next, i == 0); apierrors.IsInvalid(err) {
					return // the schema refuses it
				} else if err != nil {
					t.Fatal(err)
				}
				stored = next
			}
			asked[len(c.Documents) > 1]++
			compareRefusals(t, c, guard.warned.messages())
			refused.count(c)
		})
	}
	if asked[true] < 60 || asked[false] < 150 {
		t.Errorf("the apiserver was asked about %d updates and %d creations, want at least 60 and 150", asked[true], asked[false])
	}
	refused.mustHaveAll(t)
}

// put stores a state of an object; the first one is there until the test ends.
func (g *guarded) put(t *testing.T, c corpus.Case, object *unstructured.Unstructured, first bool) error {
	t.Helper()
	if !first {
		return g.writerOf(c).Update(t.Context(), object)
	}
	if err := g.writerOf(c).Create(t.Context(), object); err != nil {
		return err
	}
	created := object.DeepCopy()
	t.Cleanup(func() {
		if err := g.tenant.Delete(context.WithoutCancel(t.Context()), created); err != nil {
			t.Error(err)
		}
	})
	return nil
}

// hasPod says whether a case is one manifest with a Pod, in a tier that there is.
func hasPod(c corpus.Case) bool {
	kind := c.Last()["kind"]
	return (kind == engine.KindSandbox || kind == engine.KindSandboxTemplate) && len(c.Documents) == 1 && c.Offline == "" && c.Namespace != "unknown"
}
