// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

var members = map[keys.Form]string{keys.Label: "labels", keys.Annotation: "annotations"}

// forms is the order in which metadata is checked.
var forms = []keys.Form{keys.Label, keys.Annotation}

// checkReservedMetadata judges the reserved keys that a user adds, changes or removes
// on the object itself.
func checkReservedMetadata(in Input) []Fault {
	if in.Controller {
		return nil
	}
	subject := keys.Subject{Kind: in.Kind, Name: in.name(), User: in.User, Stored: in.OldObject != nil, Now: in.Now}
	var faults []Fault
	for _, form := range forms {
		now, before := objectAt(in.Object, "metadata", members[form]), objectAt(in.OldObject, "metadata", members[form])
		at := field.NewPath("metadata", members[form])
		for _, key := range slices.Sorted(maps.Keys(now)) {
			value, _ := now[key].(string)
			if old, existed := before[key].(string); existed && old == value {
				continue
			}
			if err := keys.CheckUser(form, key, value, subject); err != nil {
				faults = append(faults, reserved(at.Key(key), value, sentence(err.Error())))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(before)) {
			if _, kept := now[key]; !kept && keys.Reserved(key) && !writable(form, key, in.Kind) {
				faults = append(faults, reserved(at.Key(key), "", "Keep the key, it is written by the controllers only: use apply or patch instead of replace."))
			}
		}
	}
	return faults
}

func writable(form keys.Form, key, kind string) bool {
	return slices.ContainsFunc(keys.UserKeys(), func(k keys.Key) bool {
		return k.Name == key && k.Form == form && slices.Contains(k.Kinds, kind)
	})
}

// checkPodMetadata warns of reserved keys in a podTemplate, which are dropped.
// Clients count on that it is no error.
func checkPodMetadata(in Input) []Fault {
	if in.Controller || in.Kind != KindSandbox && in.Kind != KindTemplate {
		return nil
	}
	faults := reservedIn(objectAt(in.Object, "spec", "podTemplate", "metadata"), field.NewPath("spec", "podTemplate", "metadata"))
	for i := range faults {
		faults[i].Warning = true
		faults[i].Detail = "the key is reserved for the controllers and does not reach the Pod"
	}
	return faults
}

// checkVolumeMetadata refuses reserved keys that would reach PersistentVolumeClaims,
// and those that a claim would add to a Pod.
func checkVolumeMetadata(in Input) []Fault {
	if in.Controller {
		return nil
	}
	var faults []Fault
	for i, element := range listAt(in.Object, "spec", "volumeClaimTemplates") {
		template, _ := element.(map[string]any)
		at := field.NewPath("spec", "volumeClaimTemplates").Index(i).Child("metadata")
		faults = append(faults, reservedIn(objectAt(template, "metadata"), at)...)
	}
	if in.Kind == KindClaim {
		faults = append(faults, reservedIn(objectAt(in.Object, "spec", "additionalPodMetadata"), field.NewPath("spec", "additionalPodMetadata"))...)
	}
	return faults
}

func reservedIn(metadata map[string]any, at *field.Path) []Fault {
	var faults []Fault
	for _, form := range forms {
		values := objectAt(metadata, members[form])
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if keys.ReservedInPod(key) {
				value, _ := values[key].(string)
				faults = append(faults, reserved(at.Child(members[form]).Key(key), value, "Remove the key."))
			}
		}
	}
	return faults
}

func reserved(at *field.Path, value, remedy string) Fault {
	return Fault{Rule: RuleReservedMetadata, Error: field.Invalid(at, value, "the key is reserved for the controllers"), Remedy: remedy}
}

// sentence makes a sentence of the text of an error.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
