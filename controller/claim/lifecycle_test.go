// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

func inMinutes(n int) *metav1.Time {
	return new(metav1.NewTime(noon().Add(time.Duration(n) * time.Minute)))
}

func TestExpiry(t *testing.T) {
	finishedAtNoon := &metav1.Condition{Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon())}
	cases := map[string]struct {
		edits    []func(*extensionsv1beta1.SandboxClaim)
		finished *metav1.Condition
		// want is in minutes after noon; -1 for never.
		want int
	}{
		"a claim without lifecycle lives on, finished or not": {nil, finishedAtNoon, -1},
		"an empty lifecycle too": {
			[]func(*extensionsv1beta1.SandboxClaim){withLifecycle(extensionsv1beta1.ClaimLifecycle{})}, finishedAtNoon, -1,
		},
		"shutdownTime ends it": {
			[]func(*extensionsv1beta1.SandboxClaim){withLifecycle(extensionsv1beta1.ClaimLifecycle{ShutdownTime: inMinutes(9)})}, nil, 9,
		},
		"the TTL counts from when the Pod ended": {
			[]func(*extensionsv1beta1.SandboxClaim){withLifecycle(extensionsv1beta1.ClaimLifecycle{TTLSecondsAfterFinished: new(int32(300))})}, finishedAtNoon, 5,
		},
		"a TTL of 0 ends it at once": {
			[]func(*extensionsv1beta1.SandboxClaim){withLifecycle(extensionsv1beta1.ClaimLifecycle{TTLSecondsAfterFinished: new(int32(0))})}, finishedAtNoon, 0,
		},
		"the TTL of a Pod that runs does not count": {
			[]func(*extensionsv1beta1.SandboxClaim){withLifecycle(extensionsv1beta1.ClaimLifecycle{TTLSecondsAfterFinished: new(int32(300))})}, nil, -1,
		},
		"the earlier of the two ends it": {
			[]func(*extensionsv1beta1.SandboxClaim){withLifecycle(extensionsv1beta1.ClaimLifecycle{
				ShutdownTime: inMinutes(9), TTLSecondsAfterFinished: new(int32(300)),
			})}, finishedAtNoon, 5,
		},
		"whichever that is": {
			[]func(*extensionsv1beta1.SandboxClaim){withLifecycle(extensionsv1beta1.ClaimLifecycle{
				ShutdownTime: inMinutes(3), TTLSecondsAfterFinished: new(int32(300)),
			})}, finishedAtNoon, 3,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sayMinutes(t, tc.want, expiry(makeClaim("claim", tc.edits...), tc.finished))
		})
	}
}

func TestBindDeadline(t *testing.T) {
	timeout := func(value string) func(*extensionsv1beta1.SandboxClaim) {
		return func(c *extensionsv1beta1.SandboxClaim) { c.Annotations = map[string]string{keys.BindTimeout: value} }
	}
	cases := map[string]struct {
		edits     []func(*extensionsv1beta1.SandboxClaim)
		byDefault time.Duration
		want      int
	}{
		"by default there is none":            {nil, 0, -1},
		"the platform may set one":            {nil, 10 * time.Minute, 10},
		"the claim's own counts":              {[]func(*extensionsv1beta1.SandboxClaim){timeout("5m")}, 10 * time.Minute, 5},
		"and may be longer":                   {[]func(*extensionsv1beta1.SandboxClaim){timeout("1h")}, 10 * time.Minute, 60},
		"one that is none leaves the default": {[]func(*extensionsv1beta1.SandboxClaim){timeout("soon")}, 10 * time.Minute, 10},
		"one that is negative as well":        {[]func(*extensionsv1beta1.SandboxClaim){timeout("-5m")}, 10 * time.Minute, 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sayMinutes(t, tc.want, bindDeadline(makeClaim("claim", tc.edits...), tc.byDefault))
		})
	}
}

