// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-sandbox-platform/agent-sandbox/cmd/agent-sandbox-controller/app"
)

func TestValuesOfClaimsReachTheController(t *testing.T) {
	// reached is what the controller reads of its arguments and of its configuration.
	type reached struct {
		Claims                                 app.ClaimOptions
		SandboxWorkers, Templates, PoolWorkers int
		WriteBehind                            time.Duration
		Domains                                []string
	}
	cases := map[string]struct {
		set  []string
		want reached
	}{
		"by default": {nil, reached{
			Claims:         app.ClaimOptions{ConcurrentWorkers: 50, ColdStartAfter: 2 * time.Second, BindTimeout: time.Hour, DisableEvents: true},
			SandboxWorkers: 100, WriteBehind: 100 * time.Millisecond, Templates: 1, PoolWorkers: 4, Domains: []string{"sandbox.users.io"},
		}},
		"all of them set": {
			[]string{
				"claims.coldStartAfter=0s", "claims.writeBehind=1s", "claims.bindTimeout=1m30s", "claims.events=true",
				"claims.labelDomains={team.example.com,sandbox.users.io}",
				"controller.workers.claims=7", "controller.workers.sandboxes=8", "controller.workers.pools=9", "controller.workers.templates=10",
			},
			reached{
				Claims:         app.ClaimOptions{ConcurrentWorkers: 7, BindTimeout: 90 * time.Second},
				SandboxWorkers: 8, WriteBehind: time.Second, Templates: 10, PoolWorkers: 9, Domains: []string{"team.example.com", "sandbox.users.io"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := elsewhere
			in.set = tc.set
			r := render(t, in)
			var options app.Options
			parseArgs(t, r, "q7-blue-controller", options.Bind)
			if err := options.Validate(); err != nil {
				t.Error(err)
			}
			got := reached{
				Claims: options.Claims, SandboxWorkers: options.SandboxConcurrentWorkers, WriteBehind: options.WriteBehind,
				Templates: options.Pools.TemplateWorkers, PoolWorkers: options.Pools.PoolWorkers, Domains: platform(t, r).Claims.AllowedLabelDomains(),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("read by the controller (-want +got):\n%s", diff)
			}
		})
	}
}
