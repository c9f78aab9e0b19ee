// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/series"
)

func TestCensus(t *testing.T) {
	said := func(status metav1.ConditionStatus, reason string) agentsv1beta1.SandboxStatus {
		return agentsv1beta1.SandboxStatus{Conditions: []metav1.Condition{{Type: agentsv1beta1.ConditionReady, Status: status, Reason: reason}}}
	}
	ownedBy := func(kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: extensionsv1beta1.GroupVersion.String(), Kind: kind, Controller: new(true)}}
	}
	bare := agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"}}
	member := agentsv1beta1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", OwnerReferences: ownedBy(extensionsv1beta1.SandboxWarmPoolKind),
			Labels:      map[string]string{keys.LaunchType: "warm", keys.CreatedBy: "controller"},
			Annotations: map[string]string{keys.SandboxTemplateRef: "python"},
		},
		Status: said(metav1.ConditionTrue, agentsv1beta1.ReasonDependenciesReady),
	}
	expired := agentsv1beta1.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", OwnerReferences: ownedBy(extensionsv1beta1.SandboxClaimKind)},
		Status:     said(metav1.ConditionFalse, agentsv1beta1.ReasonSandboxExpired),
	}
	want := map[class]int{
		{namespace: "team-a", launch: unknown, template: unknown, ownedBy: "None", creator: unknown}:                              1,
		{namespace: "team-a", ready: true, launch: "warm", template: "python", ownedBy: "SandboxWarmPool", creator: "controller"}: 2,
		{namespace: "team-b", expired: true, launch: unknown, template: unknown, ownedBy: "SandboxClaim", creator: unknown}:       1,
	}
	got := census([]agentsv1beta1.Sandbox{bare, member, member, expired})
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(class{})); diff != "" {
		t.Errorf("census() (-want +got):\n%s", diff)
	}
}

func TestOnlyTheFirstReadyThatWasSeenFromTheBeginningIsMeasured(t *testing.T) {
	created := time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC)
	ready := func(uid types.UID) *agentsv1beta1.Sandbox {
		s := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: "box", UID: uid, CreationTimestamp: metav1.NewTime(created)}}
		s.Status.Conditions = []metav1.Condition{{Type: agentsv1beta1.ConditionReady, Status: metav1.ConditionTrue}}
		return s
	}
	young := ready("uid")
	young.Status.Conditions = nil
	cases := map[string]struct {
		act  func(*starts)
		want uint64
	}{
		"seen from the beginning": {func(s *starts) { s.begin(young, created); s.ready(ready("uid"), created) }, 1},
		"ready for the second time": {func(s *starts) {
			s.begin(young, created)
			s.ready(ready("uid"), created)
			s.ready(ready("uid"), created)
		}, 1},
		"met when it was ready": {func(s *starts) { s.begin(ready("uid"), created); s.ready(ready("uid"), created) }, 0},
		"another of that name":  {func(s *starts) { s.begin(young, created); s.ready(ready("other"), created) }, 0},
		"gone before": {func(s *starts) {
			s.begin(young, created)
			s.forget(client.ObjectKeyFromObject(young))
			s.ready(ready("uid"), created)
		}, 0},
		"reported on but not yet ready": {func(s *starts) { s.begin(young, created); s.ready(young, created) }, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStarts(clocktesting.NewFakePassiveClock(created))
			tc.act(s)
			registry := prometheus.NewRegistry()
			registry.MustRegister(s.latency)
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := uint64(0)
			for _, family := range families {
				for _, metric := range family.GetMetric() {
					got += metric.GetHistogram().GetSampleCount()
				}
			}
			if got != tc.want {
				t.Errorf("%d measured, want %d", got, tc.want)
			}
		})
	}
}

func TestBornKnowsFractionsOfTheSecond(t *testing.T) {
	created := time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct{ seen, want time.Duration }{
		"seen at once":           {40 * time.Millisecond, 40 * time.Millisecond},
		"seen late":              {3 * time.Second, 0},
		"clocks that differ":     {-time.Second, 0},
		"the end of that second": {time.Second, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := born(created, created.Add(tc.seen)).Sub(created); got != tc.want {
				t.Errorf("born() is %s after the second, want %s", got, tc.want)
			}
		})
	}
}

// A tenant chooses the names of templates, and a platform may have a namespace for each task.
func TestWhatIsMeasuredIsBoundedAndGoesWithItsNamespace(t *testing.T) {
	created := time.Date(2026, time.November, 29, 12, 0, 0, 0, time.UTC)
	r := &Reconciler{starts: newStarts(clocktesting.NewFakePassiveClock(created))}
	start := func(namespace, template string) {
		s := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "box", UID: types.UID(template), Annotations: map[string]string{keys.SandboxTemplateRef: template},
		}}
		r.starts.begin(s, created)
		s.Status.Conditions = []metav1.Condition{{Type: agentsv1beta1.ConditionReady, Status: metav1.ConditionTrue}}
		r.starts.ready(s, created)
	}
	for n := range 1000 {
		start("team-a", fmt.Sprintf("python-%d", n))
	}
	start("team-b", "python-0")
	if got := seriesOf(r.starts.latency); got != series.Most+2 {
		t.Errorf("there are %d series, want %d, one for the others and one of another namespace", got, series.Most+2)
	}
	r.namespacesGone().Delete(t.Context(), event.DeleteEvent{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}}, nil)
	if got := seriesOf(r.starts.latency); got != 1 {
		t.Errorf("%d series are left, want that of the other namespace", got)
	}
}

// seriesOf counts the series of a metric.
func seriesOf(metric prometheus.Collector) int {
	collected := make(chan prometheus.Metric, 2000)
	metric.Collect(collected)
	return len(collected)
}
