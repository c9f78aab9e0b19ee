// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package policysource

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// ruleOf is the rule of the team with another id and package.
func ruleOf(id, pkg string) string {
	return strings.NewReplacer("id: no-root-name", "id: "+id, "team.no_root_name", "team."+pkg).Replace(teamRule)
}

// filesOf are so many keys that end in .rego.
func filesOf(n int) map[string]string {
	data := map[string]string{}
	for i := range n {
		data[fmt.Sprintf("m%04d.rego", i)] = ""
	}
	return data
}

// Each of these is refused when it is applied. When it gets past that, it is told on the ConfigMap, and what was in force
// stays.
func TestConfigMapsThatAreRefused(t *testing.T) {
	named := func(data map[string]string) *corev1.ConfigMap { return policyConfigMap("a", data) }
	binary := named(nil)
	binary.BinaryData = map[string][]byte{"team.rego": {0xff}}
	cases := map[string]struct {
		configMap *corev1.ConfigMap
		want      string
	}{
		"more rules than a ConfigMap may hold": {named(filesOf(maxModules + 1)), `configmap/agent-sandbox-system/a: key "m0250.rego" is one more than the 250 rules that a ConfigMap may hold: move some`},
		"a file as long as a ConfigMap":        {named(map[string]string{"long.rego": ruleOf("a", "a") + strings.Repeat("#\n", 1<<19)}), "configmap/agent-sandbox-system/a/long.rego: the file has 1048"},
		"a file that would compile for hours": {
			named(map[string]string{"deep.rego": ruleOf("a", "a") + "x := " + strings.Repeat("[1|", 200) + "true" + strings.Repeat("]", 200)}),
			"configmap/agent-sandbox-system/a/deep.rego:17: comprehensions and every stand 200 deep",
		},
		"a file that is not UTF-8": {binary, `configmap/agent-sandbox-system/a: key "team.rego" is binaryData, which is not read: save the file as UTF-8 text`},
		"a key that nobody reads":  {named(map[string]string{"team.rgo": teamRule}), `configmap/agent-sandbox-system/a: key "team.rgo" is neither policy.yaml nor does it end in .rego: rename or remove it`},
		"the id of a rule of another ConfigMap": {
			named(map[string]string{"mine.rego": ruleOf("no-root-name", "mine")}),
			`configmap/agent-sandbox-system/a/mine.rego: METADATA custom.id is "no-root-name", which configmap/agent-sandbox-system/team/team.rego has already`,
		},
		"the package of a rule of another ConfigMap": {
			named(map[string]string{"mine.rego": ruleOf("mine", "no_root_name")}),
			"configmap/agent-sandbox-system/a/mine.rego: package policies.team.no_root_name is that of configmap/agent-sandbox-system/team/team.rego",
		},
		"the id of a rule of the library": {
			named(map[string]string{"mine.rego": ruleOf("privileged", "mine")}),
			`configmap/agent-sandbox-system/a/mine.rego: METADATA custom.id is "privileged", which policies/library/privileged/privileged.rego has already; use another`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLoader(t)
			l.step(t, "team", map[string]string{"team.rego": teamRule})
			if err := l.Check(t.Context(), tc.configMap); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Check: %.500v, want %q", err, tc.want)
			}
			l.told(t)
			if err := l.client.Create(t.Context(), tc.configMap); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
			if told := l.told(t); !slices.Contains(told, ReasonPolicyLoadFailed) || l.gauge(t, "agent_sandbox_policy_ready", "") != 0 {
				t.Errorf("the load told %v, and that it is whole: %t", told, l.whole)
			}
			i := slices.IndexFunc(l.Engine.Catalogue(), func(info engine.RuleInfo) bool { return info.ID == "no-root-name" })
			if i < 0 || l.Engine.Catalogue()[i].Source != "configmap/agent-sandbox-system/team" {
				t.Error("the rule of the other ConfigMap is not in force any more")
			}
		})
	}
}

func TestTheRulesOfAllConfigMapsAreBounded(t *testing.T) {
	l := newLoader(t)
	for i := range maxAllModules / maxModules {
		name := fmt.Sprintf("full%d", i)
		l.inForce[name] = policyConfigMap(name, filesOf(maxModules))
	}
	const want = "configmap/agent-sandbox-system/one: its 1 rules make 1001 of all ConfigMaps together, at most 1000 can be in force: remove some"
	if err := l.Check(t.Context(), policyConfigMap("one", filesOf(1))); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Check: %.500v, want %q", err, want)
	}
}

