// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package audit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/verdict"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

const day = 24 * time.Hour

// ruleOf is a rule with such a body, which may read the templates and pools.
func ruleOf(body string) map[string]string {
	return map[string]string{"team.rego": `# METADATA
# title: Of the team
# description: A rule of the platform team.
# custom:
#   id: of-the-team
#   severity: high
#   enforcement: Deny
#   remediation: Ask the team.
#   kinds: [Sandbox]
#   data: [templates, pools]
package policies.team.of_the_team

` + body}
}

// exemptUntil are policies that refuse old images everywhere but in the namespace of the test,
// until the end of a day.
func (e *environment) exemptUntil(end time.Time) map[string]string {
	return map[string]string{
		"no-old-images.rego": noOldImages,
		policysource.ConfigurationKey: fmt.Sprintf("exemptions: [{rule: no-old-images, namespaces: [%s], reason: Migration., owner: team, expires: %q}]",
			e.Namespace, end.UTC().Format(time.DateOnly)),
	}
}

// What is remembered of a Sandbox that waits is the same verdict again, and no longer than
// what it rests on: nothing else has to be asked, and nothing tells when a day is over.
func TestAVerdictIsRememberedAsLongAsWhatItRestsOn(t *testing.T) {
	template := makeTemplate()
	cases := map[string]struct {
		policies func(e *environment) map[string]string
		change   func(e *environment)
	}{
		"an exemption ends": {
			func(e *environment) map[string]string { return e.exemptUntil(e.Clock.Now()) },
			func(e *environment) { e.Clock.Jump(day) },
		},
		"a rule goes by the time of the request": {
			func(e *environment) map[string]string {
				return ruleOf(fmt.Sprintf("deny contains \"late\" if time.parse_rfc3339_ns(input.now) > %d\n", e.Clock.Now().Add(day).UnixNano()))
			},
			func(e *environment) { e.Clock.Jump(2 * day) },
		},
		"a rule goes by the clock": {
			func(e *environment) map[string]string {
				return ruleOf(fmt.Sprintf("deny contains \"late\" if time.now_ns() > %d\n", e.Clock.Now().Add(day).UnixNano()))
			},
			func(e *environment) { e.Clock.Jump(2 * day) },
		},
		"a template comes that a rule reads": {
			func(*environment) map[string]string {
				return ruleOf("deny contains \"taken\" if data.inventory.templates.template\n")
			},
			func(e *environment) { e.Create(template.DeepCopy()) },
		},
		"a template changes that a rule reads": {
			func(e *environment) map[string]string {
				e.Create(template.DeepCopy())
				return ruleOf("deny contains \"old\" if data.inventory.templates.template.spec.podTemplate.spec.containers[0].image != \"registry.example.com/main:1.2\"\n")
			},
			func(e *environment) {
				apiserver.Change(e.Environment, "template", &extensionsv1beta1.SandboxTemplate{}, func(t *extensionsv1beta1.SandboxTemplate) {
					t.Spec.PodTemplate.Spec.Containers[0].Image = "registry.example.com/main:2"
				})
			},
		},
		"a template goes that a rule reads": {
			func(e *environment) map[string]string {
				e.Create(template.DeepCopy())
				return ruleOf("deny contains \"alone\" if not data.inventory.templates.template\n")
			},
			func(e *environment) { e.drop(template.DeepCopy()) },
		},
		"a pool comes that a rule reads": {
			func(*environment) map[string]string {
				return ruleOf("deny contains \"pool\" if count(data.inventory.pools) > 0\n")
			},
			func(e *environment) {
				e.Create(poolOfTemplate())
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEnvironment(t, func(e *environment) { e.settings.Interval = 0 }) // nobody but a claim asks
			var sandbox agentsv1beta1.Sandbox
			made := makeSandbox("waits", func(pod *corev1.PodSpec) { pod.AutomountServiceAccountToken = new(false) })
			made.Spec.PodTemplate.Spec.Containers[0].Image = "registry.example.com/main:old"
			e.Create(made)
			e.Get("waits", &sandbox)
			e.configure(tc.policies(e))
			e.judged(&sandbox, verdict.Admitted)
			first := e.auditor.reconciler.ledger.get(e.Namespace, sandbox.UID)
			e.judged(&sandbox, verdict.Admitted)
			if e.auditor.reconciler.ledger.get(e.Namespace, sandbox.UID) != first {
				t.Error("the same was judged twice")
			}
			tc.change(e)
			e.judged(&sandbox, verdict.Refused)
		})
	}
}

