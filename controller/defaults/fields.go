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
	var path strings.Builder
	path.WriteString(t.field)
	for _, member := range t.path {
		if strings.ContainsAny(member, "./") {
			path.WriteString("[" + member + "]")
			continue
		}
		path.WriteString("." + member)
	}
	return path.String()
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

// isEmptyName reports whether the field is a name without any text, which the
// apiserver takes for none.
func isEmptyName(path []string, value any) bool {
	return value == "" && slices.Contains([]string{fieldRuntimeClass, fieldServiceAccount}, path[len(path)-1])
}

// Names of fields of a Pod.
const (
	fieldRuntimeClass   = "runtimeClassName"
	fieldServiceAccount = "serviceAccountName"
)

// targets lists every field that the tier hardens on this object, set or not, in a
// stable order.
func targets(r Request) []target {
	pod, ok := member(r.Object, "spec", "podTemplate", "spec")
	if !ok {
		return nil
	}
	list := r.ofPod(pod)
	for _, name := range []string{"containers", "initContainers", "ephemeralContainers"} {
		members, _ := pod[name].([]any)
		for i, element := range members {
			container, ok := element.(map[string]any)
			if !ok {
				continue
			}
			index := strconv.Itoa(i)
			at := target{base: container, pointer: podPointer + "/" + name + "/" + index, field: podField + "." + name + "[" + index + "]"}
			if !isWindows(pod) {
				list = append(list, r.ofContainer(at)...)
			}
			if name != "ephemeralContainers" { // these have no resources of their own
				list = append(list, r.ofResources(at, pod)...)
			}
		}
	}
	return list
}

// podPointer and podField are where the Pod is, as a JSON Pointer and as a field path.
const (
	podPointer = "/spec/podTemplate/spec"
	podField   = "spec.podTemplate.spec"
)

// ofPod are the fields of the Pod itself.
func (r Request) ofPod(pod map[string]any) []target {
	var list []target
	add := func(value any, path ...string) {
		list = append(list, target{base: pod, pointer: podPointer, field: podField, path: path, value: value})
	}
	hardening := r.Tier.Hardening
	if hardening.Token.Sets() {
		add(false, "automountServiceAccountToken")
	}
	if hardening.ServiceLinks.Sets() {
		add(false, "enableServiceLinks")
	}
	if accounts := r.Tier.ServiceAccounts; len(accounts) > 0 && !slices.Contains(accounts, "default") && isUnset(pod["serviceAccount"]) {
		add(accounts[0], fieldServiceAccount)
	}
	if isWindows(pod) {
		return list
	}
	class := r.Tier.RuntimeClass.Select(r.RuntimeClasses.Has, r.FreeClasses.Has)
	if class != "" {
		add(class, fieldRuntimeClass)
	}
	if own, _ := pod[fieldRuntimeClass].(string); own != "" {
		class = own
	}
	if entry, _ := r.Tier.RuntimeClass.Class(class); entry.HostUsers != nil && hardening.UserNamespaces.Sets() && !needsHostUsers(pod) {
		add(*entry.HostUsers, "hostUsers")
	}
	if hardening.Seccomp.Sets() {
		add(map[string]any{"type": "RuntimeDefault"}, "securityContext", "seccompProfile")
	}
	return list
}

func isUnset(name any) bool {
	return name == nil || name == ""
}

// needsHostUsers reports whether the apiserver would refuse the Pod with a user
// namespace. The verdict on what it asks for is validation's.
func needsHostUsers(pod map[string]any) bool {
	for _, name := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if pod[name] == true {
			return true
		}
	}
	for _, name := range []string{"containers", "initContainers", "ephemeralContainers"} {
		members, _ := pod[name].([]any)
		for _, element := range members {
			container, _ := element.(map[string]any)
			if devices, _ := container["volumeDevices"].([]any); len(devices) > 0 {
				return true
			}
		}
	}
	return false
}

// ofContainer are the fields of a container that Windows does not know.
func (r Request) ofContainer(container target) []target {
	var list []target
	add := func(value any, path ...string) {
		field := container
		field.path, field.value = append([]string{"securityContext"}, path...), value
		list = append(list, field)
	}
	hardening := r.Tier.Hardening
	if hardening.PrivilegeEscalation.Sets() && !needsEscalation(container.base) {
		add(false, "allowPrivilegeEscalation")
	}
	if drop := r.Tier.DropCapabilities; len(drop) > 0 && hardening.Capabilities.Sets() {
		add(toAny(drop), "capabilities", "drop")
	}
	if hardening.ReadOnlyRoot().Sets() {
		add(true, "readOnlyRootFilesystem")
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
