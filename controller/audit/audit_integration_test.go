// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package audit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/exposure"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/reports"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Whatever an object is judged by may change after it was stored. No object is touched
// for it.
func TestWhatIsStoredIsJudgedAgainWhenWhatItIsJudgedByChanges(t *testing.T) {
	e := newEnvironment(t)
	e.Create(makeSandbox("plain"), makeSandbox("host", onHostNetwork))
	const rules = "host-namespaces of-the-team tier reopened-network"
	e.says(rules, "host-namespaces critical Deny 1")
	for _, step := range []struct {
		what   string
		change func()
		want   []string
	}{
		{"a rule only warns", func() { e.configure(enforce(engine.Warn)) }, []string{"host-namespaces critical Warn 1"}},
		{"a rule is off", func() { e.configure(enforce(engine.Off)) }, nil},
		{"a rule denies again", func() { e.configure(enforce(engine.Deny)) }, []string{"host-namespaces critical Deny 1"}},
		{"a rule is another one where a label selects", func() { e.configure(warnWhere("lab", "yes")) }, []string{"host-namespaces critical Deny 1", "of-the-team high Deny 1"}},
		{"the namespace gets the label", func() { e.label("lab", "yes") }, []string{"host-namespaces critical Deny 1", "of-the-team high Warn 1"}},
		{"and another value of it", func() { e.label("lab", "no") }, []string{"host-namespaces critical Deny 1", "of-the-team high Deny 1"}},
		{"the rule goes", func() { e.configure(nil) }, []string{"host-namespaces critical Deny 1"}},
		{"a template, its pool and its claim come", func() { e.Create(makeTemplate(), poolOfTemplate(), claimOfPool()) }, []string{"host-namespaces critical Deny 1"}},
		{"the template changes", func() { e.setHostNetwork("template", true) }, []string{"host-namespaces critical Deny 4"}},
		{"and back", func() { e.setHostNetwork("template", false) }, []string{"host-namespaces critical Deny 1"}},
		{"they go", func() { e.drop(claimOfPool(), poolOfTemplate(), makeTemplate()) }, []string{"host-namespaces critical Deny 1"}},
		{"the namespace is of another tier", func() { e.label(keys.Tier, "closed") }, []string{"host-namespaces critical Deny 1", "tier high Deny 2"}},
		{"and back", func() { e.label(keys.Tier, "standard") }, []string{"host-namespaces critical Deny 1"}},
		{"a Sandbox comes", func() { e.Create(makeSandbox("second", onHostNetwork)) }, []string{"host-namespaces critical Deny 2"}},
		{"a NetworkPolicy opens what ours close", func() {
			e.auditor.Exposed(e.Namespace, []exposure.Finding{{Policy: "all", Direction: "Egress", Peers: []string{"everything"}, Pods: []string{"p"}}})
		}, []string{"host-namespaces critical Deny 2", "reopened-network high Audit 1"}},
		{"and is gone", func() { e.auditor.Exposed(e.Namespace, nil) }, []string{"host-namespaces critical Deny 2"}},
		{"both Sandboxes go", func() { e.Delete(e.named("host")); e.Delete(e.named("second")) }, nil},
	} {
		t.Log(step.what)
		step.change()
		e.says(rules, step.want...)
	}
}

// warnWhere is a rule of the team that only warns where a namespace has a label.
func warnWhere(key, value string) map[string]string {
	policies := ruleOf("deny contains \"on the host's network\" if input.pod.spec.hostNetwork\n")
	policies[policysource.ConfigurationKey] = fmt.Sprintf(
		"overrides: [{name: labelled, namespaceSelector: {matchLabels: {%s: %q}}, rules: {of-the-team: {enforcement: Warn}}}]", key, value)
	return policies
}

func poolOfTemplate() *extensionsv1beta1.SandboxWarmPool {
	made := &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	made.Spec.Replicas, made.Spec.TemplateRef.Name = new(int32), "template"
	return made
}

func claimOfPool() *extensionsv1beta1.SandboxClaim {
	made := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}}
	made.Spec.WarmPoolRef.Name = "pool"
	return made
}

// drop deletes objects of the namespace.
func (e *environment) drop(objects ...client.Object) {
	e.Helper()
	for _, object := range objects {
		object.SetNamespace(e.Namespace)
		e.Delete(object)
	}
}

func (e *environment) setHostNetwork(template string, to bool) {
	e.Helper()
	apiserver.Change(e.Environment, template, &extensionsv1beta1.SandboxTemplate{}, func(t *extensionsv1beta1.SandboxTemplate) {
		t.Spec.PodTemplate.Spec.HostNetwork = to
	})
}

func (e *environment) named(name string) *agentsv1beta1.Sandbox {
	e.Helper()
	var found agentsv1beta1.Sandbox
	e.Get(name, &found)
	return &found
}

