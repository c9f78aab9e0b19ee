// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package effective

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Injection policies of a template.
const (
	policyAllowed   = "Allowed"
	policyOverrides = "Overrides"
)

// merge puts what a claim brings into a copy of its template's Pod.
type merge struct {
	// claim and template are the specs.
	claim, template map[string]any
	errs            field.ErrorList
}

// policy reads an injection policy; anything else than the two that permit is
// Disallowed.
func (m *merge) policy(name string) string {
	policy, _ := m.template[name].(string)
	return policy
}

// metadata adds the claim's labels and annotations. The template's values stand.
func (m *merge) metadata(pod map[string]any) {
	for _, form := range []string{"labels", "annotations"} {
		added := objectAt(m.claim, "additionalPodMetadata", form)
		at := field.NewPath("spec", "additionalPodMetadata", form)
		for _, key := range slices.Sorted(maps.Keys(added)) {
			if keys.ReservedInPod(key) {
				m.errs = append(m.errs, field.Forbidden(at.Key(key), "the key is written by the controllers only: remove it"))
				continue
			}
			target := ensure(ensure(pod, "metadata"), form)
			if present, ok := target[key]; ok && !reflect.DeepEqual(present, added[key]) {
				// Who makes claims may not be allowed to read templates: the value stays untold.
				m.errs = append(m.errs, field.Invalid(at.Key(key), added[key], "the template sets the key to another value: remove it from the claim"))
				continue
			}
			target[key] = added[key]
		}
	}
}

// environment adds the claim's variables. Values never appear in errors.
func (m *merge) environment(pod map[string]any) {
	variables, _ := m.claim["env"].([]any)
	if len(variables) == 0 {
		return
	}
	at := field.NewPath("spec", "env")
	policy := m.policy("envVarsInjectionPolicy")
	if policy != policyAllowed && policy != policyOverrides {
		m.errs = append(m.errs, field.Forbidden(at,
			"the template does not let claims set variables: remove them, or ask for a template whose envVarsInjectionPolicy is Allowed"))
		return
	}
	spec := objectAt(pod, "spec")
	sourced := containersWithEnvFrom(spec)
	for i, element := range variables {
		variable, ok := element.(map[string]any)
		if !ok {
			continue
		}
		container, err := targetContainer(spec, variable, at.Index(i))
		if err != nil {
			m.errs = append(m.errs, err)
			continue
		}
		name, _ := container["name"].(string)
		if policy == policyAllowed && sourced[name] {
			m.errs = append(m.errs, field.Forbidden(at.Index(i), fmt.Sprintf(
				"container %q takes variables from envFrom, so that an override cannot be excluded: remove the variable", name)))
			continue
		}
		if err := setVariable(container, variable, policy, at.Index(i)); err != nil {
			m.errs = append(m.errs, err)
		}
	}
}

func containersWithEnvFrom(spec map[string]any) map[string]bool {
	found := map[string]bool{}
	for container := range containers(spec) {
		if list, _ := container["envFrom"].([]any); len(list) > 0 {
			name, _ := container["name"].(string)
			found[name] = true
		}
	}
	return found
}

// containers yields the containers and init containers.
func containers(spec map[string]any) func(func(map[string]any) bool) {
	return func(yield func(map[string]any) bool) {
		for _, list := range []string{"containers", "initContainers"} {
			members, _ := spec[list].([]any)
			for _, element := range members {
				if container, ok := element.(map[string]any); ok && !yield(container) {
					return
				}
			}
		}
	}
}

func targetContainer(spec, variable map[string]any, at *field.Path) (map[string]any, *field.Error) {
	wanted, _ := variable["containerName"].(string)
	var names []string
	for container := range containers(spec) {
		name, _ := container["name"].(string)
		if wanted == "" || name == wanted {
			return container, nil
		}
		names = append(names, name)
	}
	return nil, field.NotSupported(at.Child("containerName"), wanted, names)
}

func setVariable(container, variable map[string]any, policy string, at *field.Path) *field.Error {
	variables, _ := container["env"].([]any)
	value := withoutKeys(variable, "containerName")
	index := indexByName(variables, variableName(variable), variableName)
	switch {
	case index < 0:
		container["env"] = append(variables, value)
	case policy == policyOverrides:
		variables[index] = value
	default:
		return field.Duplicate(at.Child("name"), variable["name"])
	}
	return nil
}

func variableName(variable map[string]any) string {
	name, _ := variable["name"].(string)
	return name
}

func claimName(template map[string]any) string {
	name, _ := objectAt(template, "metadata")["name"].(string)
	return name
}

// indexByName finds the member of a list that has the name, or -1.
func indexByName(list []any, name string, nameOf func(map[string]any) string) int {
	return slices.IndexFunc(list, func(element any) bool {
		object, ok := element.(map[string]any)
		return ok && nameOf(object) == name
	})
}

// volumes merges the claim's volume claim templates into those of the template.
func (m *merge) volumes(present []any) []any {
	added, _ := m.claim["volumeClaimTemplates"].([]any)
	if len(added) == 0 {
		return present
	}
	at := field.NewPath("spec", "volumeClaimTemplates")
	policy := m.policy("volumeClaimTemplatesPolicy")
	if policy != policyAllowed && policy != policyOverrides {
		m.errs = append(m.errs, field.Forbidden(at,
			"the template does not let claims bring volumes: remove them, or ask for a template whose volumeClaimTemplatesPolicy is Allowed"))
		return present
	}
	own := map[string]bool{}
	for i, element := range added {
		template, ok := element.(map[string]any)
		if !ok {
			continue
		}
		name := claimName(template)
		index := indexByName(present, name, claimName)
		copied := runtime.DeepCopyJSONValue(template)
		switch {
		case name == "":
			m.errs = append(m.errs, field.Required(at.Index(i).Child("metadata", "name"), "name the volume"))
		case own[name], index >= 0 && policy == policyAllowed:
			m.errs = append(m.errs, field.Duplicate(at.Index(i).Child("metadata", "name"), name))
		case index >= 0:
			present[index] = copied
		default:
			present = append(present, copied)
		}
		own[name] = true
	}
	return present
}
