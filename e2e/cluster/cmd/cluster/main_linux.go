// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cluster runs a single-node Kubernetes on this machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/cluster"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/cluster/internal/layout"
)

// stateVariable names the state folder in the environment.
const stateVariable = "AGENT_SANDBOX_CLUSTER_STATE"

const usage = `usage: cluster [-state DIR] COMMAND

  up               build what is missing, start the cluster and wait until it is ready
  down             stop the cluster and remove all that it made
  status           say what runs
  kubeconfig       print the path of the administrator's kubeconfig
  kubectl-path     print the path of the cluster's kubectl
  values-path      print the path of the chart values that describe the cluster's network
  audit-log        print the path of the apiserver's audit log
  load ARCHIVE...  load image archives (OCI or docker) into the node; give absolute paths
  logs COMPONENT   print the log of a component
  bin NAME         print the path of a program of the cluster, such as etcd or
                   kube-apiserver; builds it when it is missing and starts nothing

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	state := os.Getenv(stateVariable)
	if state == "" {
		state = layout.DefaultRoot
	}
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	flags.Usage = func() {
		_, _ = io.WriteString(flags.Output(), usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&state, "state", state, "state folder; "+stateVariable+" sets it too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return errors.New("name a command")
	}
	// Where the tools are that ordinary users do not have on their PATH.
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin"); err != nil {
		return err
	}
	c, err := cluster.New(state, out, clock.RealClock{})
	if err != nil {
		return err
	}
	return dispatch(ctx, c, out, flags.Arg(0), flags.Args()[1:])
}

func dispatch(ctx context.Context, c *cluster.Cluster, out io.Writer, command string, args []string) error {
	printed := func(path string) func() error {
		return func() error {
			_, err := fmt.Fprintln(out, path)
			return err
		}
	}
	commands := map[string]struct {
		run      func() error
		min, max int
	}{
		"up":           {run: func() error { return up(ctx, c, out) }},
		"down":         {run: func() error { return c.Down(ctx) }},
		"status":       {run: func() error { return c.Status(ctx) }},
		"kubeconfig":   {run: printed(c.Paths().Kubeconfig())},
		"kubectl-path": {run: printed(c.Paths().Bin("kubectl"))},
		"values-path":  {run: printed(c.Paths().Values())},
		"audit-log":    {run: printed(c.Paths().AuditLog())},
		"load":         {run: func() error { return c.Load(ctx, args) }, min: 1, max: 1 << 10},
		"logs":         {run: func() error { return c.Logs(ctx, args[0]) }, min: 1, max: 1},
		"bin":          {run: func() error { return program(ctx, out, args[0]) }, min: 1, max: 1},
	}
	chosen, ok := commands[command]
	if !ok {
		return fmt.Errorf("no command is called %q: run cluster without one to see them all", command)
	}
	if len(args) < chosen.min || len(args) > chosen.max {
		return fmt.Errorf("the command %s got %d arguments: run cluster without a command to see what it takes", command, len(args))
	}
	return chosen.run()
}