// A cluster may get reports while the controller runs, and lose them. They follow what
// is stored, and nothing but them is written.
func TestReportsComeWithTheirKindAndGoWithTheirReason(t *testing.T) {
	e := newEnvironment(t)
	e.Create(makeSandbox("plain"), makeSandbox("host", onHostNetwork))
	e.says("host-namespaces", "host-namespaces critical Deny 1")
	t.Cleanup(reports.Install(t, e.Client))
	e.reported("fail host-namespaces critical 1 host")
	first, err := e.report()
	if err != nil {
		t.Fatal(err)
	}
	if first.Summary.Fail == 0 || first.Summary.Fail+first.Summary.Warn+first.Summary.Pass != 2 {
		t.Errorf("summary %+v, want two Sandboxes of which one fails at least", first.Summary)
	}
	for range 3 { // what does not change is not written
		e.auditor.wakeAll(t.Context(), 0)
	}
	e.Create(makeSandbox("second", onHostNetwork))
	e.reported("fail host-namespaces critical 2 host second")
	e.configure(enforce(engine.Warn))
	e.reported("warn host-namespaces critical 2 host second")
	for _, name := range []string{"host", "second", "plain"} {
		e.Delete(e.named(name))
	}
	e.Eventually("the report is gone", func() error {
		found, err := e.report()
		if err == nil && found.Name != "" {
			err = fmt.Errorf("it lists %d results", len(found.Results))
		}
		return err
	})
	want := apiserver.Counts{"patch reports": 3, "delete reports": 1}
	got := e.Writes()
	// A Sandbox may be judged before the second of three is deleted.
	if got["patch reports"] < 3 || got["patch reports"] > 5 || got["delete reports"] != 1 || len(got) != len(want) {
		t.Errorf("writes:\n%s\nwant about\n%s", got, want)
	}
}

// reportOfSandboxes is the name of the report that the tests look at.
const reportOfSandboxes = "agent-sandbox-sandboxes"

// reported waits until it has a result for the rule host-namespaces, as
// "result rule severity objects names".
func (e *environment) reported(want string) {
	e.Helper()
	e.Eventually("the report says "+want, func() error {
		found, err := e.report()
		if err != nil {
			return err
		}
		if found.Name == "" {
			return errors.New("there is no such report")
		}
		for _, result := range found.Results {
			if result.Policy != "host-namespaces" {
				continue
			}
			got := []string{string(result.Result), result.Policy, string(result.Severity), result.Properties["objects"]}
			for _, subject := range result.Subjects {
				got = append(got, subject.Name)
			}
			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				return errors.New(diff)
			}
			if result.Timestamp.Seconds == 0 || result.Description == "" {
				return fmt.Errorf("the result has no time or no words: %+v", result)
			}
			return nil
		}
		return fmt.Errorf("no result among %d is about the rule", len(found.Results))
	})
}

// What changed without an event is found at the interval, and a report that somebody
// took away comes back.
func TestAnIntervalFindsWhatNoEventTold(t *testing.T) {
	t.Cleanup(reports.Install(t, newEnvironmentClient(t)))
	e := newEnvironment(t, func(e *environment) { e.settings.Interval = 2 * time.Second })
	e.Create(makeSandbox("host", onHostNetwork))
	e.reported("fail host-namespaces critical 1 host")
	found, err := e.report()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Client.Delete(t.Context(), asUnstructured(found)); err != nil {
		t.Fatal(err)
	}
	e.reported("fail host-namespaces critical 1 host")
}

// resting is the clock of a machine that notes how long it was asked to wait, and how long
// that took it: timers are late, the more the busier the machine is.
type resting struct {
	clock.Clock
	asked, rested time.Duration
	since         time.Time
}

// After waits, and notes it.
func (r *resting) After(span time.Duration) <-chan time.Time {
	r.asked, r.since = r.asked+span, r.Clock.Now()
	return r.Clock.After(span)
}

// Now is what ends a rest.
func (r *resting) Now() time.Time {
	now := r.Clock.Now()
	if !r.since.IsZero() {
		r.rested, r.since = r.rested+now.Sub(r.since), time.Time{}
	}
	return now
}

// Looking through what nothing has to be judged of costs too: all of a pass is kept to the
// share, not only what judges.
func TestAPassThatJudgesNothingIsPacedToo(t *testing.T) {
	const share, passes = 0.1, 10
	e := newEnvironment(t, func(e *environment) { e.store(250) })
	e.audited(250)
	clk := &resting{Clock: clock.RealClock{}}
	e.auditor.reconciler.pacer = &pacer{clock: clk, share: share}
	before, begun := e.evaluations(), clk.Now()
	for range passes {
		if _, err := e.auditor.reconciler.Reconcile(t.Context(), request(e.Namespace)); err != nil {
			t.Fatal(err)
		}
	}
	worked := clk.Now().Sub(begun) - clk.rested
	if got := e.evaluations() - before; got != 0 {
		t.Fatalf("%v objects were judged, want none: nothing changed", got)
	}
	if paused := float64(clk.asked) / float64(clk.asked+worked); paused < 1-2*share {
		t.Errorf("%d passes worked for %s and asked for pauses of %s: %.0f%%, want %.0f%%", passes, worked, clk.asked, 100*paused, 100*(1-share))
	}
}

// evaluations is how many objects were judged.
func (e *environment) evaluations() float64 {
	e.Helper()
	families, err := e.registry.Gather()
	if err != nil {
		e.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "agent_sandbox_audit_evaluations_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	e.Fatal("nothing counts evaluations")
	return 0
}
