// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// ruleEngine is the rule of findings that concern no single rule.
const ruleEngine = "engine"

// Evaluate judges one object by the set in force. It never fails: what goes wrong is a finding.
func (e *Engine) Evaluate(ctx context.Context, in Input) Decision {
	begun := e.clock.Now()
	if in.Now.IsZero() {
		in.Now = begun
	}
	d := e.decide(ctx, in)
	if e.log != nil {
		e.log.record(in, d, e.clock.Since(begun))
	}
	return d
}

func (e *Engine) decide(ctx context.Context, in Input) Decision {
	s := e.current.Load()
	if s == nil {
		return Decision{Findings: []Finding{engineFailure("no rules are loaded yet", "Try again in a moment.")}}
	}
	d := Decision{Digest: s.digest}
	if in.Operation == "DELETE" {
		return d
	}
	p := s.programs[in.Kind]
	if p == nil {
		d.Findings = []Finding{engineFailure(fmt.Sprintf("kind %q has no rules; known are %s", in.Kind, list(kinds)), "")}
		return d
	}
	ctx, cancel := context.WithTimeout(ctx, e.budget)
	defer cancel()
	findings := append(s.brokenFindings(in), s.ofNative(in)...)
	pssFindings, pssRules := e.podSecurity(ctx, s.pss, in)
	findings = append(findings, pssFindings...)
	v, err := s.variantOf(in.Namespace)
	if err != nil {
		d.Findings = []Finding{engineFailure(err.Error(), "")}
		return d
	}
	found, validity := e.judge(ctx, p, v, in)
	findings = append(findings, found...)
	validity.Until = s.exempt(findings, in)
	d.Findings, d.Validity = settle(findings), validity
	d.Evaluated = append(s.evaluatedNatives(), pssRules...)
	for _, r := range p.rules {
		if v.enforcement[r.info.ID] != Off {
			d.Evaluated = append(d.Evaluated, r.info.ID)
		}
	}
	slices.Sort(d.Evaluated)
	return d
}

// podSecurity judges by the Pod Security Standards, within the same limits as the rules.
func (e *Engine) podSecurity(ctx context.Context, p *podSecurity, in Input) ([]Finding, []string) {
	demands := p.demands(in)
	if len(demands) == 0 {
		return nil, nil
	}
	leave, err := e.enter(ctx)
	if err != nil {
		return []Finding{p.late(demands, err)}, rulesOf(demands)
	}
	defer leave()
	return p.evaluate(ctx, in, demands), rulesOf(demands)
}

// enter waits for a place among the evaluations at the same time.
func (e *Engine) enter(ctx context.Context) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, errTimeout
	}
	select {
	case e.running <- struct{}{}:
		return func() { <-e.running }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: too many evaluations at the same time", errTimeout)
	}
}

// request is what one evaluation is about.
type request struct {
	documents documents
	variant   *variant
	// fields are those of the input. Each run makes values of them for itself: one that was left behind may
	// still do so.
	fields map[string]any
	now    time.Time
	// dryRun says that nothing may remember the request.
	dryRun bool
}

// judge evaluates the rules of a kind, and says what decided.
func (e *Engine) judge(ctx context.Context, p *program, v *variant, in Input) ([]Finding, Validity) {
	var findings []Finding
	for _, r := range p.held {
		findings = append(findings, v.failures(r, errQuarantined)...)
	}
	if len(p.rules) == 0 {
		return findings, Validity{}
	}
	fields, err := e.reader.inputFields(in)
	if err != nil {
		for _, r := range p.rules {
			findings = append(findings, v.failures(r, fmt.Errorf("read the object: %w", err))...)
		}
		return findings, Validity{}
	}
	var timed atomic.Bool
	fields["now"] = moment{at: in.Now, seen: &timed}
	req := request{variant: v, fields: fields, now: in.Now, dryRun: in.DryRun, documents: documents{
		parameters: v.parameters, known: v.known, stock: &stock{inventory: e.inventory, namespace: in.Namespace.Name},
	}}
	findings = append(findings, e.found(ctx, p, req)...)
	return findings, Validity{Timed: timed.Load() || p.readsClock, Read: req.documents.stock.read()}
}

