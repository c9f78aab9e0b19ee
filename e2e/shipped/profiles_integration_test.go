// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package shipped

import (
	"strings"
	"testing"
)

// What a process holds in its memory is shown to nobody who did not ask for it by a flag.
func TestProfilesAreServedOnlyWhenAskedFor(t *testing.T) {
	cases := map[string]struct {
		flags []string
		// served are paths below /debug/pprof/ that are answered; the others are not.
		served []string
	}{
		"by default":                 {nil, nil},
		"of the processor":           {[]string{"--enable-pprof"}, []string{"profile?seconds=1"}},
		"with all that Go can serve": {[]string{"--enable-pprof-debug"}, []string{"", "cmdline", "heap", "profile?seconds=1"}},
	}
	e := newEnvironment(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			process := e.launch("profiled-"+strings.ReplaceAll(name, " ", "-"), tc.flags...)
			served := map[string]bool{}
			for _, path := range tc.served {
				served[path] = true
			}
			for _, path := range []string{"", "cmdline", "heap", "profile?seconds=1"} {
				_, err := ask(t.Context(), "http://"+process.Metrics+"/debug/pprof/"+path)
				if served[path] && err != nil {
					t.Errorf("/debug/pprof/%s is not served: %v", path, err)
				}
				if !served[path] && (err == nil || !strings.HasPrefix(err.Error(), "404")) {
					t.Errorf("/debug/pprof/%s ends with %v, want 404", path, err)
				}
			}
		})
	}
}
