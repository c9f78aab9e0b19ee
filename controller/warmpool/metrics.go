// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package warmpool

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// gauges say how each pool does.
type gauges struct{ sandboxes *prometheus.GaugeVec }

func newGauges(registry prometheus.Registerer) *gauges {
	g := &gauges{sandboxes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "agent_sandbox_warm_pool_sandboxes",
		Help: "Sandboxes of a warm pool: desired, ready, the deficit (desired but not ready), stale (not what the template " +
			"describes), and claimable (ready, with an address, admitted by today's rules as far as they were asked, and neither " +
			"stale under a strategy that replaces those nor changed by somebody; whether its Pod's node is healthy is not looked at).",
	}, []string{"namespace", "warmpool_name", "state"})}
	if registry != nil {
		registry.MustRegister(g.sandboxes)
	}
	return g
}

func (g *gauges) set(pool types.NamespacedName, desired int, t tally) {
	for state, value := range map[string]int{
		"desired": desired, "ready": t.ready, "deficit": max(0, desired-t.ready), "stale": t.stale, "claimable": t.claimable,
	} {
		g.sandboxes.WithLabelValues(pool.Namespace, pool.Name, state).Set(float64(value))
	}
}

func (g *gauges) forget(pool types.NamespacedName) {
	g.sandboxes.DeletePartialMatch(prometheus.Labels{"namespace": pool.Namespace, "warmpool_name": pool.Name})
}
