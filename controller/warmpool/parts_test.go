// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

func TestMemberOf(t *testing.T) {
	made := noon().Add(-time.Hour)
	condition := func(kind string, status metav1.ConditionStatus, reason, message string, at time.Time) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(at)}
	}
	notReady := func(reason, message string, at time.Time) metav1.Condition {
		return condition(agentsv1beta1.ConditionReady, metav1.ConditionFalse, reason, message, at)
	}
	cases := map[string]struct {
		conditions      []metav1.Condition
		ready, wasReady bool
		since           time.Time
		held            hold
	}{
		"without a status it waits since it was made": {since: made},
		"Ready": {
			conditions: []metav1.Condition{condition(agentsv1beta1.ConditionReady, metav1.ConditionTrue, "x", "", noon())},
			ready:      true, wasReady: true,
		},
		"never Ready": {
			conditions: []metav1.Condition{notReady("DependenciesNotReady", "", made.Add(time.Second))}, since: made.Add(time.Second),
		},
		"Ready until a minute ago": {
			conditions: []metav1.Condition{notReady("DependenciesNotReady", "", noon().Add(-time.Minute))},
			since:      noon().Add(-time.Minute), wasReady: true,
		},
		"without a node": {
			conditions: []metav1.Condition{
				condition(agentsv1beta1.ConditionPodScheduled, metav1.ConditionFalse, corev1.PodReasonUnschedulable, "0/3 nodes", noon()),
			},
			since: made, held: heldUnschedulable,
		},
		"behind a gate": {
			conditions: []metav1.Condition{
				condition(agentsv1beta1.ConditionPodScheduled, metav1.ConditionFalse, corev1.PodReasonSchedulingGated, "", noon()),
			},
			since: made, held: heldUnschedulable,
		},
		"without room in the quota": {
			conditions: []metav1.Condition{notReady(agentsv1beta1.ReasonReconcilerError, "Error seen: create pod: pods x is forbidden: exceeded quota: q", made)},
			since:      made, held: heldQuota,
		},
		"refused by a policy": {
			conditions: []metav1.Condition{notReady(agentsv1beta1.ReasonReconcilerError, "Error seen: create pod: pods x is forbidden: no", made)},
			since:      made, held: heldDenied,
		},
		"in any other trouble": {
			conditions: []metav1.Condition{notReady(agentsv1beta1.ReasonReconcilerError, "Error seen: etcd is busy", made)}, since: made,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sandbox := makeMember("m").sandbox
			sandbox.Status.Conditions = tc.conditions
			got := memberOf(sandbox, false)
			if got.ready != tc.ready || got.wasReady != tc.wasReady || !got.since.Equal(tc.since) || got.held != tc.held {
				t.Errorf("memberOf() = %+v, want ready %t, wasReady %t, since %s, held %d", got, tc.ready, tc.wasReady, tc.since, tc.held)
			}
		})
	}
}

func TestAMemberThatSomebodyChangedIsUnfit(t *testing.T) {
	cases := map[string]struct {
		change func(*agentsv1beta1.Sandbox)
		unfit  bool
	}{
		"one as it was made": {func(*agentsv1beta1.Sandbox) {}, false},
		"one that ends":      {func(s *agentsv1beta1.Sandbox) { s.Spec.ShutdownTime = new(metav1.NewTime(noon())) }, true},
		"one that its tier has ended": {func(s *agentsv1beta1.Sandbox) {
			s.Status.Conditions = []metav1.Condition{{
				Type: agentsv1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: agentsv1beta1.ReasonSandboxExpired,
			}}
		}, true},
		"one that is suspended":       {func(s *agentsv1beta1.Sandbox) { s.Spec.OperatingMode = agentsv1beta1.OperatingModeSuspended }, true},
		"one without its pool's hash": {func(s *agentsv1beta1.Sandbox) { delete(s.Labels, keys.WarmPoolSandbox) }, true},
		"one without its template's":  {func(s *agentsv1beta1.Sandbox) { delete(s.Labels, keys.SandboxTemplateRefHash) }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sandbox := makeMember("m").sandbox
			sandbox.Labels = map[string]string{keys.WarmPoolSandbox: "1", keys.SandboxTemplateRefHash: "2"}
			tc.change(sandbox)
			if got := memberOf(sandbox, false); got.unfit != tc.unfit {
				t.Errorf("unfit = %t, want %t", got.unfit, tc.unfit)
			}
		})
	}
}

