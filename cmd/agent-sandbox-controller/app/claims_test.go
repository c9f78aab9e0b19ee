// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/agent-sandbox-platform/agent-sandbox/cmd/agent-sandbox-controller/app"
)

func TestFlagsOfClaims(t *testing.T) {
	cases := map[string]struct {
		args []string
		// coldStart and bind are what is read; want is how the refusal begins.
		coldStart, bind time.Duration
		want            string
	}{
		"by default a claim waits a moment for its pool, and for a Sandbox for ever": {nil, 2 * time.Second, 0, ""},
		"it need not wait, and can give up": {
			[]string{"--claim-cold-start-after=0s", "--claim-bind-timeout=10m"}, 0, 10 * time.Minute, "",
		},
		"no workers": {[]string{"--sandbox-claim-concurrent-workers=0"}, 2 * time.Second, 0, "--sandbox-claim-concurrent-workers=0: give at least 1"},
		"a wait that ends before it begins": {
			[]string{"--claim-cold-start-after=-1s"}, -time.Second, 0, "--claim-cold-start-after=-1s: give a duration such as 2s",
		},
		"a bound in the past": {[]string{"--claim-bind-timeout=-1s"}, 2 * time.Second, -time.Second, "--claim-bind-timeout=-1s: give a duration such as 10m"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var options app.Options
			flags := flag.NewFlagSet("test", flag.ContinueOnError)
			options.Bind(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if options.Claims.ColdStartAfter != tc.coldStart || options.Claims.BindTimeout != tc.bind {
				t.Errorf("read %s and %s, want %s and %s", options.Claims.ColdStartAfter, options.Claims.BindTimeout, tc.coldStart, tc.bind)
			}
			err := options.Validate()
			if (err == nil) != (tc.want == "") || (err != nil && !strings.HasPrefix(err.Error(), tc.want)) {
				t.Errorf("Validate() = %v, want %q", err, tc.want)
			}
		})
	}
}
