// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package lifetime_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lifetime"
)

func noon() time.Time { return time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC) }

// giving is a tier with that longest life.
func giving(most time.Duration) config.Tier {
	return config.Tier{MaxLifetime: metav1.Duration{Duration: most}}
}

// startedUnder is a Pod that was made in a tier with that longest life.
func startedUnder(most time.Duration) metav1.Object {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "blue"}}}
	lifetime.Note(pod, giving(most))
	return pod
}

func TestEnd(t *testing.T) {
	none := time.Time{}
	cases := map[string]struct {
		most    time.Duration
		running []metav1.Object
		want    time.Time
	}{
		"a tier without a bound ends nothing":              {0, nil, none},
		"nor what was started when it had one":             {0, []metav1.Object{startedUnder(time.Hour)}, none},
		"what was not started ends by the tier of today":   {time.Hour, nil, noon().Add(time.Hour)},
		"what was started under the same bound as well":    {time.Hour, []metav1.Object{startedUnder(time.Hour)}, noon().Add(time.Hour)},
		"a tighter tier takes nothing back":                {time.Hour, []metav1.Object{startedUnder(5 * time.Hour)}, noon().Add(5 * time.Hour)},
		"nor sets a bound where there was none":            {time.Hour, []metav1.Object{startedUnder(0)}, none},
		"a wider tier gives more to what runs":             {5 * time.Hour, []metav1.Object{startedUnder(time.Hour)}, noon().Add(5 * time.Hour)},
		"one note of several is enough":                    {time.Hour, []metav1.Object{startedUnder(0), startedUnder(2 * time.Hour)}, noon().Add(2 * time.Hour)},
		"a note that nobody can read is none":              {time.Hour, []metav1.Object{labelled("soon")}, none},
		"a note that would end things before they began":   {time.Hour, []metav1.Object{labelled("-5h")}, none},
		"an empty note, as a hand would leave it, is none": {time.Hour, []metav1.Object{labelled("")}, none},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := lifetime.End(noon(), giving(tc.most), tc.running...); !got.Equal(tc.want) {
				t.Errorf("End = %s, want %s", got, tc.want)
			}
		})
	}
}

func labelled(value string) metav1.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{keys.MaxLifetime: value}}}
}

func TestANoteIsALabelAndGoesWithTheBound(t *testing.T) {
	for _, most := range []time.Duration{time.Nanosecond, 1500 * time.Millisecond, 24 * time.Hour, 1<<63 - 1} {
		pod := startedUnder(most)
		value := pod.GetLabels()[keys.MaxLifetime]
		if problems := validation.IsValidLabelValue(value); value == "" || problems != nil {
			t.Errorf("a life of %s is noted as %q: %v", most, value, problems)
		}
		lifetime.Note(pod, giving(0))
		if labels := pod.GetLabels(); len(labels) != 1 || labels["team"] != "blue" {
			t.Errorf("without a bound the labels are %v, want the Pod's own", labels)
		}
	}
}

func TestCurtails(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon().Add(d)} }
	cases := map[string]struct {
		end    time.Time
		chosen *metav1.Time
		want   bool
	}{
		"no end of either":           {time.Time{}, nil, false},
		"no end of the tier":         {time.Time{}, at(time.Hour), false},
		"no end chosen":              {noon(), nil, true},
		"an end chosen that is late": {noon(), at(time.Second), true},
		"the same end":               {noon(), at(0), false},
		"an earlier end chosen":      {noon(), at(-time.Second), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := lifetime.Curtails(tc.end, tc.chosen); got != tc.want {
				t.Errorf("Curtails = %t, want %t", got, tc.want)
			}
		})
	}
}