func sayMinutes(t *testing.T, want int, got time.Time) {
	t.Helper()
	if want < 0 && !got.IsZero() || want >= 0 && !got.Equal(inMinutes(want).Time) {
		t.Errorf("ends at %v, want %d minutes after noon", got, want)
	}
}

func TestAClaimThatNeverHadASandboxExpiresByItsBindTimeoutOnly(t *testing.T) {
	cases := map[string]struct {
		change  func(*scope)
		expired bool
	}{
		"one that has none":                 {func(*scope) {}, true},
		"one that controls a Sandbox":       {func(s *scope) { s.owned["box"] = makeSandbox() }, false},
		"one whose status names a Sandbox":  {func(s *scope) { s.claim.Status.SandboxStatus.Name = "box" }, false},
		"one that lost its Sandbox":         {func(s *scope) { ready(s.claim, "False", ReasonSandboxMissing) }, false},
		"one that had a Sandbox":            {func(s *scope) { s.record.bound = "box" }, false},
		"one whose creation is on its way":  {func(s *scope) { s.record.creating = true }, false},
		"one whose adoption is on its way":  {func(s *scope) { s.record.adopting = &adoption{} }, false},
		"one whose writes were all refused": {func(s *scope) { s.record.touched = true }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := makeScope()
			s.bindDeadline = noon()
			tc.change(s)
			if got := s.expired(); got != tc.expired {
				t.Errorf("expired() = %t, want %t", got, tc.expired)
			}
		})
	}
}

func TestWasReady(t *testing.T) {
	cases := map[string]struct {
		change func(*extensionsv1beta1.SandboxClaim, *record)
		want   bool
	}{
		"a new claim was not":            {func(*extensionsv1beta1.SandboxClaim, *record) {}, false},
		"one that is Ready was":          {func(c *extensionsv1beta1.SandboxClaim, _ *record) { ready(c, "True", "DependenciesReady") }, true},
		"one that is not Ready need not": {func(c *extensionsv1beta1.SandboxClaim, _ *record) { ready(c, "False", "DependenciesNotReady") }, false},
		"one that was told so was":       {func(_ *extensionsv1beta1.SandboxClaim, r *record) { r.readyAt = noon() }, true},
		"one that was given the time was": {
			func(c *extensionsv1beta1.SandboxClaim, _ *record) {
				c.Annotations = map[string]string{keys.ClaimFirstReadyAt: timeUnknown}
			}, true,
		},
		"one that lost its Sandbox was": {func(c *extensionsv1beta1.SandboxClaim, _ *record) { ready(c, "False", ReasonSandboxMissing) }, true},
		"one whose annotation names its Sandbox was: it follows Ready": {
			func(c *extensionsv1beta1.SandboxClaim, _ *record) {
				c.Annotations, c.Status.SandboxStatus.Name = map[string]string{keys.SandboxName: "box"}, "box"
			}, true,
		},
		"one whose annotation names a Sandbox that it may not have got was not": {
			func(c *extensionsv1beta1.SandboxClaim, _ *record) {
				c.Annotations = map[string]string{keys.SandboxName: "box"}
			}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim, known := makeClaim("claim"), &record{}
			tc.change(claim, known)
			if got := wasReady(claim, known); got != tc.want {
				t.Errorf("wasReady() = %t, want %t", got, tc.want)
			}
		})
	}
}

// A cache that is seconds behind must not cost a write each hundredth of a second.
func TestAClaimIsLeftAloneLongerWithEachConflict(t *testing.T) {
	r := &record{}
	var pauses []time.Duration
	for range 9 {
		pauses = append(pauses, r.nextPause()/time.Millisecond)
	}
	if diff := cmp.Diff([]time.Duration{10, 20, 40, 80, 160, 320, 640, 1000, 1000}, pauses); diff != "" {
		t.Errorf("milliseconds (-want +got):\n%s", diff)
	}
}
