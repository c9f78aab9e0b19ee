// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"reflect"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// reader converts inputs. What it reads of texts it remembers.
type reader struct {
	quantities, images *termCache
}

func newReader() *reader {
	return &reader{quantities: newTermCache(quantityTerm), images: newTermCache(imageTerm)}
}

// defaultPodPath is where the Pod stands when the input does not say.
const defaultPodPath = "spec.podTemplate"

// inputValue converts the input once for all rules. What is not given is absent, not null.
func (r *reader) inputValue(in Input) (ast.Value, error) {
	if in.PodPath == "" {
		in.PodPath = defaultPodPath
	}
	c := &converter{pairs: make([][2]*ast.Term, 0, termBlock)}
	groups := make([]*ast.Term, len(in.User.Groups))
	for i, group := range in.User.Groups {
		groups[i] = c.text(group)
	}
	fields := map[string]any{
		"operation": in.Operation,
		"kind":      in.Kind,
		"source":    in.Source,
		"now":       in.Now.UTC().Format(time.RFC3339Nano),
		"pod_path":  in.PodPath,
		"tier_name": in.TierName,
		"user": map[string]any{
			"username": in.User.Username, "uid": in.User.UID, "groups": c.term(ast.NewArray(groups...)),
		},
		"namespace": map[string]any{
			"name": in.Namespace.Name, "labels": in.Namespace.Labels, "annotations": in.Namespace.Annotations,
		},
	}
	object := in.Object
	pod := ast.InternedEmptyObject
	if in.Pod != nil {
		var err error
		if pod, err = c.object(in.Pod); err != nil {
			return nil, err
		}
		fields["pod"], object = pod, sharing(object, in.Pod, pod)
	}
	for name, document := range map[string]map[string]any{
		"old_object": in.OldObject, "template": in.Template,
		"pool": in.Pool, "tier": in.Tier, "environment": in.Environment,
	} {
		if document != nil {
			fields[name] = document
		}
	}
	facts := newFacts(r, c, in.PodPath)
	facts.ofPod(pod.Value)
	if object != nil {
		converted, err := c.object(object)
		if err != nil {
			return nil, err
		}
		fields["object"] = converted
		facts.ofClaims(converted.Value)
	}
	facts.addTo(fields)
	value, err := c.object(fields)
	if err != nil {
		return nil, err
	}
	return value.Value, nil
}

// sharing returns the object with its Pod template replaced by the converted Pod if the two are one
// and the same map, as they are for a Sandbox and a SandboxTemplate: it need not be converted twice.
func sharing(object, pod map[string]any, converted *ast.Term) map[string]any {
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
