// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/process"
)

// errAbsent is what commands that need a cluster say without one.
var errAbsent = errors.New("there is no cluster: start one with the command up")

// Status prints what runs; it fails when the cluster is absent or broken.
func (c *Cluster) Status(ctx context.Context) error {
	if err := c.precheckUser(); err != nil {
		return err
	}
	state, why := c.health(ctx)
	if state == Absent {
		return errAbsent
	}
	records, err := process.Load(c.paths.Records())
	if err != nil {
		return err
	}
	for _, r := range records {
		is := "running"
		if !r.Identity.Alive() {
			is = "stopped"
		}
		c.say("%-24s %-8s pid %-7d log %s", r.Name, is, r.Identity.PID, r.Log)
	}
	if state == Broken {
		return fmt.Errorf("the cluster is broken, up repairs it: %w", why)
	}
	c.say("kubeconfig %s\naudit log  %s", c.paths.Kubeconfig(), c.paths.AuditLog())
	return nil
}

// requireRunning fails unless the cluster is healthy.
func (c *Cluster) requireRunning(ctx context.Context) error {
	if err := c.precheckUser(); err != nil {
		return err
	}
	switch state, why := c.health(ctx); state {
	case Running:
		return nil
	case Broken:
		return fmt.Errorf("the cluster is broken, up repairs it: %w", why)
	default:
		return errAbsent
	}
}

// Logs prints the log of a component: of a process on the node, or of a
// workload of the namespace kube-system.
func (c *Cluster) Logs(ctx context.Context, component string) error {
	if err := c.precheckUser(); err != nil {
		return err
	}
	workloads := map[string]string{
		"coredns": "deployment/coredns", "storage-provisioner": "deployment/storage-provisioner",
		"kube-network-policies": "daemonset/kube-network-policies",
	}
	if workload, ok := workloads[component]; ok {
		out, err := c.kubectl(ctx, nil, "-n", "kube-system", "logs", workload, "--tail=-1")
		if err == nil {
			_, err = io.WriteString(c.out, out)
		}
		return err
	}
	if !slices.Contains(startOrder(), component) {
		known := startOrder()
		for name := range workloads {
			known = append(known, name)
		}
		slices.Sort(known)
		return fmt.Errorf("no component is called %q: name one of %s", component, strings.Join(known, ", "))
	}
	return process.Copy(c.out, c.paths.Log(component))
}
