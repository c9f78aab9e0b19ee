// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"reflect"
	"strconv"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// inputValue converts the input once for all rules. What is not given is absent, not null.
func inputValue(in Input) (ast.Value, error) {
	fields := map[string]any{
		"operation": in.Operation,
		"kind":      in.Kind,
		"source":    in.Source,
		"now":       in.Now.UTC().Format(time.RFC3339Nano),
		"pod_path":  in.PodPath,
		"tier_name": in.TierName,
		"user": map[string]any{
			"username": in.User.Username, "uid": in.User.UID, "groups": append([]string{}, in.User.Groups...),
		},
		"namespace": map[string]any{
			"name": in.Namespace.Name, "labels": notNil(in.Namespace.Labels), "annotations": notNil(in.Namespace.Annotations),
		},
		"quantities": quantities(in),
	}
	object := in.Object
	if in.Pod != nil {
		pod, err := ast.InterfaceToValue(in.Pod)
		if err != nil {
			return nil, err
		}
		fields["pod"], object = pod, sharing(object, in.Pod, pod)
	}
	for name, document := range map[string]map[string]any{
		"object": object, "old_object": in.OldObject, "template": in.Template,
		"pool": in.Pool, "tier": in.Tier, "environment": in.Environment,
	} {
		if document != nil {
			fields[name] = document
		}
	}
	return ast.InterfaceToValue(fields)
}

// sharing returns the object with its Pod template replaced by the converted Pod if the two are one
// and the same map, as they are for a Sandbox and a SandboxTemplate: it need not be converted twice.
func sharing(object, pod map[string]any, converted ast.Value) map[string]any {
	spec := objectAt(object, "spec")
	template := objectAt(spec, "podTemplate")
	if template == nil || reflect.ValueOf(template).Pointer() != reflect.ValueOf(pod).Pointer() {
		return object
	}
	spec = maps.Clone(spec)
	spec["podTemplate"] = converted
	object = maps.Clone(object)
	object["spec"] = spec
	return object
}

func notNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// quantities reads the amounts of the Pod and of the object's volume claims as Kubernetes does,
// by field path, so that rules compare whole numbers.
func quantities(in Input) map[string]any {
	found := map[string]any{}
	spec := objectAt(in.Pod, "spec")
	base := in.PodPath + ".spec"
	amounts(found, base+".resources", spec["resources"])
	each(found, base+".overhead", spec["overhead"])
	for _, containers := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for i, c := range listAt(spec, containers) {
			amounts(found, member(base, containers, i)+".resources", objectAt(c, "resources"))
		}
	}
	for i, v := range listAt(spec, "volumes") {
		path := member(base, "volumes", i)
		if limit, ok := objectAt(v, "emptyDir")["sizeLimit"]; ok {
			found[path+".emptyDir.sizeLimit"] = quantity(limit)
		}
		claim := objectAt(objectAt(objectAt(v, "ephemeral"), "volumeClaimTemplate"), "spec")
		amounts(found, path+".ephemeral.volumeClaimTemplate.spec.resources", claim["resources"])
	}
	for i, t := range listAt(objectAt(in.Object, "spec"), "volumeClaimTemplates") {
		amounts(found, member("spec", "volumeClaimTemplates", i)+".spec.resources", objectAt(objectAt(t, "spec"), "resources"))
	}
	return found
}

func member(path, list string, index int) string {
	return path + "." + list + "[" + strconv.Itoa(index) + "]"
}

func amounts(found map[string]any, path string, resources any) {
	for _, bound := range []string{"limits", "requests"} {
		each(found, path+"."+bound, objectAt(resources, bound))
	}
}

func each(found map[string]any, path string, values any) {
	object, _ := values.(map[string]any)
	for name, value := range object {
		if value != nil {
			found[path+"."+name] = quantity(value)
		}
	}
}

func objectAt(document any, key string) map[string]any {
	object, _ := document.(map[string]any)
	member, _ := object[key].(map[string]any)
	return member
}

func listAt(document any, key string) []any {
	object, _ := document.(map[string]any)
	members, _ := object[key].([]any)
	return members
}
