// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// memberSuffix stands for what a pool adds to its name for a member.
	memberSuffix = "-xxxxx"
	// memberBase is how much of a long pool name the members' names keep: the
	// apiserver's generator cuts there.
	memberBase = 57
	// networkPolicySuffix is what a template's NetworkPolicy adds to its name.
	networkPolicySuffix = "-network-policy"
)

// checkNames refuses names from which a name of another object could not be made.
func checkNames(in Input) []Fault {
	name := in.name()
	if name == "" {
		return nil
	}
	at := field.NewPath("metadata", "name")
	var faults []Fault
	switch in.Kind {
	case KindSandbox:
		faults = append(faults, serviceName(in, in.Object, name, at)...)
		faults = append(faults, volumeNames(in.Object, name)...)
	case KindTemplate:
		derived := name + networkPolicySuffix
		for _, problem := range validation.IsDNS1123Subdomain(derived) {
			faults = append(faults, badName(at, name, fmt.Sprintf("its NetworkPolicy would be named %q: %s", derived, problem)))
		}
		faults = append(faults, volumeNames(in.Object, "")...)
	case KindPool:
		member := name[:min(len(name), memberBase)] + memberSuffix
		faults = serviceName(in, in.Template, member, at)
	case KindClaim:
		faults = serviceName(in, in.Template, name, at)
		for i := range faults {
			faults[i].Warning = true // a waiting Sandbox has a name of its own
		}
		faults = append(faults, volumeNames(in.Object, name)...)
		faults = append(faults, borrowedVolumes(in, name, at)...)
	}
	return faults
}

// borrowedVolumes warns of a claim with whose name the template's volumes could not be made. A
// waiting Sandbox has a name of its own, and theirs are there already.
func borrowedVolumes(in Input, claim string, at *field.Path) []Fault {
	own := sets.New[string]()
	for _, element := range listAt(in.Object, "spec", "volumeClaimTemplates") {
		template, _ := element.(map[string]any)
		own.Insert(textAt(template, "metadata", "name"))
	}
	var faults []Fault
	for _, element := range in.Effective.VolumeClaimTemplates {
		template, _ := element.(map[string]any)
		name := textAt(template, "metadata", "name")
		if own.Has(name) || len(validation.IsDNS1123Label(name)) > 0 {
			continue // it is refused here, or in the template
		}
		for _, problem := range validation.IsDNS1123Subdomain(name + "-" + claim) {
			fault := badName(at, claim, fmt.Sprintf("with volume %q of the template, a PersistentVolumeClaim would be named by both: %s", name, problem))
			fault.Warning = true
			faults = append(faults, fault)
		}
	}
	return faults
}

// serviceName checks the name of a Sandbox that has a Service.
func serviceName(in Input, blueprint map[string]any, sandbox string, at *field.Path) []Fault {
	if objectAt(blueprint, "spec")["service"] != true {
		return nil
	}
	check := validation.IsDNS1035Label
	if in.RelaxedServiceNames {
		check = validation.IsDNS1123Label
	}
	var faults []Fault
	for _, problem := range check(sandbox) {
		faults = append(faults, badName(at, in.name(), fmt.Sprintf("with service true, a Service would be named %q: %s", sandbox, problem)))
	}
	return faults
}

// volumeNames checks the names of volume claim templates, and of the claims of a
// Sandbox of that name; it is empty when the name is not known.
func volumeNames(object map[string]any, sandbox string) []Fault {
	var faults []Fault
	seen := map[string]bool{}
	for i, element := range listAt(object, "spec", "volumeClaimTemplates") {
		template, _ := element.(map[string]any)
		at := field.NewPath("spec", "volumeClaimTemplates").Index(i).Child("metadata", "name")
		name := textAt(template, "metadata", "name")
		if seen[name] {
			faults = append(faults, Fault{
				Rule: RuleNames, Error: &field.Error{Type: field.ErrorTypeDuplicate, Field: at.String(), BadValue: name, Detail: "another volume has this name"},
				Remedy: "Choose a name that is not used yet.",
			})
		}
		seen[name] = true
		problems := validation.IsDNS1123Label(name)
		if len(problems) == 0 && sandbox != "" {
			problems = validation.IsDNS1123Subdomain(name + "-" + sandbox)
		}
		for _, problem := range problems {
			faults = append(faults, badName(at, name, "it names a volume and begins the name of a PersistentVolumeClaim: "+problem))
		}
	}
	return faults
}

// checkCollision refuses a name whose hash another object's name has: the labels that
// select Pods would mean both. Anyone can find such names.
func checkCollision(in Input) []Fault {
	if in.Operation != operationCreate || in.Colliding == "" {
		return nil
	}
	return []Fault{{
		Rule: RuleNames,
		Error: field.Invalid(field.NewPath("metadata", "name"), in.name(),
			fmt.Sprintf("its hash equals that of %s %q, so labels could not tell the two apart", in.Kind, in.Colliding)),
		Remedy: "Choose another name.",
	}}
}

func badName(at *field.Path, name, problem string) Fault {
	return Fault{
		Rule: RuleNames, Error: field.Invalid(at, name, strings.TrimSuffix(problem, ".")),
		Remedy: "Choose another name: short, of lower case letters, digits and '-', beginning with a letter.",
	}
}
