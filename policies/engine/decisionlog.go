// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// DecisionLog writes decisions as JSON lines. It never holds up a decision: what does not fit into its queue
// is dropped and counted.
type DecisionLog struct {
	options DecisionLogOptions
	queue   chan entry
	stop    chan struct{}
	drained chan struct{}
	closing sync.Once
	dropped atomic.Uint64
	failed  atomic.Uint64
	// withheld are those whose mask failed.
	withheld atomic.Uint64
}

// DecisionLogOptions say what is written and where.
type DecisionLogOptions struct {
	// Writer gets one line a call, from one goroutine.
	Writer io.Writer
	// Sample is the share, from 0 to 1, of decisions without a finding that are written. Those with findings
	// always are.
	Sample float64
	// Mask hides parts of each line. Without one, the object itself is left out.
	Mask *Mask
	// Queue is how many decisions may wait to be written.
	Queue int
}

type entry struct {
	in       Input
	decision Decision
	latency  time.Duration
}

// line is what is written of a decision; the names are those of OPA's decision logs.
type line struct {
	DecisionID string    `json:"decision_id"`
	Timestamp  time.Time `json:"timestamp"`
	Digest     string    `json:"policy_digest"`
	// Input is nil when the mask failed.
	Input  *lineInput `json:"input,omitempty"`
	Result result     `json:"result"`
	// LatencyMS is how long the decision took, in milliseconds.
	LatencyMS float64 `json:"latency_ms"`
	// MaskError says why the mask failed.
	MaskError string `json:"mask_error,omitempty"`
}

type lineInput struct {
	Operation string         `json:"operation"`
	Kind      string         `json:"kind"`
	Source    string         `json:"source"`
	Namespace string         `json:"namespace"`
	Name      string         `json:"name,omitempty"`
	Tier      string         `json:"tier,omitempty"`
	User      lineUser       `json:"user"`
	DryRun    bool           `json:"dryRun,omitempty"`
	Object    map[string]any `json:"object,omitempty"`
}

type lineUser struct {
	Username string   `json:"username,omitempty"`
	UID      string   `json:"uid,omitempty"`
	Groups   []string `json:"groups,omitempty"`
}

type result struct {
	Denied   bool      `json:"denied"`
	Findings []Finding `json:"findings"`
	Rules    []string  `json:"rules"`
}

const defaultQueue = 1024

// NewDecisionLog starts to write. Close ends it.
func NewDecisionLog(options DecisionLogOptions) (*DecisionLog, error) {
	if options.Writer == nil {
		return nil, errors.New("the decision log has no writer")
	}
	if options.Sample < 0 || options.Sample > 1 || math.IsNaN(options.Sample) {
		return nil, fmt.Errorf("the sample of the decision log is %v; use a share from 0 to 1", options.Sample)
	}
	if options.Queue <= 0 {
		options.Queue = defaultQueue
	}
	l := &DecisionLog{
		options: options, queue: make(chan entry, options.Queue), stop: make(chan struct{}), drained: make(chan struct{}),
	}
	go l.write()
	return l, nil
}

// WithDecisionLog sets where decisions are logged.
func WithDecisionLog(l *DecisionLog) Option {
	return func(e *Engine) { e.log = l }
}

// Dropped counts the decisions that found no place in the queue.
func (l *DecisionLog) Dropped() uint64 { return l.dropped.Load() }

// Withheld counts those that were written without what the mask, which failed, would have hidden.
func (l *DecisionLog) Withheld() uint64 { return l.withheld.Load() }

// Failed counts the decisions that could not be written.
func (l *DecisionLog) Failed() uint64 { return l.failed.Load() }

// Close writes what waits and ends. Later decisions are dropped.
func (l *DecisionLog) Close() {
	l.closing.Do(func() { close(l.stop) })
	<-l.drained
}

// record queues a decision, unless it is left out by the sample.
func (l *DecisionLog) record(in Input, d Decision, latency time.Duration) {
	if in.ID == "" {
		in.ID = string(uuid.NewUUID())
	}
	if len(d.Findings) == 0 && !l.sampled(in.ID) {
		return
	}
	select {
	case <-l.stop:
		l.dropped.Add(1)
		return
	default:
	}
	select {
	case l.queue <- entry{in, d, latency}:
	default:
		l.dropped.Add(1)
	}
}

// sampled decides by the id, so that all replicas and tools agree.
func (l *DecisionLog) sampled(id string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return float64(h.Sum32()) < l.options.Sample*(1<<32)
}

func (l *DecisionLog) write() {
	defer close(l.drained)
	for {
		select {
		case e := <-l.queue:
			l.writeOne(e)
		case <-l.stop:
			for len(l.queue) > 0 {
				l.writeOne(<-l.queue)
			}
			return
		}
	}
}

func (l *DecisionLog) writeOne(e entry) {
	data, err := l.encode(e)
	if err == nil {
		_, err = l.options.Writer.Write(append(data, '\n'))
	}
	if err != nil {
		l.failed.Add(1)
	}
}

func (l *DecisionLog) encode(e entry) ([]byte, error) {
	name, _ := objectAt(e.in.Object, "metadata")["name"].(string)
	written := line{
		DecisionID: e.in.ID, Timestamp: e.in.Now.UTC(), Digest: e.decision.Digest,
		Input: &lineInput{
			Operation: e.in.Operation, Kind: e.in.Kind, Source: e.in.Source, Namespace: e.in.Namespace.Name, Name: name,
			Tier: e.in.TierName, User: lineUser(e.in.User), DryRun: e.in.DryRun,
		},
		Result: result{
			Denied: e.decision.Denied(), Findings: append([]Finding{}, Listed(e.decision.Findings)...), Rules: append([]string{}, e.decision.Evaluated...),
		},
		LatencyMS: float64(e.latency.Microseconds()) / 1000,
	}
	if l.options.Mask == nil {
		return json.Marshal(written)
	}
	written.Input.Object = e.in.Object
	data, err := l.options.Mask.apply(written)
	if err == nil {
		return data, nil
	}
	l.withheld.Add(1)
	return json.Marshal(written.withheld(err))
}

// withheld is the line with nothing that came with the request: what it is about, and which rules say what.
func (l line) withheld(reason error) line {
	l.Input, l.MaskError = nil, reason.Error()
	findings := make([]Finding, len(l.Result.Findings))
	for i, f := range l.Result.Findings {
		findings[i] = Finding{
			Rule: f.Rule, Severity: f.Severity, Enforcement: f.Enforcement, Failure: f.Failure, Omits: f.Omits, Message: "withheld: the mask failed",
		}
	}
	l.Result.Findings = findings
	return l
}
