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

// Status prints what runs; it fails when the cluster is absent or broken, or does not
// become ready.
func (c *Cluster) Status(ctx context.Context) error {
	if err := c.precheckUser(); err != nil {
		return err
	}
	state, why := c.settled(ctx)
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
	switch state {
	case Broken:
		return broken(why)
	case Slow:
		return slow(why)
	case Absent, Running:
	}
	c.say("kubeconfig %s\naudit log  %s", c.paths.Kubeconfig(), c.paths.AuditLog())
	return nil
}

func broken(why error) error {
	return fmt.Errorf("the cluster is broken, up starts it afresh: %w", why)
}

func slow(why error) error {
	return fmt.Errorf("every component of the cluster runs, but it is not ready; wait, or start it afresh with down and up: %w", why)
}

// requireRunning fails unless the cluster is healthy, or becomes so.
func (c *Cluster) requireRunning(ctx context.Context) error {
	if err := c.precheckUser(); err != nil {
		return err
	}
	switch state, why := c.settled(ctx); state {
	case Running:
		return nil
	case Broken:
		return broken(why)
	case Slow:
		return slow(why)
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
		"kube-network-policies": "daemonset/kube-network-policies", "node-dns": "daemonset/node-dns",
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
