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

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/exposure"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Whatever an object is judged by may change after it was stored. No object is touched
// for it.
func TestWhatIsStoredIsJudgedAgainWhenWhatItIsJudgedByChanges(t *testing.T) {
	e := newEnvironment(t)
	e.Create(makeSandbox("plain"), makeSandbox("host", onHostNetwork))
	const rules = "host-namespaces tier reopened-network"
	e.says(rules, "host-namespaces Deny 1")
	for _, step := range []struct {
		what   string
		change func()
		want   []string
	}{
		{"a rule only warns", func() { e.configure(enforce(engine.Warn)) }, []string{"host-namespaces Warn 1"}},
		{"a rule is off", func() { e.configure(enforce(engine.Off)) }, nil},
		{"a rule denies again", func() { e.configure(enforce(engine.Deny)) }, []string{"host-namespaces Deny 1"}},
		{"the namespace is of another tier", func() { e.label("closed") }, []string{"host-namespaces Deny 1", "tier Deny 2"}},
		{"and back", func() { e.label("standard") }, []string{"host-namespaces Deny 1"}},
		{"a Sandbox comes", func() { e.Create(makeSandbox("second", onHostNetwork)) }, []string{"host-namespaces Deny 2"}},
		{"a NetworkPolicy opens what ours close", func() {
			e.auditor.Exposed(e.Namespace, []exposure.Finding{{Policy: "all", Direction: "Egress", Peers: []string{"everything"}, Pods: []string{"p"}}})
		}, []string{"host-namespaces Deny 2", "reopened-network Audit 1"}},
		{"and is gone", func() { e.auditor.Exposed(e.Namespace, nil) }, []string{"host-namespaces Deny 2"}},
		{"both Sandboxes go", func() { e.Delete(e.named("host")); e.Delete(e.named("second")) }, nil},
	} {
		t.Log(step.what)
		step.change()
		e.says(rules, step.want...)
	}
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
	e.says("host-namespaces", "host-namespaces Deny 1")
	t.Cleanup(installReports(t, e.Client))
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
	t.Cleanup(installReports(t, newEnvironmentClient(t)))
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
