// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/defaults"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/effective"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
	"github.com/agent-sandbox-platform/agent-sandbox/webhook/validation"
)

const (
	// ruleDefaults is the rule of hardened defaults that are still unset.
	ruleDefaults = "hardened-defaults"
	// ruleNotReady is the rule of the refusal before the policies are loaded.
	ruleNotReady = "policies-not-loaded"
)

// systemUsers do on their own account what only controllers may.
var systemUsers = []string{
	"system:kube-controller-manager",
	"system:serviceaccount:kube-system:generic-garbage-collector",
	"system:serviceaccount:kube-system:namespace-controller",
	"system:serviceaccount:kube-system:horizontal-pod-autoscaler",
}

// Judge decides on requests.
type Judge struct {
	// Platform is the configuration of the platform.
	Platform *config.Platform
	// Lookup reads namespaces, RuntimeClasses, templates and pools.
	Lookup Lookup
	// Engine judges by the policies.
	Engine *engine.Engine
	// ControllerUsers are the names of users that may do what only controllers do,
	// besides those of Kubernetes itself.
	ControllerUsers sets.Set[string]
	// RelaxedServiceNames says that Services may have names that begin with a digit.
	RelaxedServiceNames bool
	// Clock gives the time.
	Clock clock.PassiveClock
}

// verdict is the outcome of a review.
type verdict struct {
	digest string
	// findings are those that count, tolerated those that an updated object had before.
	findings, tolerated []engine.Finding
}

func (v verdict) with(enforcement engine.Enforcement) []engine.Finding {
	return slices.DeleteFunc(slices.Clone(v.findings), func(f engine.Finding) bool { return f.Enforcement != enforcement })
}

// judged are all findings about one state of an object.
type judged struct {
	digest   string
	findings []engine.Finding
	// document is what the fields of the findings are paths of.
	document map[string]any
}

// facts are what a verdict rests on besides the object.
type facts struct {
	namespace engine.NamespaceInfo
	classes   sets.Set[string]
	tierName  string
	tier      config.Tier
	tierKnown bool
}

// judge gives the verdict on a request. The error is ours, not the object's.
func (j *Judge) judge(ctx context.Context, r review) (verdict, error) {
	if r.kind == kindScale {
		pool, err := j.Lookup.pool(ctx, r.namespace, r.name)
		if err != nil || pool == nil {
			return verdict{}, err
		}
		r = r.scaled(pool)
	}
	known, err := j.facts(ctx, r.namespace)
	if err != nil {
		return verdict{}, err
	}
	now, err := j.state(ctx, r, known)
	if err != nil {
		return verdict{}, err
	}
	v := verdict{digest: now.digest, findings: now.findings}
	if r.operation == operationUpdate && len(v.with(engine.Deny)) > 0 {
		past := r
		past.object = r.old
		before, err := j.state(ctx, past, known)
		if err != nil {
			return verdict{}, err
		}
		v.findings, v.tolerated = ratchet(now, before, r.specChanged())
	}
	v.findings = distinct(v.findings)
	return v, nil
}

func (j *Judge) facts(ctx context.Context, namespace string) (facts, error) {
	var f facts
	var err error
	if f.namespace, err = j.Lookup.namespace(ctx, namespace); err != nil {
		return f, err
	}
	if f.classes, err = j.Lookup.runtimeClasses(ctx); err != nil {
		return f, err
	}
	f.tierName, f.tier, f.tierKnown = j.Platform.TierOf(f.namespace.Labels[keys.Tier])
	return f, nil
}

// state judges one state of the object.
func (j *Judge) state(ctx context.Context, r review, known facts) (judged, error) {
	pool, template, err := j.references(ctx, r)
	if err != nil {
		return judged{}, err
	}
	other := ""
	if r.operation == operationCreate {
		if other, err = j.Lookup.colliding(ctx, r.kind, r.namespace, r.name); err != nil {
			return judged{}, err
		}
	}
	pod := effectiveOf(r, template)
	now := j.Clock.Now()
	findings := ofFaults(validation.Validate(validation.Input{
		Operation: r.operation, Kind: r.kind, Object: r.object, OldObject: r.old,
		Controller: j.controls(r.user.Username),
		TierName:   known.tierName, Tier: known.tier, TierKnown: known.tierKnown, Tiers: slices.Sorted(maps.Keys(j.Platform.Tiers)),
		RuntimeClasses: known.classes, Effective: pod, Pool: pool, Template: template,
		LabelDomains: j.Platform.Claims.AllowedLabelDomains(), Colliding: other, RelaxedServiceNames: j.RelaxedServiceNames, Now: now,
	}))
	findings = append(findings, ofUnmet(defaults.Request{
		Operation: r.operation, Kind: r.kind, Object: r.object, OldObject: r.old, Tier: known.tier, RuntimeClasses: known.classes,
	})...)
	tier, err := asJSON(known)
	if err != nil {
		return judged{}, err
	}
	decision := j.Engine.Evaluate(ctx, engine.Input{
		Operation: r.operation, Kind: r.kind, User: r.user, Object: r.object, OldObject: r.old,
		Namespace: known.namespace, Pod: pod.Pod, PodPath: pod.Path, Template: template, Pool: pool,
		Tier: tier, TierName: known.tierName, Environment: j.Platform.Environment,
		Source: engine.SourceAdmission, Now: now,
	})
	return judged{
		digest: decision.Digest, findings: merge(findings, decision.Findings),
		document: documentOf(r.object, pod),
	}, nil
}

func (j *Judge) references(ctx context.Context, r review) (pool, template map[string]any, err error) {
	owner := r.object
	switch r.kind {
	case engine.KindSandboxClaim:
		if pool, err = j.Lookup.pool(ctx, r.namespace, textAt(r.object, "spec", "warmPoolRef", "name")); err != nil || pool == nil {
			return nil, nil, err
		}
		owner = pool
	case engine.KindSandboxWarmPool:
	default:
		return nil, nil, nil
	}
	template, err = j.Lookup.template(ctx, r.namespace, textAt(owner, "spec", "sandboxTemplateRef", "name"))
	return pool, template, err
}

func (j *Judge) controls(user string) bool {
	return slices.Contains(systemUsers, user) || j.ControllerUsers.Has(user)
}

func effectiveOf(r review, template map[string]any) effective.Result {
	switch r.kind {
	case engine.KindSandboxClaim:
		return effective.OfClaim(r.object, template)
	case engine.KindSandboxWarmPool:
		return effective.OfPool(template)
	default:
		return effective.OfOwn(r.object)
	}
}

// documentOf is the object together with the Pod that it borrows.
func documentOf(object map[string]any, pod effective.Result) map[string]any {
	if pod.Path != effective.PathTemplate {
		return object
	}
	document := maps.Clone(object)
	document["template"] = map[string]any{"spec": map[string]any{"podTemplate": pod.Pod}}
	return document
}

// asJSON is the tier as rules see it. A tier that nobody defined is none, and the
// policies then judge by their own defaults.
func asJSON(known facts) (map[string]any, error) {
	if !known.tierKnown {
		return nil, nil
	}
	raw, err := json.Marshal(known.tier)
	if err != nil {
		return nil, fmt.Errorf("encode tier %q: %w", known.tierName, err)
	}
	var tier map[string]any
	if err := json.Unmarshal(raw, &tier); err != nil {
		return nil, fmt.Errorf("encode tier %q: %w", known.tierName, err)
	}
	return tier, nil
}
