// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
)

func TestElderOf(t *testing.T) {
	made := func(name string, at time.Time) agentsv1beta1.Sandbox {
		return *makeSandbox(func(s *agentsv1beta1.Sandbox) { s.Name, s.CreationTimestamp = name, metav1.NewTime(at) })
	}
	cases := map[string]struct {
		twins []agentsv1beta1.Sandbox
		want  string
	}{
		"nobody but itself":             {[]agentsv1beta1.Sandbox{made("box", noon())}, ""},
		"a younger one":                 {[]agentsv1beta1.Sandbox{made("twin", noon().Add(time.Second))}, ""},
		"an older one":                  {[]agentsv1beta1.Sandbox{made("box", noon()), made("twin", noon().Add(-time.Second))}, "twin"},
		"one of the same second":        {[]agentsv1beta1.Sandbox{made("twin", noon())}, "twin"},
		"an older one beside a younger": {[]agentsv1beta1.Sandbox{made("young", noon().Add(time.Hour)), made("twin", noon().Add(-time.Hour))}, "twin"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			box := made("box", noon())
			if got := elderOf(&box, tc.twins); got != tc.want {
				t.Errorf("elderOf() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhatTwoPhasesSayIsSaidOnce(t *testing.T) {
	said := problems{}.with(errors.New("a name")).with(errors.Join(errors.New("a name"), errors.New("a quota")))
	if want := "a name\na quota"; said.message() != want {
		t.Errorf("message() = %q, want %q", said.message(), want)
	}
}
