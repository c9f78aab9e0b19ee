// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// RuntimeClass is a tier's choice of the container runtime.
type RuntimeClass struct {
	// Classes are the RuntimeClasses in order of preference. The first under which a Pod
	// can start in the cluster is set on Pods that name none.
	Classes []Class `json:"classes,omitempty"`
	// Required refuses Pods that run under none of them.
	Required bool `json:"required,omitempty"`
	// Floor is the weakest class under which a Pod may run, one of
	// Platform.RuntimeClassOrder. A Pod without a class is below every floor. Empty means
	// that there is none.
	Floor string `json:"floor,omitempty"`
	// AtLeast are the classes that reach the floor. TierOf sets it; a file cannot.
	AtLeast []string `json:"atLeast,omitempty"`
}

// Refusal says in a sentence, whose subject is the tier, why no Pod of it may run under
// a class; empty if one may. The class is empty for a Pod that names none.
func (r RuntimeClass) Refusal(class string) string {
	switch {
	case r.Required && !slices.Contains(r.Names(), class):
		return "requires a RuntimeClass of its list"
	case r.Floor != "" && !slices.Contains(r.AtLeast, class):
		return fmt.Sprintf("wants a RuntimeClass that isolates as %s does, or better", r.Floor)
	default:
		return ""
	}
}

// Permitted are the classes of the tier's own that Refusal lets pass and those besides
// that reach its floor, without any where the tier demands none.
func (r RuntimeClass) Permitted() []string {
	if r.Required {
		return slices.DeleteFunc(r.Names(), func(class string) bool { return r.Refusal(class) != "" })
	}
	return slices.Clone(r.AtLeast)
}

// Select is the class to set on a Pod that names none: the first of the list under which
// a Pod can start now, or else the first under which it can start once a node takes Pods
// again; empty when there is none.
func (r RuntimeClass) Select(usable, free func(class string) bool) string {
	names := r.Names()
	for _, can := range []func(string) bool{free, usable} {
		if i := slices.IndexFunc(names, can); i >= 0 {
			return names[i]
		}
	}
	return ""
}

// atLeast are the classes of the order down to a floor.
func atLeast(order []string, floor string) []string {
	return slices.Clone(order[:slices.Index(order, floor)+1])
}

func validateOrder(order []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, class := range order {
		switch {
		case class == "":
			errs = append(errs, field.Required(at.Index(i), "name a RuntimeClass: a Pod without one is below all of them"))
		case slices.Index(order, class) < i:
			errs = append(errs, field.Duplicate(at.Index(i), class))
		}
	}
	return errs
}

func validateClasses(r RuntimeClass, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := r.Names()
	for i, name := range names {
		switch {
		case len(validation.IsDNS1123Subdomain(name)) > 0:
			errs = append(errs, field.Invalid(at.Index(i), name, "write the name of a RuntimeClass"))
		case slices.Index(names, name) < i:
			errs = append(errs, field.Duplicate(at.Index(i), name))
		}
	}
	if r.Required && len(names) == 0 {
		errs = append(errs, field.Required(at, "a tier that requires a RuntimeClass lists at least one"))
	}
	return errs
}

func (p *Platform) validateRuntimeClass(r RuntimeClass, at *field.Path) field.ErrorList {
	errs := validateClasses(r, at.Child("classes"))
	if len(r.AtLeast) > 0 {
		errs = append(errs, field.Forbidden(at.Child("atLeast"), "it follows from floor and runtimeClassOrder: remove it"))
	}
	if r.Floor == "" {
		return errs
	}
	if !slices.Contains(p.RuntimeClassOrder, r.Floor) {
		return append(errs, field.NotSupported(at.Child("floor"), r.Floor, p.RuntimeClassOrder))
	}
	reach := atLeast(p.RuntimeClassOrder, r.Floor)
	for i, class := range r.Names() {
		if !slices.Contains(reach, class) {
			errs = append(errs, field.Invalid(at.Child("classes").Index(i), class,
				fmt.Sprintf("it is below the tier's floor: write one of %s, or lower the floor", strings.Join(reach, ", "))))
		}
	}
	return errs
}
