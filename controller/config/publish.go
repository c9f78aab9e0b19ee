// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Components that publish their configuration.
const (
	ComponentController = "controller"
	ComponentWebhook    = "webhook"
)

// Publish publishes a gauge that is always 1 and whose labels say who runs with which
// configuration: what a file means counts, not how it is written.
func Publish(to prometheus.Registerer, component string, p *Platform) error {
	meaning, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode the platform configuration: %w", err)
	}
	sum := sha256.Sum256(meaning)
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "agent_sandbox_config_info",
		Help:        "1 for the digest of the platform configuration in force; replicas whose tiers or egress profiles differ show several.",
		ConstLabels: prometheus.Labels{"component": component, "digest": "sha256:" + hex.EncodeToString(sum[:])},
	})
	info.Set(1)
	if err := to.Register(info); err != nil {
		return fmt.Errorf("publish the digest of the platform configuration: %w", err)
	}
	return nil
}
