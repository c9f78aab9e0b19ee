// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// ruleNotReady is the rule of the refusal before the policies are loaded.
const ruleNotReady = "policies-not-loaded"

// systemUsers do on their own account what only controllers may.
var systemUsers = []string{
	"system:kube-controller-manager",
	"system:serviceaccount:kube-system:generic-garbage-collector",
	"system:serviceaccount:kube-system:namespace-controller",
	"system:serviceaccount:kube-system:horizontal-pod-autoscaler",
}

// Judge decides on requests.
type Judge struct {
	*judge.Judge
	// ControllerUsers are the names of users that may do what only controllers do,
	// besides those of Kubernetes itself.
	ControllerUsers sets.Set[string]
	// Patience is how long a request is judged, with what its object was before.
	Patience time.Duration
}

// verdict is the outcome of a review.
type verdict struct {
	// id names the decision in the decision log.
	id, digest string
	// findings are those that count, tolerated those that an updated object had before.
	findings, tolerated []engine.Finding
}

func (v verdict) with(enforcement engine.Enforcement) []engine.Finding {
	return slices.DeleteFunc(slices.Clone(v.findings), func(f engine.Finding) bool { return f.Enforcement != enforcement })
}

// inTime is the verdict without what rules have to say that had no time to judge.
func (v verdict) inTime() verdict {
	v.findings = slices.DeleteFunc(slices.Clone(v.findings), func(f engine.Finding) bool { return f.Late })
	return v
}

// missesMutation says whether nothing refuses the object but that hardened defaults are
// unset: another replica may have set those of another tier, or an earlier configuration.
func (v verdict) missesMutation() bool {
	denials := v.with(engine.Deny)
	return len(denials) > 0 && !slices.ContainsFunc(denials, func(f engine.Finding) bool { return f.Rule != judge.RuleDefaults })
}

// late names the rules that had no time to judge.
func (v verdict) late() error {
	rules := sets.New[string]()
	for _, f := range v.findings {
		if f.Late {
			rules.Insert(f.Rule)
		}
	}
	return fmt.Errorf("%w (%s)", errLate, clip.To(strings.Join(sets.List(rules), ", "), maxValue))
}

// before ends the id of the decision on the object as it was before an update that would be refused.
const before = "-before"

// judge gives the verdict on a request. The error is ours, not the object's. An object and what
// it was before an update are judged within the same time: an apiserver waits for both together.
func (j *Judge) judge(ctx context.Context, r review) (verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, j.Patience)
	defer cancel()
	if r.kind == kindScale {
		pool, err := j.Lookup.Pool(ctx, r.namespace, r.name)
		if err != nil || pool == nil {
			return verdict{}, err
		}
		r = r.scaled(pool)
	}
	known, err := j.Facts(ctx, r.namespace)
	if err != nil {
		return verdict{}, err
	}
	now, err := j.Submitted(ctx, j.question(r), known)
	if err != nil {
		return verdict{}, err
	}
	v := verdict{id: r.id, digest: now.Digest, findings: now.Findings}
	if r.operation == operationUpdate && len(v.with(engine.Deny)) > 0 {
		past := j.question(r).Before(known)
		past.ID = r.id + before
		was, err := j.Submitted(ctx, past, known)
		if err != nil {
			return verdict{}, err
		}
		v.findings, v.tolerated = judge.Ratchet(now, was, r.change())
	}
	v.findings = engine.Listed(judge.Distinct(v.findings))
	return v, nil
}

func (j *Judge) question(r review) judge.Question {
	return judge.Question{
		ID: r.id, Operation: r.operation, Kind: r.kind, Namespace: r.namespace, Name: r.name,
		Object: r.object, Old: r.old, User: r.user, Controller: j.controls(r.user.Username), DryRun: r.dryRun,
	}
}

func (j *Judge) controls(user string) bool {
	return slices.Contains(systemUsers, user) || j.ControllerUsers.Has(user)
}
