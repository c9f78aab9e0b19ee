// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/validation"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Change is how much of a spec an update changes.
type Change int

// Changes of a spec: none; of nothing but when and how the object ends; and any other.
const (
	ChangesNothing Change = iota
	ChangesEnd
	ChangesSpec
)

// excuses says whether a change cannot have brought in that a rule fails, or that there is more than is listed.
func (c Change) excuses(f engine.Finding) bool {
	return c == ChangesNothing || c == ChangesEnd && (f.Rule == validation.RuleTier || f.Omits > 0)
}

// mostAlike is how many old findings of one identity are asked whether they excuse a new one that is not the same: each
// would be compared with each.
const mostAlike = 100

// Ratchet splits the findings of an update into those that the change brings in and
// those that the object had before. A finding is the same if rule, place and value
// are, whereby names tell the members of a list apart, not their order; one that has neither place
// nor value is its message. Of its content it may have lost some, and an amount may be
// smaller, whatever the value. Each old finding excuses one new one only. The failure of a
// rule is no finding about the object, and what is not listed is nobody's, so they excuse
// nothing once the spec changed. Neither does a tier that nobody knows, unless the change is
// only about the end. A rule that had no time to judge what was before excuses nothing, and what
// it finds now is not known to be new: that is late as well.
func Ratchet(now, before Judgement, change Change) (brought, tolerated []engine.Finding) {
	old, late := map[string][]engine.Finding{}, sets.New[string]()
	for _, f := range before.Findings {
		if f.Late {
			late.Insert(f.Rule)
		}
		if !f.Failure && f.Omits == 0 || !f.Late && change.excuses(f) {
			id := identity(f, before.Document)
			old[id] = append(old[id], f)
		}
	}
	// What is as it was goes first, so that it is not left without an excuse that fits others as well.
	changed := make([]engine.Finding, 0, len(now.Findings))
	for _, f := range now.Findings {
		id := identity(f, now.Document)
		same := slices.IndexFunc(old[id], func(o engine.Finding) bool { return o.Content == f.Content && o.Amount == f.Amount })
		if same < 0 {
			changed = append(changed, f)
			continue
		}
		old[id] = slices.Delete(old[id], same, same+1)
		tolerated = append(tolerated, f)
	}
	for _, f := range changed {
		id := identity(f, now.Document)
		if i := excuse(old[id], f); i >= 0 {
			old[id] = slices.Delete(old[id], i, i+1)
			tolerated = append(tolerated, f)
			continue
		}
		f.Late = f.Late || late.Has(f.Rule)
		brought = append(brought, f)
	}
	return brought, tolerated
}

// excuse returns which of the old findings excuses the new one, the least of those that do; -1 when none does.
func excuse(old []engine.Finding, f engine.Finding) int {
	found := -1
	for i, candidate := range old[:min(len(old), mostAlike)] {
		if candidate.Amount < f.Amount || !contains(candidate.Content, f.Content) {
			continue
		}
		if found < 0 || cmp.Or(cmp.Compare(candidate.Amount, old[found].Amount), cmp.Compare(len(candidate.Content), len(old[found].Content))) < 0 {
			found = i
		}
	}
	return found
}

// contains says whether content has each part of another. The parts of both are in order.
func contains(content, other string) bool {
	for part := range strings.FieldsSeq(other) {
		have := ""
		for more := true; have < part && more; {
			have, content, more = strings.Cut(content, " ")
		}
		if have != part {
			return false
		}
	}
	return true
}

// identity is what a finding has in common with those that may excuse it.
func identity(f engine.Finding, document map[string]any) string {
	switch {
	case f.Amount > 0:
		return strings.Join([]string{f.Rule, named(f.Field, document), "amount"}, "\x00")
	case f.Field == "" && f.Value == "":
		return strings.Join([]string{f.Rule, "", "", f.Message}, "\x00")
	default:
		return strings.Join([]string{f.Rule, named(f.Field, document), f.Value}, "\x00")
	}
}

// named replaces the indexes of a field path by the names of the members, as far as
// the members have names.
func named(path string, document map[string]any) string {
	var result strings.Builder
	var at any = document
	for _, token := range tokens(path) {
		index, err := strconv.Atoi(strings.Trim(token, "[]"))
		list, isList := at.([]any)
		switch {
		case strings.HasPrefix(token, "[") && err == nil && isList && index >= 0 && index < len(list):
			at = list[index]
			result.WriteString("[" + nameOf(at) + "]")
		case strings.HasPrefix(token, "["):
			at = nil
			result.WriteString(token)
		default:
			object, _ := at.(map[string]any)
			at = object[token]
			result.WriteString("." + token)
		}
	}
	return result.String()
}

// tokens splits spec.list[0].map[a.b/c] into members and brackets.
func tokens(path string) []string {
	var list []string
	for path != "" {
		end := strings.IndexAny(path[1:], ".[") + 1
		switch path[0] {
		case '.':
			path = path[1:]
			continue
		case '[':
			end = strings.IndexByte(path, ']') + 1
		}
		if end == 0 {
			end = len(path)
		}
		list, path = append(list, path[:end]), path[end:]
	}
	return list
}

// nameOf is the name of a member of a list; empty for a member without.
func nameOf(member any) string {
	object, _ := member.(map[string]any)
	if name := textAt(object, "name"); name != "" {
		return name
	}
	return textAt(object, "metadata", "name")
}
