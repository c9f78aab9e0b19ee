// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/policy"
)

// suspect is a part of a Pod that fails a check: the Pod's spec, or a member of one of its lists.
type suspect struct {
	where place
	check policy.CheckPodFn
	// list is the list of the part, empty for the Pod's spec.
	list string
	raw  map[string]any
	// candidates are the fields that the check may be about.
	candidates []string
}

// atFault are the fields by which the part fails; one without a detail fails by all that the check says.
func (s suspect) atFault(ctx context.Context) []violation {
	var found []violation
	if s.where.apart {
		if found = s.membersAtFault(ctx); len(found) == 0 {
			// Together they fail, alone none does: a part that fails is never passed over.
			found = append(found, violation{value: textOf(s.raw)})
		}
		return found
	}
	for _, field := range presentOf(s.raw, s.candidates) {
		found = append(found, violation{field: field, value: textOf(lookUp(s.raw, field))})
	}
	return found
}

// membersAtFault are the places that fail the check on their own: a change of what stands beside them is no change
// of theirs. What is required is left where it is, since every place would fail without.
func (s suspect) membersAtFault(ctx context.Context) []violation {
	var found []violation
	var required any
	note := func(at spot, result policy.CheckResult) {
		found = append(found, violation{field: at.field, value: textOf(at.value), detail: detailOf(result)})
	}
	at := spot{field: s.where.required}
	if at.field != "" {
		for _, present := range spots(s.raw, at.field) {
			at, required = present, present.alone
		}
	}
	without := s.judge(required)
	if at.field != "" && !without.Allowed {
		note(at, without)
	}
	for _, candidate := range s.candidates {
		for _, at := range spots(s.raw, candidate) {
			if ctx.Err() != nil {
				return found
			}
			if result := s.judge(merged(required, at.alone)); !result.Allowed && detailOf(result) != detailOf(without) {
				note(at, result)
			}
		}
	}
	return found
}

// judge checks a Pod that has nothing but the part, and in it nothing but that and its name. The checks treat the
// lists of containers alike.
func (s suspect) judge(alone any) policy.CheckResult {
	content, _ := alone.(map[string]any)
	if s.list != "" {
		content = map[string]any{"containers": []any{merged(map[string]any{"name": s.raw["name"]}, content)}}
	}
	var spec corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &spec); err != nil {
		return policy.CheckResult{ForbiddenReason: err.Error()}
	}
	return s.check(&metav1.ObjectMeta{}, &spec)
}

// spot is a place that a candidate stands for. Alone is the part with nothing but that.
type spot struct {
	field        string
	value, alone any
}

// spots are the places of a part that a candidate stands for, as far as there is something; list[] is every member
// of the list.
func spots(part any, candidate string) []spot {
	if candidate == "" {
		if part == nil {
			return nil
		}
		return []spot{{value: part, alone: part}}
	}
	step, rest, _ := strings.Cut(candidate, ".")
	name, isList := strings.CutSuffix(step, "[]")
	object, _ := part.(map[string]any)
	var found []spot
	if !isList {
		for _, s := range spots(object[name], rest) {
			found = append(found, s.within(name, map[string]any{name: s.alone}))
		}
		return found
	}
	for i, member := range listAt(object, name) {
		for _, s := range spots(member, rest) {
			found = append(found, s.within(fmt.Sprintf("%s[%d]", name, i), map[string]any{name: []any{s.alone}}))
		}
	}
	return found
}

func (s spot) within(owner string, alone any) spot {
	s.field, s.alone = strings.TrimSuffix(owner+"."+s.field, "."), alone
	return s
}

// merged is what both have; they have no list in common.
func merged(one, other any) any {
	a, ok := one.(map[string]any)
	b, both := other.(map[string]any)
	switch {
	case !both:
		return one
	case !ok:
		return other
	}
	all := maps.Clone(a)
	for field, value := range b {
		all[field] = merged(all[field], value)
		if all[field] == nil {
			all[field] = value
		}
	}
	return all
}
