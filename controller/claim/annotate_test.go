// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Clients and dashboards read the times as they are written, fractions of the second included.
func TestTimesThatAClaimIsGiven(t *testing.T) {
	const atNoon, aMomentLater = "2026-11-29T12:00:00Z", "2026-11-29T12:00:00.012345678Z"
	readyLater := func(s *scope) {
		s.record.readyAt = noon().Add(12345678 * time.Nanosecond).In(time.FixedZone("elsewhere", 3600))
	}
	cases := map[string]struct {
		change func(*scope)
		off    bool
		want   map[string]string
	}{
		"a claim that was followed from the beginning": {
			change: readyLater,
			want:   map[string]string{keys.ClaimFirstReadyAt: aMomentLater, keys.ControllerFirstObservedAt: atNoon},
		},
		"one that the webhook had seen before": {
			change: func(s *scope) {
				readyLater(s)
				s.claim.Annotations = map[string]string{keys.ControllerFirstObservedAt: "2026-11-29T11:59:59Z"}
			},
			want: map[string]string{keys.ClaimFirstReadyAt: aMomentLater, keys.ControllerFirstObservedAt: "2026-11-29T11:59:59Z"},
		},
		"one that an earlier process made Ready": {change: func(*scope) {}, want: map[string]string{keys.ClaimFirstReadyAt: "unknown"}},
		"one that was Ready before": {
			change: func(s *scope) {
				readyLater(s)
				s.claim.Annotations = map[string]string{keys.ClaimFirstReadyAt: atNoon, "note": "mine"}
			},
			want: map[string]string{keys.ClaimFirstReadyAt: atNoon, "note": "mine"},
		},
		"one of a platform that wants no times": {change: readyLater, off: true, want: map[string]string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(nil, nil, nil, clocktesting.NewFakePassiveClock(noon()), Settings{NoTimes: tc.off})
			s := makeScope()
			s.sandbox = makeSandbox()
			tc.change(s)
			tc.want[keys.SandboxName] = "box"
			if diff := cmp.Diff(tc.want, r.annotations(s)); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}
