// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// endOf is where the end of the life of a kind is written.
var endOf = map[string][]string{
	KindSandbox: {"spec", "shutdownTime"},
	KindClaim:   {"spec", "lifecycle", "shutdownTime"},
}

// checkLifetime wants an end within the longest lifetime of the tier. It is never set
// for the tenant: a time that he did not choose would end his work without a word. A
// Sandbox that belongs to a claim or a pool ends with it, and need not say when. A tier
// that was tightened keeps nobody from ending what is there, at once or earlier than before.
func checkLifetime(in Input) []Fault {
	most := in.Tier.MaxLifetime.Duration
	path, bounded := endOf[in.Kind]
	if !bounded || !in.TierKnown || most <= 0 || in.Controller {
		return nil
	}
	text := textAt(in.Object, path...)
	if text == "" && slices.ContainsFunc(listAt(in.Object, "metadata", "ownerReferences"), isOurs) {
		return nil
	}
	latest := in.begun().Add(most)
	if end, err := time.Parse(time.RFC3339, text); err == nil && (!end.After(latest) || !end.After(in.Now) || in.shortens(path, end)) {
		return nil
	}
	problem := fmt.Sprintf("tier %q ends everything at most %s after it began", in.TierName, most)
	if text == "" {
		problem += ", so an end has to be set"
	}
	return []Fault{{
		Rule: RuleLifetime, Error: field.Invalid(field.NewPath(strings.Join(path, ".")), text, problem),
		Remedy: "Set it to " + latest.UTC().Format(time.RFC3339) + " or earlier.",
	}}
}

// shortens says whether an update moves the end of the object closer, or leaves it. What never
// ended, or when nobody can read, ends earlier at any time.
func (in Input) shortens(path []string, end time.Time) bool {
	before, err := time.Parse(time.RFC3339, textAt(in.OldObject, path...))
	return in.Operation == operationUpdate && (err != nil || !end.After(before))
}

// begun is when the object was created, as the stored one says: what a new one says of
// itself is the tenant's to write.
func (in Input) begun() time.Time {
	created, err := time.Parse(time.RFC3339, textAt(in.OldObject, "metadata", "creationTimestamp"))
	if err != nil {
		return in.Now
	}
	return created
}
