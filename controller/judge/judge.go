// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/clock"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/defaults"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/effective"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/validation"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Operations of a Question.
const (
	OperationCreate = "CREATE"
	OperationUpdate = "UPDATE"
)

// RuleDefaults is the rule of hardened defaults that are still unset.
const RuleDefaults = "hardened-defaults"

// Lookup reads what a judgement rests on besides the object.
type Lookup interface {
	// Namespace returns the labels and annotations of a namespace.
	Namespace(ctx context.Context, name string) (engine.NamespaceInfo, error)
	// RuntimeClasses returns those that exist.
	RuntimeClasses(ctx context.Context) (RuntimeClasses, error)
	// Template and Pool return a SandboxTemplate and a SandboxWarmPool as decoded JSON,
	// which is not changed; nil if there is none.
	Template(ctx context.Context, namespace, name string) (map[string]any, error)
	Pool(ctx context.Context, namespace, name string) (map[string]any, error)
	// Colliding returns the name of another object of the kind whose name has the same
	// hash, empty if there is none.
	Colliding(ctx context.Context, kind, namespace, name string) (string, error)
}

// Judge judges.
type Judge struct {
	// Current is the configuration of the platform with what the Services of its egress
	// profiles are now, as isolation.Resolve makes it.
	Current func() *config.Platform
	// Lookup reads namespaces, RuntimeClasses, templates and pools.
	Lookup Lookup
	// Engine judges by the policies.
	Engine *engine.Engine
	// RelaxedServiceNames says that Services may have names that begin with a digit.
	RelaxedServiceNames bool
	// Clock gives the time.
	Clock clock.PassiveClock
}

// Question is one state of an object that is to be judged.
type Question struct {
	// ID names the decision in the decision log; one is made when it is empty.
	ID string
	// Operation is OperationCreate or OperationUpdate.
	Operation string
	// Kind is the kind of the object.
	Kind string
	// Namespace and Name are the object's; the name may not be known yet.
	Namespace, Name string
	// Object is the object, Old what it was before an update. Both are decoded JSON and
	// are not changed.
	Object, Old map[string]any
	// User is who asks, and Controller says that he may do what only controllers do.
	User       engine.UserInfo
	Controller bool
	// DryRun says that nothing is stored whatever the judgement.
	DryRun bool
}

// Before is the question about the object before its update. What admission adds to it in the course of the update is
// no change of the writer's, so the object has it already.
func (q Question) Before(known Facts) Question {
	old := q.Old
	if known.TierKnown {
		old = defaults.Before(q.hardening(known))
	}
	q.Object, q.Old = old, old
	return q
}

// hardening is what admission adds defaults to.
func (q Question) hardening(known Facts) defaults.Request {
	return defaults.Request{
		Operation: q.Operation, Kind: q.Kind, Object: q.Object, OldObject: q.Old, Tier: known.Tier,
		RuntimeClasses: known.Classes.Usable, FreeClasses: known.Classes.Free,
	}
}

// Facts are what every judgement in a namespace rests on besides the object.
type Facts struct {
	// Platform is the configuration of the platform, now.
	Platform *config.Platform
	// Namespace is the namespace.
	Namespace engine.NamespaceInfo
	// Classes are the RuntimeClasses that exist.
	Classes RuntimeClasses
	// TierName and Tier are the namespace's tier; TierKnown is false when nobody defined
	// one of that name.
	TierName  string
	Tier      config.Tier
	TierKnown bool
}

// Judgement is everything about one state of an object.
type Judgement struct {
	// Digest names the policies that judged.
	Digest string
	// Findings are all there is to say, what refuses first.
	Findings []engine.Finding
	// Document is what the fields of the findings are paths of.
	Document map[string]any
	// Validity says what besides the question and the facts decided.
	Validity engine.Validity
}

// Facts reads the facts of a namespace.
func (j *Judge) Facts(ctx context.Context, namespace string) (Facts, error) {
	f := Facts{Platform: j.Current()}
	var err error
	if f.Namespace, err = j.Lookup.Namespace(ctx, namespace); err != nil {
		return f, err
	}
	if f.Classes, err = j.Lookup.RuntimeClasses(ctx); err != nil {
		return f, err
	}
	f.Classes.withNodesToCome(f.Platform.RuntimeClassesFromZero)
	f.TierName, f.Tier, f.TierKnown = f.Platform.TierOf(f.Namespace.Labels[keys.Tier])
	return f, nil
}

// Submitted judges an object that somebody submits. The error is ours, not the
// object's.
func (j *Judge) Submitted(ctx context.Context, q Question, known Facts) (Judgement, error) {
	return j.of(ctx, q, q.Old, engine.SourceAdmission, known)
}

// Standing judges an object that is stored, as if it were created today with the
// metadata that it has. What admission would only fill in refuses nothing: it is told
// as a finding that is recorded. Operation, Old and User of the question do not matter.
func (j *Judge) Standing(ctx context.Context, q Question, known Facts) (Judgement, error) {
	q.Operation, q.Old, q.User = OperationCreate, q.Object, engine.UserInfo{}
	return j.of(ctx, q, nil, engine.SourceAudit, known)
}