func TestConfigMapsThatAreNotRefused(t *testing.T) {
	cases := map[string]map[string]string{
		"one without anything":                                   nil,
		"one with an empty configuration":                        {ConfigurationKey: ""},
		"a file of the same name as one of another ConfigMap":    {"team.rego": ruleOf("mine", "mine")},
		"the rules of an own file that exchange their positions": {"b.rego": ruleOf("mine", "mine"), "a.rego": ruleOf("other", "other")},
	}
	for name, data := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLoader(t)
			l.step(t, "team", map[string]string{"team.rego": teamRule})
			configMap := policyConfigMap("a", data)
			if err := l.Check(t.Context(), configMap); err != nil {
				t.Errorf("Check: %v", err)
			}
			l.told(t)
			if err := l.client.Create(t.Context(), configMap); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
			if told := l.told(t); !slices.Equal(told, []string{ReasonPolicyLoaded}) || !l.whole {
				t.Errorf("the load told %v, and that it is whole: %t", told, l.whole)
			}
			if l.enforcement("no-root-name") != "Deny" || (strings.Contains(fmt.Sprint(data), "mine") && l.enforcement("mine") != "Deny") {
				t.Error("not all rules are in force")
			}
		})
	}
}

// Events may come faster than loads: what counts is what the last of them leaves.
func TestAConfigMapThatChangesFasterThanItIsLoaded(t *testing.T) {
	confirmed := policyConfigMap("team", nil)
	confirmed.Annotations = map[string]string{keys.RemovalConfirmed: "true"}
	empty, full := policyConfigMap("team", nil), policyConfigMap("team", map[string]string{"team.rego": teamRule})
	type step func(t *testing.T, l loader, h handler.EventHandler, q workqueue.TypedRateLimitingInterface[reconcile.Request])
	created := func(c *corev1.ConfigMap) step {
		return func(t *testing.T, l loader, h handler.EventHandler, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			t.Helper()
			if err := l.client.Create(t.Context(), c.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			h.Create(t.Context(), event.CreateEvent{Object: c}, q)
		}
	}
	deleted := func(c *corev1.ConfigMap) step {
		return func(t *testing.T, l loader, h handler.EventHandler, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			t.Helper()
			if err := l.client.Delete(t.Context(), c.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			h.Delete(t.Context(), event.DeleteEvent{Object: c}, q)
		}
	}
	updated := func(old, c *corev1.ConfigMap) step {
		return func(t *testing.T, l loader, h handler.EventHandler, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			t.Helper()
			if err := l.client.Update(t.Context(), c.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: c}, q)
		}
	}
	cases := map[string]struct {
		inForce bool
		steps   []step
		want    engine.Enforcement
	}{
		"created and deleted":                       {false, []step{created(full), deleted(full)}, ""},
		"created, emptied and deleted":              {false, []step{created(full), updated(full, empty), deleted(empty)}, ""},
		"deleted and created again":                 {true, []step{deleted(full), created(full)}, "Deny"},
		"emptied and deleted without a word":        {true, []step{updated(full, empty), deleted(empty)}, "Deny"},
		"confirmed and deleted":                     {true, []step{updated(full, confirmed), deleted(confirmed)}, ""},
		"confirmed, deleted and created again":      {true, []step{updated(full, confirmed), deleted(confirmed), created(full)}, "Deny"},
		"the same, and deleted again without it":    {true, []step{updated(full, confirmed), deleted(confirmed), created(full), deleted(full)}, "Deny"},
		"confirmed, taken back, and deleted":        {true, []step{updated(full, confirmed), updated(confirmed, full), deleted(full)}, "Deny"},
		"deleted, created with the word, and again": {true, []step{deleted(full), created(confirmed), deleted(confirmed)}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLoader(t)
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			if tc.inForce {
				l.step(t, "team", full.Data)
			}
			for _, do := range tc.steps {
				do(t, l, l.Watch(), queue)
			}
			if queue.Len() != 1 {
				t.Errorf("%d loads are due, want one for all", queue.Len())
			}
			if _, err := l.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
			if got := l.enforcement("no-root-name"); got != tc.want {
				t.Errorf("the rule is %q, want %q", got, tc.want)
			}
		})
	}
}
