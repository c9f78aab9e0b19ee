// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// decisionsToStdout is the destination that is no file.
const decisionsToStdout = "stdout"

// DecisionLogOptions are the flags of the decision log.
type DecisionLogOptions struct {
	// Destination is stdout or the path of a file that lines are appended to; empty
	// writes none.
	Destination string
	// Sample is the share, from 0 to 1, of decisions without a finding that are written.
	Sample float64
	// Mask is the path of a Rego module of package system.log; with one the object is part
	// of each line, and what the mask names is not.
	Mask string
}

func (o *DecisionLogOptions) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.Destination, "decision-log", "", "Where decisions are logged as lines of JSON: stdout, or the path of a file; empty logs none.")
	flags.Float64Var(&o.Sample, "decision-log-sample", 1, "Share of the decisions without a finding that are logged, from 0 to 1; those with findings always are.")
	flags.StringVar(&o.Mask, "decision-log-mask", "", "Path of a Rego module with data.system.log.mask; without one the object is left out of the decision log.")
}

func (o *DecisionLogOptions) validate() field.ErrorList {
	if o.Sample >= 0 && o.Sample <= 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("--decision-log-sample"), o.Sample, "write a share from 0 to 1")}
}

// decisionLog is a decision log that the manager ends.
type decisionLog struct {
	*engine.DecisionLog
	file io.Closer
}

// openDecisionLog starts the decision log; nil when there is none.
func openDecisionLog(ctx context.Context, o DecisionLogOptions, registry prometheus.Registerer) (*decisionLog, error) {
	if o.Destination == "" {
		return nil, nil
	}
	options := engine.DecisionLogOptions{Writer: os.Stdout, Sample: o.Sample}
	var file io.Closer
	if o.Mask != "" {
		content, err := os.ReadFile(o.Mask)
		if err != nil {
			return nil, fmt.Errorf("read --decision-log-mask: %w", err)
		}
		if options.Mask, err = engine.NewMask(ctx, o.Mask, content); err != nil {
			return nil, fmt.Errorf("--decision-log-mask: %w", err)
		}
	}
	if o.Destination != decisionsToStdout {
		opened, err := os.OpenFile(o.Destination, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open --decision-log: %w", err)
		}
		options.Writer, file = opened, opened
	}
	log, err := engine.NewDecisionLog(options) //nolint:contextcheck // The log outlives the start, whose context this is.
	if err != nil {
		return nil, fmt.Errorf("start the decision log: %w", err)
	}
	return &decisionLog{log, file}, registerDecisionLog(log, registry)
}

func registerDecisionLog(log *engine.DecisionLog, registry prometheus.Registerer) error {
	counter := func(name, help string, count func() uint64) error {
		return registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(count()) }))
	}
	return errors.Join(
		counter("agent_sandbox_decision_log_dropped_total", "Decisions that found no place in the queue of the decision log.", log.Dropped),
		counter("agent_sandbox_decision_log_failed_total", "Decisions that could not be written to the decision log.", log.Failed),
		counter("agent_sandbox_decision_log_withheld_total", "Decisions that were logged without their input and texts, because the mask failed.", log.Withheld),
	)
}

// Start waits for the end of the program and writes what is left.
func (l *decisionLog) Start(ctx context.Context) error {
	<-ctx.Done()
	l.Close()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// NeedLeaderElection says that every replica logs.
func (*decisionLog) NeedLeaderElection() bool { return false }