func TestBudgetOfMembersThatWereReady(t *testing.T) {
	m := newMemory("uid", noon())
	at := func(after time.Duration) time.Time { return noon().Add(after) }
	steps := []struct {
		at        time.Time
		wereReady int
		left      int
		more      time.Time
	}{
		{at(time.Second), 100, 0, at(grace)}, // what another process did is not known yet
		{at(grace), 100, 10, time.Time{}},
		{at(grace + time.Minute), 100, 0, at(2 * grace)}, // ten were spent at the end of the grace
		{at(2 * grace), 30, 3, time.Time{}},
		{at(3 * grace), 4, 1, time.Time{}}, // one at least
	}
	for _, step := range steps {
		left, more := m.budget(step.at, grace, step.wereReady)
		if left != step.left || !more.Equal(step.more) {
			t.Errorf("budget(%s) = %d, %s, want %d, %s", step.at, left, more, step.left, step.more)
		}
		for i := range left {
			m.spent[types.UID(fmt.Sprint(step.at, i))] = step.at
		}
	}
}

func TestRefill(t *testing.T) {
	at := func(after time.Duration) time.Time { return noon().Add(after) }
	t.Run("a batch is bounded", func(t *testing.T) {
		var r refill
		if count, again := r.allow(Refill{MaxBatch: 300}, plan{create: 1000}, noon()); count != 300 || !again.IsZero() {
			t.Errorf("allow() = %d, %s", count, again)
		}
	})
	t.Run("a new pool is filled at once, a full one waits from the first that is missing", func(t *testing.T) {
		var r refill
		limits := Refill{MaxBatch: 300, Delay: 10 * time.Second}
		for _, step := range []struct {
			after   time.Duration
			missing int
			want    int
		}{{0, 5, 5}, {time.Second, 0, 0}, {2 * time.Second, 1, 0}, {11 * time.Second, 2, 0}, {12 * time.Second, 3, 3}} {
			if count, _ := r.allow(limits, plan{create: step.missing}, at(step.after)); count != step.want {
				t.Errorf("allow() after %s = %d, want %d", step.after, count, step.want)
			}
		}
	})
	t.Run("a rate is kept to, and the next pass is due when one more may be made", func(t *testing.T) {
		var r refill
		limits, made := Refill{MaxBatch: 300, PerSecond: 2}, 0
		now := noon()
		for now.Before(at(10 * time.Second)) {
			count, again := r.allow(limits, plan{create: 100}, now)
			if !again.After(now) {
				t.Fatalf("the next pass is due at %s, now is %s", again, now)
			}
			r.spend(count)
			made += count
			now = again
		}
		if made < 20 || made > 22 {
			t.Errorf("%d were made in 10 s at 2 a second", made)
		}
	})
}

func TestRefusalPausesLongerEachTimeAndNotForSomethingNew(t *testing.T) {
	var r refusal
	now, waited := noon(), []time.Duration{}
	for range 8 {
		r.note(heldDenied, "no", "one", now)
		if !r.holds("one", now) || r.holds("two", now) {
			t.Fatalf("holds() = %t for the same, %t for something new", r.holds("one", now), r.holds("two", now))
		}
		waited = append(waited, r.retryAt.Sub(now))
		now = r.retryAt
	}
	if waited[0] != time.Second || waited[1] != 2*time.Second || waited[7] != time.Minute {
		t.Errorf("waited %v", waited)
	}
	if r.note(heldDenied, "no", "two", now); r.retryAt.Sub(now) != time.Second {
		t.Errorf("something new waits %s", r.retryAt.Sub(now))
	}
}

// A refill must not wait for a minute because the apiserver was away for a moment.
func TestAFailureThatIsNoRefusalPausesForSecondsOnly(t *testing.T) {
	var r refusal
	now, waited := noon(), []time.Duration{}
	for _, kind := range []hold{notHeld, notHeld, notHeld, notHeld, notHeld, heldQuota, heldQuota, notHeld} {
		r.note(kind, "no", "one", now)
		waited = append(waited, r.retryAt.Sub(now)/time.Second)
		now = r.retryAt
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 5, 5, 10, 20, 5}, waited); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}

func TestWhatKeepsAMemberFromBeingMade(t *testing.T) {
	sandboxes := schema.GroupResource{Group: "agents.x-k8s.io", Resource: "sandboxes"}
	cases := map[string]struct {
		err  error
		kind hold
	}{
		"a full quota":             {apierrors.NewForbidden(sandboxes, "m", errors.New("exceeded quota: q")), heldQuota},
		"a webhook that refuses":   {apierrors.NewForbidden(sandboxes, "m", errors.New("admission webhook denied the request: no")), heldDenied},
		"a spec that is not valid": {apierrors.NewInvalid(schema.GroupKind{Kind: "Sandbox"}, "m", nil), heldDenied},
		"an answer that was lost":  {errors.New("http2: client connection lost"), notHeld},
		"a timeout":                {apierrors.NewTimeoutError("too slow", 1), notHeld},
		"a server that failed":     {apierrors.NewInternalError(errors.New("failed calling webhook")), notHeld},
		"a server that is busy":    {apierrors.NewTooManyRequestsError("later"), notHeld},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := kindOf(tc.err); got != tc.kind {
				t.Errorf("kindOf() = %d, want %d", got, tc.kind)
			}
		})
	}
}

