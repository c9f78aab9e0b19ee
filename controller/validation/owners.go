// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// checkOwners refuses that a user makes one of our kinds the controller of an object, or
// ends that: it would join the network and the lifecycle of somebody else's Sandboxes, or
// leave those of its own and so what may not be changed there.
func checkOwners(in Input) []Fault {
	if in.Controller {
		return nil
	}
	before, after := listAt(in.OldObject, "metadata", "ownerReferences"), listAt(in.Object, "metadata", "ownerReferences")
	var faults []Fault
	for _, element := range before {
		if isOurs(element) && !slices.ContainsFunc(after, func(kept any) bool { return reflect.DeepEqual(kept, element) }) {
			owner, _ := element.(map[string]any)
			faults = append(faults, Fault{
				Rule: RuleForgedOwner,
				Error: field.Invalid(field.NewPath("metadata", "ownerReferences"), textAt(owner, "kind")+"/"+textAt(owner, "name"),
					"only the controllers end that an object of this kind is the controller of another"),
				Remedy: "Leave the owner reference as it is; the object goes with its owner.",
			})
		}
	}
	for i, element := range after {
		owner, _ := element.(map[string]any)
		known := slices.ContainsFunc(before, func(old any) bool { return reflect.DeepEqual(old, element) })
		if known || !isOurs(element) {
			continue
		}
		faults = append(faults, Fault{
			Rule: RuleForgedOwner,
			Error: field.Invalid(field.NewPath("metadata", "ownerReferences").Index(i), textAt(owner, "kind")+"/"+textAt(owner, "name"),
				"only the controllers make an object of this kind the controller of another"),
			Remedy: "Remove the owner reference.",
		})
	}
	return faults
}

// isOurs reports whether an owner reference makes one of our kinds the controller.
func isOurs(reference any) bool {
	owner, _ := reference.(map[string]any)
	group, _, _ := strings.Cut(textAt(owner, "apiVersion"), "/")
	return owner["controller"] == true && (group == agentsv1beta1.GroupName || group == extensionsv1beta1.GroupName)
}

// ofOwnUse are the fields of the spec that a user may change on a Sandbox that he did not make.
var ofOwnUse = []string{"operatingMode", "shutdownTime", "shutdownPolicy"}

// checkControlled keeps users from changing what the claim or pool of a Sandbox made, and the
// annotations that steer it.
func checkControlled(in Input) []Fault {
	if in.Operation != operationUpdate || in.Kind != KindSandbox || in.Controller {
		return nil
	}
	source := madeBy(in.OldObject)
	if source == "" {
		return nil
	}
	var faults []Fault
	for _, path := range append(changedSpec(in), steered(in)...) {
		faults = append(faults, Fault{
			Rule:   RuleControlled,
			Error:  field.Forbidden(path, "the Sandbox "+source+", which says what it is made of"),
			Remedy: "Change the claim or the template; on the Sandbox itself only " + strings.Join(ofOwnUse, ", ") + " can be changed.",
		})
	}
	return faults
}

// madeBy says what a Sandbox belongs to; empty for one that a user wrote. Garbage collection takes
// away the owner that was deleted with --cascade=orphan, but users cannot take away the name of
// the template.
func madeBy(sandbox map[string]any) string {
	owners := listAt(sandbox, "metadata", "ownerReferences")
	if index := slices.IndexFunc(owners, isOurs); index >= 0 {
		owner, _ := owners[index].(map[string]any)
		return "belongs to " + textAt(owner, "kind") + " " + textAt(owner, "name")
	}
	if template := textAt(sandbox, "metadata", "annotations", keys.SandboxTemplateRef); template != "" {
		return "was made from SandboxTemplate " + template
	}
	return ""
}

// changedSpec are the fields of the spec that an update of a Sandbox changes, but for those of
// the user's own use.
func changedSpec(in Input) []*field.Path {
	now, before := objectAt(in.Object, "spec"), objectAt(in.OldObject, "spec")
	names := sets.KeySet(now).Union(sets.KeySet(before))
	var changed []*field.Path
	for _, name := range sets.List(names) {
		if !slices.Contains(ofOwnUse, name) && !reflect.DeepEqual(now[name], before[name]) {
			changed = append(changed, field.NewPath("spec", name))
		}
	}
	return changed
}

// steered are the annotations of a Sandbox by which users steer it, as far as an update
// changes them. What admission writes down of its own defaults steers nothing.
func steered(in Input) []*field.Path {
	var changed []*field.Path
	for _, key := range keys.UserKeys() {
		if key.Form != keys.Annotation || !slices.Contains(key.Kinds, KindSandbox) || key.Name == keys.Defaulted {
			continue
		}
		now, before := objectAt(in.Object, "metadata", "annotations"), objectAt(in.OldObject, "metadata", "annotations")
		if !reflect.DeepEqual(now[key.Name], before[key.Name]) {
			changed = append(changed, field.NewPath("metadata", "annotations").Key(key.Name))
		}
	}
	return changed
}
