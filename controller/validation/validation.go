// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/effective"
)

// Kinds that are validated.
const (
	KindSandbox  = "Sandbox"
	KindTemplate = "SandboxTemplate"
	KindPool     = "SandboxWarmPool"
	KindClaim    = "SandboxClaim"
)

const (
	operationCreate = "CREATE"
	operationUpdate = "UPDATE"
)

// Ids of the rules.
const (
	RuleNames            = "names"
	RuleReservedMetadata = "reserved-metadata"
	RuleForgedOwner      = "forged-owner"
	RuleControlled       = "controlled-sandbox"
	RuleTier             = "tier"
	RuleEgressProfile    = "egress-profile"
	RuleEgressCeiling    = "egress-ceiling"
	RuleRuntimeRequired  = "runtimeclass-required"
	RuleRuntimeExists    = "runtimeclass-exists"
	RuleLifetime         = "tier-lifetime"
	RuleReference        = "reference"
	RuleClaim            = "claim-injection"
)

// Fault is one thing that is wrong with an object.
type Fault struct {
	// Error says where, what stands there and what is wrong with it.
	*field.Error
	// Rule is the id of the rule.
	Rule string
	// Remedy says what to do, as a sentence.
	Remedy string
	// Warning faults do not refuse the object.
	Warning bool
	// Content and Amount are those of the finding that it becomes.
	Content string
	Amount  float64
}

// Errors returns the faults that refuse the object.
func Errors(faults []Fault) field.ErrorList {
	var errs field.ErrorList
	for _, fault := range faults {
		if !fault.Warning {
			errs = append(errs, fault.Error)
		}
	}
	return errs
}

// Input is all that the verdict depends on. Objects are decoded JSON and are not
// changed.
type Input struct {
	// Operation is CREATE or UPDATE.
	Operation string
	// Kind is the kind of the object.
	Kind string
	// Object is the object, OldObject what it was before an UPDATE.
	Object, OldObject map[string]any
	// User is the name of the user.
	User string
	// Controller says that the user may do what only controllers do.
	Controller bool
	// TierName and Tier are the tier of the namespace; TierKnown is false when its
	// label names none of Tiers.
	TierName  string
	Tier      config.Tier
	TierKnown bool
	Tiers     []string
	// Platform is the configuration of the platform: the profiles that ceilings name.
	Platform *config.Platform
	// RuntimeClasses are the names of those that exist, UsableClasses of those under which a
	// Pod can start: a class may select nodes that the cluster does not have.
	RuntimeClasses, UsableClasses sets.Set[string]
	// Effective is the Pod that the object would run.
	Effective effective.Result
	// Pool and Template are what the object refers to, nil when it does not exist.
	Pool, Template map[string]any
	// LabelDomains are the domains whose labels a claim may add to its Pod.
	LabelDomains []string
	// Colliding is the name of another object of the kind in the namespace whose name
	// has the same hash, empty if there is none.
	Colliding string
	// RelaxedServiceNames says that the names of Services may begin with a digit, as
	// from Kubernetes 1.36 on.
	RelaxedServiceNames bool
	// Now is the time of the request.
	Now time.Time
}

// Validate lists every fault of the object, in a stable order.
func Validate(in Input) []Fault {
	checks := []func(Input) []Fault{
		checkTier, checkEgressProfile, checkEgressCeiling, checkRuntimeClass, checkCeilings, checkLifetime,
		checkNames, checkCollision,
		checkReservedMetadata, checkPodMetadata, checkVolumeMetadata, checkClaimMetadata,
		checkOwners, checkControlled,
		checkReferences, checkInjection,
	}
	var faults []Fault
	for _, check := range checks {
		faults = append(faults, check(in)...)
	}
	return faults
}

func (in Input) name() string {
	name, _ := objectAt(in.Object, "metadata")["name"].(string)
	return name
}

// objectAt follows a path of objects; what is no object counts as absent.
func objectAt(object map[string]any, path ...string) map[string]any {
	for _, member := range path {
		object, _ = object[member].(map[string]any)
	}
	return object
}

func listAt(object map[string]any, path ...string) []any {
	last := len(path) - 1
	list, _ := objectAt(object, path[:last]...)[path[last]].([]any)
	return list
}

func textAt(object map[string]any, path ...string) string {
	last := len(path) - 1
	text, _ := objectAt(object, path[:last]...)[path[last]].(string)
	return text
}