// judged waits until the verdict is that one.
func (e *environment) judged(sandbox *agentsv1beta1.Sandbox, want verdict.State) {
	e.Helper()
	e.Eventually("the Sandbox is "+want.String(), func() error {
		if got := e.auditor.Members().Of(e.Context(), sandbox); got.State != want {
			return fmt.Errorf("it is %s: %s", got.State, got.Reason)
		}
		return nil
	})
}

// The day after an exemption ended, a claim does not get what was admitted under it.
func TestNoClaimGetsAWaitingSandboxWhoseExemptionEnded(t *testing.T) {
	e := newEnvironment(t, withPools)
	e.configure(e.exemptUntil(e.Clock.Now()))
	e.pool(2)
	e.filled(2)
	if got := e.launched("before", false); got != "warm" {
		t.Errorf("the claim under the exemption had a %s start, want a warm one", got)
	}
	e.filled(2)
	e.Clock.Jump(day)
	if got := e.launched("after", true); got != "cold" {
		t.Errorf("the claim after the exemption had a %s start, want a cold one", got)
	}
}

// witness notes by which policies verdicts were asked for.
type witness struct {
	verdict.Judge
	engine *engine.Engine

	mu    sync.Mutex
	given []given
}

type given struct {
	sandbox types.UID
	state   verdict.State
	// digest names the policies that were in force before it was asked for.
	digest string
}

// all are the verdicts so far.
func (w *witness) all() []given {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.given)
}

// Of notes the verdict.
func (w *witness) Of(ctx context.Context, sandbox *agentsv1beta1.Sandbox) verdict.Verdict {
	digest := w.engine.Digest()
	v := w.Judge.Of(ctx, sandbox)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.given = append(w.given, given{sandbox.UID, v.State, digest})
	return v
}

// Claims come, and are served from a pool, while the rule changes: whoever is asked about a
// Sandbox from then on refuses it, and none is handed out that nobody admitted.
func TestClaimsInFlightWhileARuleChangesGetNothingThatItRefuses(t *testing.T) {
	const streams, before, after = 2, 8, 3
	e := newEnvironment(t, withPools)
	e.pool(8)
	e.filled(8)
	changed := make(chan struct{})
	var group errgroup.Group
	names := make([][]string, streams)
	for stream := range streams {
		group.Go(func() error {
			for range before + after {
				if len(names[stream]) == before {
					<-changed
				}
				name := fmt.Sprintf("claim-%d-%d", stream, len(names[stream]))
				made := claimOfPool()
				made.Namespace, made.Name = e.Namespace, name
				if err := e.Client.Create(e.Context(), made); err != nil {
					return err
				}
				names[stream] = append(names[stream], name)
			}
			return nil
		})
	}
	e.configure(map[string]string{"no-old-images.rego": noOldImages})
	refusing := e.engine.Digest()
	close(changed)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	launched, served := map[string]int{}, []types.UID{}
	for _, name := range slices.Concat(names...) {
		launch := e.settles(name)
		launched[launch]++
		if launch == "warm" {
			served = append(served, e.served(name).UID)
		}
	}
	admitted := map[types.UID]bool{}
	for _, asked := range e.witness.all() {
		if asked.state != verdict.Admitted {
			continue
		}
		admitted[asked.sandbox] = true
		if asked.digest == refusing {
			t.Errorf("Sandbox %s was admitted while the rule was in force", asked.sandbox)
		}
	}
	for _, uid := range served {
		if !admitted[uid] {
			t.Errorf("a claim got Sandbox %s, which nobody admitted", uid)
		}
	}
	t.Logf("launches: %v", launched)
	if launched["warm"] == 0 || launched["cold"] < streams*after {
		t.Errorf("launches: %v, want warm ones, and cold ones of all claims that came after the rule", launched)
	}
}