// found evaluates all rules together, and each alone when that gives no clean answer: a fault of
// one is then a finding of that one.
func (e *Engine) found(ctx context.Context, p *program, req request) []Finding {
	findings, err := e.run(ctx, e.budget/2, p.together, req)
	if err == nil {
		return findings
	}
	findings = nil
	for i, r := range p.rules {
		if req.variant.enforcement[r.info.ID] == Off {
			continue
		}
		own, err := e.run(ctx, e.budget/8, p.alone[i], req)
		findings = append(findings, own...)
		if err != nil {
			findings = append(findings, req.variant.failures(r, err)...)
		}
		if !req.dryRun && e.ward.note(r, err) {
			e.quarantine(ctx, r.info.ID)
		}
	}
	return findings
}

var (
	errTimeout = errors.New("it did not finish in time")
	errPanic   = errors.New("it panicked")
)

type outcome struct {
	findings []Finding
	err      error
}

// run evaluates one query within the limit, which begins when there is a place. It returns what was found beside an
// error.
func (e *Engine) run(ctx context.Context, limit time.Duration, j judgement, req request) ([]Finding, error) {
	leave, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	o, err := attempt(ctx, e.grace, func(a *account) outcome {
		defer leave()
		// Cancellation is by the account: a context that can end would cost another goroutine.
		return evaluate(context.WithoutCancel(ctx), j, req, a)
	})
	switch {
	case errors.Is(err, errTimeout) && whole.Err() == nil:
		return nil, errRunaway
	case err != nil:
		return nil, err
	}
	return o.findings, o.err
}

// attempt gives a query the time until the context ends, and the grace to notice that. One that does not is left
// behind; a panic within it is an error.
func attempt[T any](ctx context.Context, grace time.Duration, query func(*account) T) (T, error) {
	type ending struct {
		result T
		err    error
	}
	a, done := &account{}, make(chan ending, 1)
	go func() {
		var end ending
		defer func() {
			if reason := recover(); reason != nil {
				end.err = fmt.Errorf("%w: %v", errPanic, reason)
			}
			done <- end
		}()
		end.result = query(a)
	}()
	select {
	case end := <-done:
		return end.result, end.err
	case <-ctx.Done():
	}
	a.Cancel()
	left, release := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer release()
	select {
	case <-done:
	case <-left.Done():
	}
	var none T
	return none, errTimeout
}

// evaluate runs the query.
func evaluate(ctx context.Context, j judgement, req request, a *account) (o outcome) {
	var builtinErrors []topdown.Error
	results, err := j.query.Eval(withDocuments(ctx, req.documents),
		rego.EvalParsedInput(ast.LazyObject(req.fields)),
		rego.EvalTime(req.now),
		rego.EvalExternalCancel(a),
		rego.EvalBuiltinErrorList(&builtinErrors),
	)
	if err != nil {
		return outcome{err: err}
	}
	if len(results) != 1 {
		return outcome{err: errors.New("it gave no result")}
	}
	o = j.read(results[0].Bindings, req.variant)
	if o.err == nil && len(builtinErrors) > 0 {
		o.err = &builtinErrors[0]
	}
	return o
}

// read makes findings of what the query gave.
func (j judgement) read(bindings rego.Vars, v *variant) (o outcome) {
	add := func(c column, raw any) {
		if enforcement := v.enforcement[c.rule.info.ID]; enforcement != Off {
			o.findings = append(o.findings, c.finding(raw, enforcement))
		}
	}
	sets, ok := bindings[setsVar].([]any)
	if !ok || len(sets) != len(j.sets) {
		return outcome{err: errors.New("it gave no list of findings")}
	}
	for i, c := range j.sets {
		found, ok := sets[i].([]any)
		if !ok {
			return outcome{err: fmt.Errorf("%s is not a set", c.entry)}
		}
		for _, raw := range found {
			add(c, raw)
		}
	}
	pairs, ok := bindings[pairsVar].([]any)
	if !ok && len(j.pairs) > 0 {
		return outcome{err: errors.New("it gave no findings")}
	}
	for _, raw := range pairs {
		c, finding, err := j.pair(raw)
		if err != nil {
			return outcome{err: err}
		}
		add(c, finding)
	}
	return o
}

// pair reads the number of a column and a finding of it.
func (j judgement) pair(raw any) (column, any, error) {
	pair, ok := raw.([]any)
	if !ok || len(pair) != 2 {
		return column{}, nil, fmt.Errorf("it gave %s, not a finding", textOf(raw))
	}
	number, ok := pair[0].(json.Number)
	if !ok {
		return column{}, nil, fmt.Errorf("it gave %s, not a finding", textOf(raw))
	}
	index, err := strconv.Atoi(number.String())
	if err != nil || index < 0 || index >= len(j.pairs) {
		return column{}, nil, fmt.Errorf("it gave a finding of rule %s", number)
	}
	return j.pairs[index], pair[1], nil
}
