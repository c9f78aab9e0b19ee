// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// reader prepares inputs. What it reads of texts it remembers.
type reader struct {
	quantities *cache[string, quantity]
	images     *cache[string, *ast.Term]
	paths      *cache[[4]string, fieldPath]
}

func newReader() *reader {
	return &reader{
		quantities: newCache(readQuantity),
		images:     newCache(imageTerm),
		paths:      newCache(func(parts [4]string) fieldPath { return newFieldPath(strings.Join(parts[:], "")) }),
	}
}

// path joins parts of field paths: those of one Pod are those of the next.
func (r *reader) path(parts ...string) fieldPath {
	var key [4]string
	copy(key[:], parts)
	for _, part := range parts {
		if len(part) > cacheText {
			return newFieldPath(strings.Join(parts, ""))
		}
	}
	return r.paths.of(key)
}

func newFieldPath(text string) fieldPath {
	return fieldPath{text: text, term: ast.StringTerm(text)}
}

// defaultPodPath is where the Pod stands when the input does not say.
const defaultPodPath = "spec.podTemplate"

// inputFields are the members of the input of all rules. Except for the Pod, values of Rego are made of them as
// rules ask for them: most of an object no rule ever looks at. What is not given is absent, not null.
func (r *reader) inputFields(in Input) (map[string]any, error) {
	if in.PodPath == "" {
		in.PodPath = defaultPodPath
	}
	facts, err := r.factsOf(in)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]any, maxInputFields)
	fields["operation"], fields["kind"], fields["source"] = in.Operation, in.Kind, in.Source
	fields["pod_path"], fields["tier_name"] = in.PodPath, in.TierName
	fields["user"] = map[string]any{"username": in.User.Username, "uid": in.User.UID, "groups": in.User.Groups}
	fields["namespace"] = map[string]any{
		"name": in.Namespace.Name, "labels": in.Namespace.Labels, "annotations": in.Namespace.Annotations,
	}
	for name, document := range map[string]map[string]any{
		"object": in.Object, "old_object": in.OldObject, "template": in.Template, "pool": in.Pool,
		"tier": in.Tier, "environment": in.Environment,
	} {
		if document != nil {
			fields[name] = document
		}
	}
	if in.Pod != nil {
		fields["pod"] = facts.pod.Value
	}
	facts.addTo(fields)
	return fields, nil
}

// maxInputFields is how many members an input has at most.
const maxInputFields = 25

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

// moment is the time as rules read it. It notes when one does.
type moment struct {
	at   time.Time
	seen *atomic.Bool
}

// MarshalJSON is called when a rule reads the time.
func (m moment) MarshalJSON() ([]byte, error) {
	m.seen.Store(true)
	return json.Marshal(m.at.UTC().Format(time.RFC3339Nano))
}
