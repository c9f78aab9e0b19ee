// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster starts, describes and stops a single-node Kubernetes on this
// machine.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/layout"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/process"
)

// Cluster is the cluster of one state folder.
type Cluster struct {
	paths layout.Layout
	// machine is the folder of the files that all clusters of a machine share.
	machine string
	out     io.Writer
	clock   clock.WithTicker
	// patience is how long a component, or the node, may take to become ready.
	patience time.Duration
}

// New describes the cluster whose state folder is root. What people are to read
// goes to out.
func New(root string, out io.Writer, clk clock.WithTicker) (*Cluster, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	if absolute == "/" {
		return nil, errors.New("the state folder cannot be /: it is deleted when the cluster stops")
	}
	return &Cluster{paths: layout.New(absolute), machine: "/run", out: out, clock: clk, patience: readyLimit}, nil
}

// say writes one line for people.
func (c *Cluster) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.out, format+"\n", args...)
}

// Paths tells where everything of the cluster lies.
func (c *Cluster) Paths() layout.Layout { return c.paths }

// Health is the state of a cluster as seen from outside.
type Health int

// The states of a cluster.
const (
	// Absent: nothing of it is there.
	Absent Health = iota
	// Broken: there are remains, or it was never finished.
	Broken
	// Slow: every component lives, but the node is not ready now, as on a machine that
	// has too much to do. It mends itself.
	Slow
	// Running: every component lives and the node is ready.
	Running
)

// health looks at the cluster; the error says what is wrong with a broken one.
func (c *Cluster) health(ctx context.Context) (Health, error) {
	if _, err := os.Stat(c.paths.Root); errors.Is(err, os.ErrNotExist) {
		return Absent, nil
	}
	records, err := process.Load(c.paths.Records())
	if err != nil {
		return Broken, err
	}
	if len(records) < len(startOrder()) {
		return Broken, errors.New("an earlier start was not finished")
	}
	if err := process.Check(records); err != nil {
		return Broken, err
	}
	if _, err := os.Stat(c.paths.ReadyMark()); err != nil {
		return Broken, errors.New("an earlier start was not finished")
	}
	if err := c.nodeReady(ctx); err != nil {
		return Slow, err
	}
	return Running, nil
}

// nodeReady asks once whether the node is ready.
func (c *Cluster) nodeReady(ctx context.Context) error {
	const condition = `jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}`
	out, err := c.kubectl(ctx, nil, "get", "node", layout.NodeName, "--request-timeout=10s", "-o", condition)
	if err != nil {
		return fmt.Errorf("the node cannot be asked: %w", err)
	}
	if status, message, _ := strings.Cut(out, " "); status != "True" {
		return fmt.Errorf("the node is not ready: %s", strings.TrimSpace(message))
	}
	return nil
}

// settled is the health of the cluster, after a slow one got its time.
func (c *Cluster) settled(ctx context.Context) (Health, error) {
	state, why := c.health(ctx)
	if state != Slow {
		return state, why
	}
	c.say("waiting for the cluster, whose components all run: %v", why)
	if err := c.until(ctx, c.nodeReady); err != nil {
		if died, is := errors.AsType[*process.DiedError](err); is {
			return Broken, died
		}
		return Slow, err
	}
	return Running, nil
}
