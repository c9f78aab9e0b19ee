// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strings"
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
	for name, document := range map[string]map[string]any{
		"object": in.Object, "old_object": in.OldObject, "pod": in.Pod, "template": in.Template,
		"pool": in.Pool, "tier": in.Tier, "environment": in.Environment,
	} {
		if document != nil {
			fields[name] = document
		}
	}
	return ast.InterfaceToValue(fields)
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
			amounts(found, fmt.Sprintf("%s.%s[%d].resources", base, containers, i), objectAt(c, "resources"))
		}
	}
	for i, v := range listAt(spec, "volumes") {
		path := fmt.Sprintf("%s.volumes[%d]", base, i)
		if limit, ok := objectAt(v, "emptyDir")["sizeLimit"]; ok {
			found[path+".emptyDir.sizeLimit"] = quantity(limit)
		}
		claim := objectAt(objectAt(objectAt(v, "ephemeral"), "volumeClaimTemplate"), "spec")
		amounts(found, path+".ephemeral.volumeClaimTemplate.spec.resources", claim["resources"])
	}
	for i, t := range listAt(objectAt(in.Object, "spec"), "volumeClaimTemplates") {
		amounts(found, fmt.Sprintf("spec.volumeClaimTemplates[%d].spec.resources", i), objectAt(objectAt(t, "spec"), "resources"))
	}
	return found
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
			found[strings.Join([]string{path, name}, ".")] = quantity(value)
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
