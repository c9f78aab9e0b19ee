// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"testing"

	apimachineryversion "k8s.io/apimachinery/pkg/version"
)

// apiserverOf answers with that version.
type apiserverOf struct {
	version apimachineryversion.Info
	err     error
}

func (a apiserverOf) ServerVersion() (*apimachineryversion.Info, error) { return &a.version, a.err }

func TestServiceNamesFollowTheVersionThatProvidersWrite(t *testing.T) {
	cases := map[string]struct {
		minor, git string
		want       bool
	}{
		"the first with relaxed names":               {"36", "v1.36.0", true},
		"the last without":                           {"35", "v1.35.9", false},
		"with a plus":                                {"36+", "v1.36.2-eks-1a2b3c4", true},
		"an older one with a plus":                   {"35+", "v1.35.11-eks-36", false},
		"with the mark of a provider":                {"36", "v1.36.2-gke.1537000", true},
		"with the mark in the minor version":         {"36-gke.1", "v1.36.2-gke.1", true},
		"in the whole version only":                  {"", "v1.36.2-gke.1537000", true},
		"in the whole version only, and older":       {"", "v1.9.36", false},
		"with letters where the minor version stood": {"x", "v1.37.0+k3s1", true},
		"of three digits":                            {"100", "v1.100.0", true},
		"nowhere":                                    {"", "", false},
		"without a dot":                              {"+", "v1", false},
		"too long to be one":                         {"99999999999999999999", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := RelaxedServiceNames(apiserverOf{version: apimachineryversion.Info{Major: "1", Minor: tc.minor, GitVersion: tc.git}})
			if err != nil || got != tc.want {
				t.Errorf("RelaxedServiceNames = %t, %v, want %t", got, err, tc.want)
			}
		})
	}
	down := errors.New("down")
	if _, err := RelaxedServiceNames(apiserverOf{err: down}); !errors.Is(err, down) {
		t.Errorf("an apiserver that does not answer: %v", err)
	}
}
