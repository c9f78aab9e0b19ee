// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Form says whether a key is a label or an annotation.
type Form string

// The two forms of a key.
const (
	Label      Form = "label"
	Annotation Form = "annotation"
)

// Kinds whose metadata the table speaks of.
const (
	kindSandbox  = "Sandbox"
	kindTemplate = "SandboxTemplate"
	kindClaim    = "SandboxClaim"
)

// firstObservedWindow is how far controller-first-observed-at may lie from now when
// a user, or our own mutating webhook on his behalf, writes it.
const firstObservedWindow = 60 * time.Second

// Subject is the object on which a key is judged.
type Subject struct {
	// Kind is the kind of the object.
	Kind string
	// Name is its name; empty while the apiserver has yet to generate it.
	Name string
	// User is the name of the user who writes.
	User string
	// Stored says that the object was there before he writes.
	Stored bool
	// Now is the time of the judgement.
	Now time.Time
}

// Key is one label or annotation that a user may write on an object of ours. Every
// other key of the reserved domains is the controllers' alone.
type Key struct {
	// Name is the whole key.
	Name string
	// Form is label or annotation.
	Form Form
	// Kinds are the kinds on which a user may write it.
	Kinds []string
	// Values lists the values that a user may write; empty when check decides.
	Values []string

	check func(value string, on Subject) error
}

// UserKeys are the keys of the reserved domains that a user may write, in the order
// of their names.
func UserKeys() []Key {
	return []Key{
		{Name: ClientFirstRequestedAt, Form: Annotation, Kinds: []string{kindClaim}},
		{Name: ControllerFirstObservedAt, Form: Annotation, Kinds: []string{kindClaim}, check: aroundNow},
		{
			Name: CreatedBy, Form: Label, Kinds: []string{kindClaim},
			Values: clients(),
		},
		{Name: PodName, Form: Annotation, Kinds: []string{kindSandbox}, check: equalsOwnName},
		{Name: WebhookFirstObservedAt, Form: Annotation, Kinds: []string{kindClaim}},
		{Name: BindTimeout, Form: Annotation, Kinds: []string{kindClaim}, check: positiveDuration},
		{Name: Creator, Form: Annotation, Kinds: []string{kindSandbox, kindClaim}, check: equalsUserOnCreation},
		{Name: Defaulted, Form: Annotation, Kinds: []string{kindSandbox, kindTemplate}},
		{Name: EgressProfile, Form: Annotation, Kinds: []string{kindSandbox, kindTemplate}},
		{Name: RestartPolicy, Form: Annotation, Kinds: []string{kindSandbox, kindTemplate}, Values: []string{"Recreate"}},
		{Name: VolumeRetention, Form: Annotation, Kinds: []string{kindSandbox, kindTemplate}, Values: []string{"Retain"}},
	}
}

// clients are the values of created-by.
func clients() []string {
	return []string{"go-client", "python-client", CreatedByController, CreatedByUnknown}
}

// KnownClient is a value of created-by as it is handed on: one that the table does not
// know is CreatedByUnknown.
func KnownClient(value string) string {
	if slices.Contains(clients(), value) {
		return value
	}
	return CreatedByUnknown
}

// Reserved reports whether a key belongs to the platform's domains, so that only the
// keys of the table may be written by users.
func Reserved(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	return found && (domain == "agents.x-k8s.io" || strings.HasSuffix(domain, ".agents.x-k8s.io"))
}

// ReservedInPod reports whether a key is dropped from a podTemplate's metadata: the
// reserved domains, and the trace context, which is the controllers' to hand on.
func ReservedInPod(key string) bool {
	return Reserved(key) || key == TraceContext
}

// CheckUser says why a user may not write a key with this value on the object, or
// nil when he may. Keys outside the reserved domains are always his.
func CheckUser(form Form, key, value string, on Subject) error {
	if !Reserved(key) {
		return nil
	}
	for _, k := range UserKeys() {
		if k.Name == key && k.Form == form && slices.Contains(k.Kinds, on.Kind) {
			return k.checkValue(value, on)
		}
	}
	return fmt.Errorf("the %s is written by the controllers only: remove it", form)
}

func (k Key) checkValue(value string, on Subject) error {
	if k.check != nil {
		return k.check(value, on)
	}
	if len(k.Values) > 0 && !slices.Contains(k.Values, value) {
		return fmt.Errorf("allowed values: %s", strings.Join(k.Values, ", "))
	}
	return nil
}

func equalsOwnName(value string, on Subject) error {
	if on.Name != "" && value == on.Name {
		return nil
	}
	return fmt.Errorf("the Pod of a Sandbox has the Sandbox's name: remove the annotation, or set it to %q", on.Name)
}

func equalsUserOnCreation(value string, on Subject) error {
	if !on.Stored && on.User != "" && value == on.User {
		return nil
	}
	return errors.New("the annotation names who created the object: leave it as it is, it is set for you on creation")
}

func aroundNow(value string, on Subject) error {
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return fmt.Errorf("write a time as RFC 3339, such as %q", on.Now.UTC().Format(time.RFC3339Nano))
	}
	if at.Sub(on.Now).Abs() > firstObservedWindow {
		return fmt.Errorf("the time must lie within %s of now: remove the annotation, it is set for you", firstObservedWindow)
	}
	return nil
}

func positiveDuration(value string, _ Subject) error {
	if d, err := time.ParseDuration(value); err != nil || d <= 0 {
		return errors.New("write a positive duration, such as \"30s\" or \"5m\"")
	}
	return nil
}