func TestNamesFitWhateverBearsThem(t *testing.T) {
	r := &Reconciler{suffix: randomSuffix}
	for _, length := range []int{1, 57, 58, 63, 200} {
		pool := makePool(1)
		pool.Name = strings.Repeat("p", length)
		name := r.newName(&scope{pool: pool})
		if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
			t.Errorf("a pool with a name of %d makes %q: %v", length, name, problems)
		}
		if !strings.HasPrefix(name, pool.Name[:min(length, 57)]) {
			t.Errorf("a pool with a name of %d makes %q", length, name)
		}
	}
}

func makeScope(edits ...func(*scope)) *scope {
	s := &scope{
		pool: makePool(2, byStrategy(extensionsv1beta1.UpdateStrategyRecreate)), now: noon(), grace: grace,
		memory: newMemory("pool-uid", noon()), removed: map[string]bool{},
		template: &extensionsv1beta1.SandboxTemplate{}, members: []member{makeMember("a"), makeMember("b")},
	}
	for _, change := range edits {
		change(s)
	}
	return s
}

func TestDesiredStatus(t *testing.T) {
	late := func(held hold) func(*scope) {
		return func(s *scope) {
			s.members[1] = makeMember("b", starting(time.Hour), func(m *member) { m.held, m.refusal = held, "the real message" })
			s.plan.held = []member{s.members[1]}
		}
	}
	cases := map[string]struct {
		edit          func(*scope)
		active, ready int32
		// progressing is "status/reason" and a part of the message.
		progressing, says string
		denied, quota     bool
	}{
		"complete":                     {active: 2, ready: 2, progressing: "True/Complete"},
		"on its way":                   {edit: func(s *scope) { s.members = s.members[:1] }, active: 1, ready: 1, progressing: "True/Filling"},
		"what was removed counts out":  {edit: func(s *scope) { s.removed["a"] = true }, active: 1, ready: 1, progressing: "True/Filling"},
		"what is leaving counts out":   {edit: func(s *scope) { s.members[0].leaving = true }, active: 1, ready: 1, progressing: "True/Filling"},
		"without a template":           {edit: func(s *scope) { s.template = nil }, active: 2, ready: 2, progressing: "False/TemplateNotFound", says: `"python" not found`},
		"members that wait for a node": {edit: late(heldUnschedulable), active: 2, ready: 1, progressing: "False/Unschedulable", says: "1/2 sandboxes are unschedulable past the 5m0s readiness grace period; holding them instead of replacing (replacements would be equally unschedulable)"},
		"Pods that a quota refuses":    {edit: late(heldQuota), active: 2, ready: 1, progressing: "False/QuotaExceeded", says: "the real message", quota: true},
		"Pods that a policy refuses":   {edit: late(heldDenied), active: 2, ready: 1, progressing: "False/PolicyDenied", says: "the real message", denied: true},
		"Sandboxes that are refused": {
			edit:   func(s *scope) { s.members = nil; s.memory.refusal.note(heldDenied, "denied: rule x", "", noon()) },
			active: 0, progressing: "False/PolicyDenied", says: "denied: rule x", denied: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := makeScope()
			if tc.edit != nil {
				tc.edit(s)
			}
			got := desiredStatus(s)
			if got.Replicas != tc.active || got.ReadyReplicas != tc.ready || got.ObservedGeneration != 2 {
				t.Errorf("status = %+v, want %d active and %d ready of generation 2", got, tc.active, tc.ready)
			}
			if want := keys.WarmPoolSandbox + "=" + keys.NameHash("pool"); got.Selector != want {
				t.Errorf("selector = %q, want %q", got.Selector, want)
			}
			progressing := meta.FindStatusCondition(got.Conditions, extensionsv1beta1.PoolConditionProgressing)
			if state := string(progressing.Status) + "/" + progressing.Reason; state != tc.progressing || !strings.Contains(progressing.Message, tc.says) {
				t.Errorf("Progressing = %s %q, want %s %q", state, progressing.Message, tc.progressing, tc.says)
			}
			if denied := meta.IsStatusConditionTrue(got.Conditions, extensionsv1beta1.PoolConditionPolicyDenied); denied != tc.denied {
				t.Errorf("PolicyDenied = %t, want %t", denied, tc.denied)
			}
			if quota := meta.IsStatusConditionTrue(got.Conditions, extensionsv1beta1.PoolConditionQuotaExceeded); quota != tc.quota {
				t.Errorf("QuotaExceeded = %t, want %t", quota, tc.quota)
			}
		})
	}
}

