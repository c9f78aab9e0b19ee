// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"math/big"

	"github.com/open-policy-agent/opa/v1/ast"
)

// amounts are the quantities of an object, and what rules want to know of those of its containers.
type amounts struct {
	reader *reader
	// base is the field path of the Pod's spec, whose own limits are no container's.
	base string
	// quantities are by field path; resources are by the path of who asks, bound and resource.
	quantities, resources map[string]any
	// faults are amounts that are no quantity or less than zero.
	faults map[string]any
	// limited has, by resource, who has a limit above zero.
	limited map[string]any
	// highest is the most that anybody asks for, by resource; the rest is for the totals.
	highest, together, sidecars, init sums
}

// sums are milli by resource.
type sums map[string]*big.Int

// quantity is one that was read.
type quantity struct {
	value ast.Value
	// milli is zero when it is none.
	milli *big.Int
	valid bool
}

func newAmounts(r *reader, base string) *amounts {
	return &amounts{
		reader: r, base: base, quantities: map[string]any{}, resources: map[string]any{}, faults: map[string]any{},
		limited: map[string]any{}, highest: sums{}, together: sums{}, sidecars: sums{}, init: sums{},
	}
}

func (a *amounts) addTo(fields map[string]any) {
	fields["quantities"], fields["resources"], fields["faults"], fields["limited"] = a.quantities, a.resources, a.faults, a.limited
	fields["highest"] = a.highest.document()
	// Init containers run one by one beside the sidecars, and before the containers.
	totals := a.together
	for resource, most := range a.init {
		totals.raise(resource, most)
	}
	for resource, sum := range a.sidecars {
		totals.add(resource, sum)
	}
	fields["totals"] = totals.document()
}

func (s sums) document() map[string]any {
	document := make(map[string]any, len(s))
	for resource, milli := range s {
		document[resource] = json.Number(milli.String())
	}
	return document
}

func (s sums) add(resource string, milli *big.Int) {
	if s[resource] == nil {
		s[resource] = new(big.Int)
	}
	s[resource].Add(s[resource], milli)
}

// raise makes it at least so much.
func (s sums) raise(resource string, milli *big.Int) {
	if s[resource] == nil || s[resource].Cmp(milli) < 0 {
		s[resource] = new(big.Int).Set(milli)
	}
}

// add reads one quantity.
func (a *amounts) add(path string, written any) quantity {
	read := ofText(a.reader.quantities, writtenText(written))
	a.quantities[path] = read.value
	return read
}

// of reads the quantities of one mapping and returns them by name.
func (a *amounts) of(path string, written any) map[string]quantity {
	object, _ := written.(map[string]any)
	named := make(map[string]quantity, len(object))
	for name, value := range object {
		if value != nil {
			named[name] = a.add(a.reader.path(path, ".", name), value)
		}
	}
	return named
}

var boundNames = []string{"limits", "requests"}

// ofBounds reads the limits and requests of a container or of the Pod, and returns the limits.
func (a *amounts) ofBounds(path string, owner map[string]any) (limits map[string]quantity) {
	resources, found := objectAt(owner, "resources"), make(map[string]any, len(boundNames))
	for _, bound := range boundNames {
		field := a.reader.path(path, ".resources.", bound)
		amounts := a.of(field, resources[bound])
		document := make(map[string]any, len(amounts))
		for resource, q := range amounts {
			document[resource] = q.value
			a.highest.raise(resource, q.milli)
			a.judge(path, bound, resource, q)
		}
		if found[bound] = document; bound == "limits" {
			limits = amounts
		}
	}
	a.resources[path] = found
	return limits
}

// judge notes the faults of an amount, and that it is a limit.
func (a *amounts) judge(path, bound, resource string, q quantity) {
	reason := ""
	switch {
	case !q.valid:
		reason = notQuantityReason
	case q.milli.Sign() < 0:
		reason = "is less than zero"
	case q.milli.Sign() > 0 && bound == "limits":
		owners, ok := a.limited[resource].(map[string]any)
		if !ok {
			owners = map[string]any{}
			a.limited[resource] = owners
		}
		owners[path] = true
	}
	if reason != "" {
		a.faults[a.reader.path(path, ".resources.", bound, "."+resource)] = map[string]any{
			"owner": path, "bound": bound, "resource": resource, "reason": reason,
		}
	}
}

// ofContainer reads the amounts of a container, and adds its limits to the totals.
func (a *amounts) ofContainer(list, path string, container map[string]any) {
	limits := a.ofBounds(path, container)
	if list == "ephemeralContainers" {
		return
	}
	for resource, q := range limits {
		switch {
		case list != "initContainers":
			a.together.add(resource, q.milli)
		case container["restartPolicy"] == "Always":
			a.sidecars.add(resource, q.milli)
		default:
			a.init.raise(resource, q.milli)
		}
		a.together.raise(resource, nothing)
	}
}

var nothing = new(big.Int)
