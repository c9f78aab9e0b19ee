// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/preflight"
)

const server, server6, metadata = "10.0.0.1:8080", "[fd00::1]:8080", "169.254.169.254:80"

// certified is what is found in a cluster as it should be whose webhook has this certificate.
func certified(certificate preflight.Certificate) preflight.Findings {
	return preflight.Findings{
		Open: preflight.Answers{server: {Ever: true, Last: true}}, Denied: preflight.Answers{server: {}}, Again: preflight.Answers{server: {Ever: true, Last: true}},
		RuntimeClasses: map[string]string{"gvisor": ""}, Certificate: certificate,
	}
}

// reportCase is what was found, and what is said of it.
type reportCase struct {
	findings preflight.Findings
	// lines are those that matter, faults how many there must be.
	lines  []string
	faults int
}

func reportCases() map[string]reportCase {
	yes, no, late := preflight.Answer{Ever: true, Last: true}, preflight.Answer{}, preflight.Answer{Ever: true}
	gvisor := map[string]string{"gvisor": ""}
	return map[string]reportCase{
		"a cluster as it should be": {
			preflight.Findings{Open: preflight.Answers{server: yes}, Denied: preflight.Answers{server: no}, RuntimeClasses: gvisor},
			[]string{
				"NetworkPolicy: enforced. A Pod that a policy denies everything was stopped from its first attempt on.",
				"RuntimeClass gvisor: usable.", "Metadata: none of the known addresses answers a Pod.",
				"Tier strict: its Sandboxes run under RuntimeClass gvisor.",
			}, 0,
		},
		"a network that enforces nothing": {
			preflight.Findings{Open: preflight.Answers{server: yes}, Denied: preflight.Answers{server: yes}, RuntimeClasses: gvisor},
			[]string{"NetworkPolicy: NOT enforced. A Pod that a policy denies everything reached another Pod: " +
				"install a network that enforces NetworkPolicies, or Sandboxes reach the cluster and each other."}, 1,
		},
		"a network that is late": {
			preflight.Findings{Open: preflight.Answers{server: yes}, Denied: preflight.Answers{server: late}, RuntimeClasses: gvisor},
			[]string{"NetworkPolicy: enforced, but late. A Pod that a policy denies everything got through in its first moments; " +
				"look for an option of the network that holds a Pod's packets back until its policies are there."}, 0,
		},
		"a network that carries nothing": {
			preflight.Findings{Open: preflight.Answers{server: no}, Denied: preflight.Answers{server: no}, RuntimeClasses: gvisor},
			[]string{"NetworkPolicy: not known. Even a Pod without a policy could not reach another Pod; " +
				"look for policies of the whole cluster, or for a service mesh, that select the release's namespace."}, 1,
		},
		"a Pod that went away while it was asked": {
			preflight.Findings{Open: preflight.Answers{server: yes}, Denied: preflight.Answers{server: late}, Again: preflight.Answers{server: no}, RuntimeClasses: gvisor},
			[]string{"NetworkPolicy: not known. The Pod that was asked was out of reach before the end; try again."}, 1,
		},
		"one that went away, and was reached by who must not": {
			preflight.Findings{Open: preflight.Answers{server: yes}, Denied: preflight.Answers{server: yes}, Again: preflight.Answers{server: no}, RuntimeClasses: gvisor},
			[]string{"NetworkPolicy: NOT enforced. A Pod that a policy denies everything reached another Pod: " +
				"install a network that enforces NetworkPolicies, or Sandboxes reach the cluster and each other."}, 1,
		},
		"a network that enforces nothing over IPv6": {
			preflight.Findings{
				Servers: []string{server, server6}, RuntimeClasses: gvisor,
				Open: preflight.Answers{server: yes, server6: yes}, Denied: preflight.Answers{server: no, server6: yes},
			},
			[]string{
				"NetworkPolicy over IPv4: enforced. A Pod that a policy denies everything was stopped from its first attempt on.",
				"NetworkPolicy over IPv6: NOT enforced. A Pod that a policy denies everything reached another Pod: " +
					"install a network that enforces NetworkPolicies, or Sandboxes reach the cluster and each other.",
			}, 1,
		},
		"a network that carries no IPv6": {
			preflight.Findings{
				Servers: []string{server, server6}, RuntimeClasses: gvisor,
				Open: preflight.Answers{server: yes, server6: no}, Denied: preflight.Answers{server: no, server6: no},
			},
			[]string{"NetworkPolicy over IPv6: not known. Even a Pod without a policy could not reach another Pod; " +
				"look for policies of the whole cluster, or for a service mesh, that select the release's namespace."}, 0,
		},
		"a metadata service that a policy closes": {
			preflight.Findings{Open: preflight.Answers{server: yes, metadata: yes}, Denied: preflight.Answers{}, RuntimeClasses: gvisor},
			[]string{"Metadata at 169.254.169.254:80: reachable from ordinary Pods; a policy closes it."}, 0,
		},
		"a metadata service that nothing closes": {
			preflight.Findings{Open: preflight.Answers{server: yes, metadata: yes}, Denied: preflight.Answers{metadata: yes}, RuntimeClasses: gvisor},
			[]string{"Metadata at 169.254.169.254:80: reachable even from a Pod that a policy denies everything. Close it on the nodes."}, 0,
		},
		"a RuntimeClass under which nothing runs": {
			preflight.Findings{Open: preflight.Answers{server: yes}, Denied: preflight.Answers{}, RuntimeClasses: map[string]string{"gvisor": "no such handler."}},
			[]string{
				"RuntimeClass gvisor: not usable: no such handler.",
				"Tier strict: requires one of the RuntimeClasses gvisor, kata, and none is usable: its Sandboxes cannot run.",
			}, 1,
		},
		"a RuntimeClass whose nodes start from zero": {
			preflight.Findings{
				Open: preflight.Answers{server: yes}, Denied: preflight.Answers{}, RuntimeClasses: map[string]string{"runc": ""}, FromZero: sets.New("kata"),
			},
			[]string{
				"RuntimeClass kata: has no node now, allowed to start from zero.", "RuntimeClass runc: usable.",
				"Tier strict: its Sandboxes run under RuntimeClass kata, and wait for its nodes.",
			}, 0,
		},
		"a certificate of cert-manager": {
			certified(preflight.Certificate{Name: "cert", NotAfter: time.Unix(7200, 0), Renewal: time.Unix(3600, 0)}),
			[]string{"Certificate cert: ready, valid until 1970-01-01T02:00:00Z, renewed from 1970-01-01T01:00:00Z on."}, 0,
		},
		"a certificate that is not issued": {
			certified(preflight.Certificate{Name: "cert", Why: "DoesNotExist: no such Issuer"}),
			[]string{"Certificate cert: not ready: DoesNotExist: no such Issuer. Look at kubectl describe certificate,certificaterequest,issuer."}, 1,
		},
		"no RuntimeClass": {
			preflight.Findings{Open: preflight.Answers{server: yes}, Denied: preflight.Answers{}},
			[]string{"RuntimeClasses: the cluster has none. Sandboxes share the kernel of their node."}, 1,
		},
	}
}

func TestReport(t *testing.T) {
	required := &config.Platform{Tiers: map[string]config.Tier{"strict": {RuntimeClass: config.RuntimeClass{Classes: []config.Class{{Name: "gvisor"}, {Name: "kata"}}, Required: true}}}}
	for name, tc := range reportCases() {
		t.Run(name, func(t *testing.T) {
			if tc.findings.Servers == nil {
				tc.findings.Servers = []string{server}
			}
			if tc.findings.Again == nil {
				tc.findings.Again = tc.findings.Open
			}
			lines, faults := tc.findings.Report(required)
			for _, line := range tc.lines {
				if !slices.Contains(lines, line) {
					t.Errorf("the report does not say %q but:\n%q", line, lines)
				}
			}
			if diff := cmp.Diff(tc.faults, len(faults)); diff != "" {
				t.Errorf("faults (-want +got):\n%s%q", diff, faults)
			}
		})
	}
}
