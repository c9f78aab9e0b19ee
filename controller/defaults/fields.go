// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// target is one field and the value that it gets when it is unset.
type target struct {
	// base is the object that contains the field, pointer its JSON Pointer and field
	// its field path.
	base           map[string]any
	pointer, field string
	// path leads from base to the field, through objects only.
	path  []string
	value any
}

// name is the field path of the target.
func (t target) name() string {
	return t.field + "." + strings.Join(t.path, ".")
}

// state says whether the field is unset, and its value otherwise. A field within
// something that is no object is neither: the schema refuses it later.
func (t target) state() (value any, unset bool) {
	at := t.base
	for _, member := range t.path[:len(t.path)-1] {
		switch next := at[member].(type) {
		case nil:
			return nil, true
		case map[string]any:
			at = next
		default:
			return next, false
		}
	}
	value = at[t.path[len(t.path)-1]]
	return value, value == nil || isEmptyName(t.path, value)
}

// isEmptyName reports whether the field is a RuntimeClass without a name, which the
// apiserver takes for none.
func isEmptyName(path []string, value any) bool {
	return value == "" && path[len(path)-1] == "runtimeClassName"
}

// targets lists every field that the tier hardens on this object, set or not, in a
// stable order.
func targets(r Request) []target {
	pod, ok := member(r.Object, "spec", "podTemplate", "spec")
	if !ok {
		return nil
	}
	const pointer, field = "/spec/podTemplate/spec", "spec.podTemplate.spec"
	list := []target{
		{pod, pointer, field, []string{"automountServiceAccountToken"}, false},
		{pod, pointer, field, []string{"enableServiceLinks"}, false},
	}
	if class := r.Tier.RuntimeClass.Select(r.RuntimeClasses.Has); class != "" {
		list = append(list, target{pod, pointer, field, []string{"runtimeClassName"}, class})
	}
	if isWindows(pod) {
		return list
	}
	list = append(list, target{pod, pointer, field, []string{"securityContext", "seccompProfile"}, map[string]any{"type": "RuntimeDefault"}})
	for _, name := range []string{"containers", "initContainers"} {
		members, _ := pod[name].([]any)
		for i, element := range members {
			container, ok := element.(map[string]any)
			if !ok {
				continue
			}
			index := strconv.Itoa(i)
			at := target{base: container, pointer: pointer + "/" + name + "/" + index, field: field + "." + name + "[" + index + "]"}
			list = append(list, ofContainer(at, r.Tier.DropCapabilities)...)
		}
	}
	return list
}

func ofContainer(at target, drop []string) []target {
	var list []target
	if !needsEscalation(at.base) {
		escalation := at
		escalation.path, escalation.value = []string{"securityContext", "allowPrivilegeEscalation"}, false
		list = append(list, escalation)
	}
	if len(drop) > 0 {
		capabilities := at
		capabilities.path, capabilities.value = []string{"securityContext", "capabilities", "drop"}, toAny(drop)
		list = append(list, capabilities)
	}
	return list
}

// needsEscalation reports whether the apiserver would refuse the container with
// allowPrivilegeEscalation false. The verdict on such a container is validation's.
func needsEscalation(container map[string]any) bool {
	security, _ := member(container, "securityContext")
	capabilities, _ := member(security, "capabilities")
	added, _ := capabilities["add"].([]any)
	return security["privileged"] == true || slices.Contains(added, any("CAP_SYS_ADMIN"))
}

func isWindows(pod map[string]any) bool {
	system, _ := member(pod, "os")
	return system["name"] == "windows"
}

// podTemplateChanged reports whether an update touches the Pod that is run.
func podTemplateChanged(object, old map[string]any) bool {
	spec, _ := member(object, "spec")
	oldSpec, _ := member(old, "spec")
	return !reflect.DeepEqual(spec["podTemplate"], oldSpec["podTemplate"])
}

// member follows a path of objects.
func member(object map[string]any, path ...string) (map[string]any, bool) {
	for _, name := range path {
		next, ok := object[name].(map[string]any)
		if !ok {
			return nil, false
		}
		object = next
	}
	return object, true
}

func toAny(list []string) []any {
	result := make([]any, 0, len(list))
	for _, element := range list {
		result = append(result, element)
	}
	return result
}