func TestOnlyMoreThanNumbersIsNews(t *testing.T) {
	stored := desiredStatus(makeScope())
	cases := map[string]struct {
		edit func(*scope)
		news bool
	}{
		"nothing":                   {edit: func(*scope) {}},
		"a member fewer":            {edit: func(s *scope) { s.members = s.members[:1] }},
		"another generation":        {edit: func(s *scope) { s.pool.Generation++ }, news: true},
		"a template that went":      {edit: func(s *scope) { s.template = nil }, news: true},
		"a refusal":                 {edit: func(s *scope) { s.memory.refusal.note(heldDenied, "denied: rule x", "", noon()) }, news: true},
		"a quota while Pods missed": {edit: func(s *scope) { s.members = nil; s.memory.refusal.note(heldQuota, "exceeded quota", "", noon()) }, news: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := makeScope()
			tc.edit(s)
			if desired := desiredStatus(s); isNews(&stored, &desired) != tc.news {
				t.Errorf("isNews() = %t, want %t", !tc.news, tc.news)
			}
		})
	}
	if empty := (extensionsv1beta1.SandboxWarmPoolStatus{ObservedGeneration: 2}); !isNews(&empty, &stored) {
		t.Error("isNews() = false for conditions that were never written, want true")
	}
}

// What a pool has and lacks, as its status and its gauges say it. What leaves counts no more.
func TestWhatAPoolHasAndLacks(t *testing.T) {
	reachable := func(m *member) { m.sandbox.Status.PodIPs = []string{"10.1.2.3"} }
	ready := func(name string, edits ...edit) member {
		return makeMember(name, append([]edit{reachable}, edits...)...)
	}
	cases := map[string]struct {
		strategy extensionsv1beta1.UpdateStrategyType
		members  []member
		// active is not a gauge: it is the number of the status.
		active                           int
		ready, deficit, stale, claimable float64
	}{
		"nothing":                       {deficit: 3},
		"all that is wanted":            {members: []member{ready("a"), ready("b"), ready("c")}, active: 3, ready: 3, claimable: 3},
		"one that starts":               {members: []member{ready("a"), ready("b"), makeMember("c", starting(0))}, active: 3, ready: 2, deficit: 1, claimable: 2},
		"one that leaves":               {members: []member{ready("a"), ready("b"), ready("c", leaving)}, active: 2, ready: 2, deficit: 1, claimable: 2},
		"one that was deleted just now": {members: []member{ready("a"), ready("deleted")}, active: 1, ready: 1, deficit: 2, claimable: 1},
		"more than is wanted":           {members: []member{ready("a"), ready("b"), ready("c"), ready("d")}, active: 4, ready: 4, claimable: 4},
		"one without an address":        {members: []member{ready("a"), makeMember("b")}, active: 2, ready: 2, deficit: 1, claimable: 1},
		"one that rules refuse":         {members: []member{ready("a"), ready("b", refused)}, active: 2, ready: 2, deficit: 1, claimable: 1},
		"one that somebody changed":     {members: []member{ready("a"), ready("b", unfit)}, active: 2, ready: 2, deficit: 1, claimable: 1},
		"stale ones that claims get": {
			strategy: extensionsv1beta1.UpdateStrategyOnReplenish,
			members:  []member{ready("a"), ready("b", stale), makeMember("c", starting(0), stale)}, active: 3, ready: 2, deficit: 1, stale: 2, claimable: 2,
		},
		"stale ones that they do not get": {
			strategy: extensionsv1beta1.UpdateStrategyRecreate,
			members:  []member{ready("a"), ready("b", stale), ready("c", stale)}, active: 3, ready: 3, stale: 2, claimable: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := makeScope(func(s *scope) {
				s.pool, s.members, s.removed = makePool(3, byStrategy(tc.strategy)), tc.members, map[string]bool{"deleted": true}
			})
			registry := prometheus.NewRegistry()
			newGauges(registry).set(client.ObjectKeyFromObject(s.pool), s.desired(), s.tally())
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, metric := range families[0].GetMetric() {
				for _, label := range metric.GetLabel() {
					if label.GetName() == "state" {
						got[label.GetValue()] = metric.GetGauge().GetValue()
					}
				}
			}
			want := map[string]float64{"desired": 3, "ready": tc.ready, "deficit": tc.deficit, "stale": tc.stale, "claimable": tc.claimable}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("gauges (-want +got):\n%s", diff)
			}
			if active := s.tally().active; active != tc.active {
				t.Errorf("%d are active, want %d", active, tc.active)
			}
		})
	}
}