// of judges. Rules of the API see the object as it was before, policies see old.
func (j *Judge) of(ctx context.Context, q Question, old map[string]any, source string, known Facts) (Judgement, error) {
	pool, template, err := j.references(ctx, q)
	if err != nil {
		return Judgement{}, err
	}
	other := ""
	if q.Operation == OperationCreate {
		if other, err = j.Lookup.Colliding(ctx, q.Kind, q.Namespace, q.Name); err != nil {
			return Judgement{}, err
		}
	}
	pod := effectiveOf(q, template, known)
	followProfile(&pod, q, template, known)
	now := j.Clock.Now()
	findings := ofFaults(validation.Validate(validation.Input{
		Operation: q.Operation, Kind: q.Kind, Object: q.Object, OldObject: q.Old,
		User: q.User.Username, Controller: q.Controller,
		TierName: known.TierName, Tier: known.Tier, TierKnown: known.TierKnown, Tiers: slices.Sorted(maps.Keys(known.Platform.Tiers)),
		Platform: known.Platform, RuntimeClasses: known.Classes.Existing, UsableClasses: known.Classes.Usable, Effective: pod, Pool: pool, Template: template,
		LabelDomains: known.Platform.Claims.AllowedLabelDomains(), Colliding: other, RelaxedServiceNames: j.RelaxedServiceNames, Now: now,
	}))
	findings = append(findings, ofUnmet(q.hardening(known), source == engine.SourceAudit)...)
	own, native := split(findings)
	tier, err := asJSON(known)
	if err != nil {
		return Judgement{}, err
	}
	decision := j.Engine.Evaluate(ctx, engine.Input{
		ID: q.ID, Operation: q.Operation, Kind: q.Kind, User: q.User, Object: q.Object, OldObject: old,
		Namespace: known.Namespace, Pod: pod.Pod, PodPath: pod.Path, Template: template, Pool: pool,
		Tier: tier, TierName: known.TierName, Environment: known.Platform.Environment,
		Source: source, Now: now, Native: native, DryRun: q.DryRun,
	})
	return Judgement{
		Digest: decision.Digest, Findings: merge(own, decision.Findings),
		Document: documentOf(q.Object, template, pod), Validity: decision.Validity,
	}, nil
}

func (j *Judge) references(ctx context.Context, q Question) (pool, template map[string]any, err error) {
	owner := q.Object
	switch q.Kind {
	case engine.KindSandboxClaim:
		if pool, err = j.Lookup.Pool(ctx, q.Namespace, textAt(q.Object, "spec", "warmPoolRef", "name")); err != nil || pool == nil {
			return nil, nil, err
		}
		owner = pool
	case engine.KindSandboxWarmPool:
	default:
		return nil, nil, nil
	}
	template, err = j.Lookup.Template(ctx, q.Namespace, textAt(owner, "spec", "sandboxTemplateRef", "name"))
	return pool, template, err
}

// effectiveOf is the Pod that the object would run. What it borrows from a template is
// hardened as the Sandbox will be that is made of it, since the tier may be another than
// when the template was stored.
func effectiveOf(q Question, template map[string]any, known Facts) effective.Result {
	var pod effective.Result
	switch q.Kind {
	case engine.KindSandboxClaim:
		pod = effective.OfClaim(q.Object, template)
	case engine.KindSandboxWarmPool:
		pod = effective.OfPool(template)
	default:
		return effective.OfOwn(q.Object)
	}
	if pod.Pod != nil && known.TierKnown {
		defaults.Harden(pod.Pod, known.Tier, known.Classes.Usable, known.Classes.Free)
	}
	return pod
}

// followProfile shows the Pod with the resolvers of the egress profile under which it
// will run. A profile that the tier does not allow is told of by validation.
func followProfile(pod *effective.Result, q Question, template map[string]any, known Facts) {
	asks := q.Object
	switch {
	case template != nil:
		asks = template
	case q.Kind != engine.KindSandbox || textAt(q.Object, "metadata", "annotations", keys.SandboxTemplateRef) != "":
		return // a template's own Pod follows when it is made, and that of a Sandbox made from one did
	}
	choice, invalid := isolation.Choose(known.Platform, isolation.Subject{
		TierLabel: known.Namespace.Labels[keys.Tier], Profile: textAt(asks, "metadata", "annotations", keys.EgressProfile),
	})
	if invalid == nil {
		pod.FollowProfile(known.Platform.EgressProfiles[choice.Profile], template)
	}
}

// documentOf is the object together with the Pod and the volumes that it borrows.
func documentOf(object, template map[string]any, pod effective.Result) map[string]any {
	if pod.Path != effective.PathTemplate {
		return object
	}
	document := maps.Clone(object)
	spec := map[string]any{"podTemplate": pod.Pod}
	if given := objectAt(template, "spec")["volumeClaimTemplates"]; given != nil {
		spec["volumeClaimTemplates"] = given
	}
	document["template"] = map[string]any{"spec": spec}
	return document
}

// objectAt is a member that is an object, nil when there is none.
func objectAt(object map[string]any, name string) map[string]any {
	member, _ := object[name].(map[string]any)
	return member
}

// asJSON is the tier as rules see it. A tier that nobody defined is none, and the
// policies then judge by their own defaults.
func asJSON(known Facts) (map[string]any, error) {
	if !known.TierKnown {
		return nil, nil
	}
	raw, err := json.Marshal(known.Tier)
	if err != nil {
		return nil, fmt.Errorf("encode tier %q: %w", known.TierName, err)
	}
	var tier map[string]any
	if err := json.Unmarshal(raw, &tier); err != nil {
		return nil, fmt.Errorf("encode tier %q: %w", known.TierName, err)
	}
	return tier, nil
}

// textAt follows a path of objects to a text; anything else counts as absent.
func textAt(object map[string]any, path ...string) string {
	last := len(path) - 1
	for _, member := range path[:last] {
		object, _ = object[member].(map[string]any)
	}
	text, _ := object[path[last]].(string)
	return text
}
