// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/big"

	"github.com/open-policy-agent/opa/v1/ast"
)

// amounts are the quantities of an object, and what rules want to know of those of its containers.
type amounts struct {
	*converter
	reader *reader
	// base is the field path of the Pod's spec, whose own limits are no container's.
	base fieldPath
	// quantities are by field path; requested is the storage that each volume claim asks for.
	quantities, requested members
	// resources are by the path of who asks, bound and resource. Few rules look at them before something is
	// amiss, so they are made values of Rego when one does.
	resources map[string]any
	// storage is all that is requested.
	storage *big.Int
	// faults are amounts that are no quantity or less than zero.
	faults members
	// limited has, by resource, who has a limit above zero.
	limited map[string][]*ast.Term
	// highest is the most that anybody asks for, by resource.
	highest map[string]quantity
	// The rest is for the totals.
	together, sidecars, init, overhead sums
}

// sums are milli by resource, zero or more.
type sums map[string]*big.Int

// quantity is one that was read.
type quantity struct {
	value *ast.Term
	// milli is zero when it is none; number is the same for rules.
	milli  *big.Int
	number *ast.Term
	valid  bool
}

func newAmounts(r *reader, c *converter, base fieldPath) *amounts {
	return &amounts{
		converter: c, reader: r, base: base, resources: map[string]any{}, limited: map[string][]*ast.Term{}, highest: map[string]quantity{},
		storage: new(big.Int),
	}
}

func (a *amounts) addTo(fields map[string]any) {
	fields["quantities"], fields["requested"], fields["faults"] = objectOf(a.quantities), objectOf(a.requested), objectOf(a.faults)
	fields["resources"] = a.resources
	var limited, highest members
	for resource, owners := range a.limited {
		limited = append(limited, [2]*ast.Term{a.text(resource), a.term(ast.NewSet(owners...))})
	}
	for resource, q := range a.highest {
		highest = append(highest, [2]*ast.Term{a.text(resource), q.number})
	}
	fields["limited"], fields["highest"], fields["totals"] = objectOf(limited), objectOf(highest), objectOf(a.totals())
}

// totals adds up: init containers run one by one beside the sidecars, and before the containers. What the runtime needs
// comes to that.
func (a *amounts) totals() members {
	for resource, most := range a.init {
		a.together.raise(resource, most)
	}
	for _, beside := range []sums{a.sidecars, a.overhead} {
		for resource, sum := range beside {
			a.together.add(resource, sum)
		}
	}
	var totals members
	for resource, milli := range a.together {
		totals = append(totals, [2]*ast.Term{a.text(resource), number(milli)})
	}
	return totals
}

func (s *sums) add(resource string, milli *big.Int) {
	sum := s.of(resource)
	sum.Add(sum, milli)
}

// raise makes it at least so much.
func (s *sums) raise(resource string, milli *big.Int) {
	if sum := s.of(resource); sum.Cmp(milli) < 0 {
		sum.Set(milli)
	}
}

func (s *sums) of(resource string) *big.Int {
	if *s == nil {
		*s = sums{}
	}
	if (*s)[resource] == nil {
		(*s)[resource] = new(big.Int)
	}
	return (*s)[resource]
}

// add reads one quantity.
func (a *amounts) add(path fieldPath, written any) quantity {
	read := ofText(a.reader.quantities, writtenText(written))
	a.quantities = append(a.quantities, [2]*ast.Term{path.term, read.value})
	return read
}

// of reads the quantities of one mapping, and has each visited.
func (a *amounts) of(path fieldPath, written any, visit func(name string, q quantity)) {
	object, _ := written.(map[string]any)
	for name, value := range object {
		if value != nil {
			visit(name, a.add(a.reader.path(path.text, ".", name), value))
		}
	}
}

var boundNames = []string{"limits", "requests"}

// ofBounds reads the limits and requests of a container or of the Pod, and has each visited.
func (a *amounts) ofBounds(path fieldPath, owner map[string]any, visit func(resource string, q quantity)) {
	resources, read := objectAt(owner, "resources"), make(map[string]any, len(boundNames))
	a.resources[path.text] = read
	for _, bound := range boundNames {
		named := make(map[string]any, len(objectAt(resources, bound)))
		read[bound] = named
		a.of(a.reader.path(path.text, ".resources.", bound), resources[bound], func(resource string, q quantity) {
			named[resource] = q.value.Value
			if most, ok := a.highest[resource]; !ok || most.milli.Cmp(q.milli) < 0 {
				a.highest[resource] = q
			}
			a.judge(path, bound, resource, q)
			visit(resource, q)
		})
	}
}

// ofClaim reads the amounts of a volume claim.
func (a *amounts) ofClaim(path fieldPath, spec map[string]any) {
	storage := notQuantity
	for _, bound := range boundNames {
		a.of(a.reader.path(path.text, ".resources.", bound), objectAt(spec, "resources")[bound], func(resource string, q quantity) {
			if bound == "requests" && resource == "storage" {
				storage = q
			}
		})
	}
	a.requested = append(a.requested, [2]*ast.Term{path.term, storage.number})
	a.storage.Add(a.storage, storage.milli)
}

// uncounted is for amounts that do not add up with others.
func uncounted(string, quantity) {}

// judge notes the faults of an amount, and that it is a limit.
func (a *amounts) judge(path fieldPath, bound, resource string, q quantity) {
	reason := ""
	switch {
	case !q.valid:
		reason = notQuantityReason
	case q.milli.Sign() < 0:
		reason = "is less than zero"
	case q.milli.Sign() > 0 && bound == "limits":
		a.limited[resource] = append(a.limited[resource], path.term)
	}
	if reason == "" {
		return
	}
	field := a.reader.path(path.text, ".resources.", bound, "."+resource)
	a.faults = append(a.faults, [2]*ast.Term{field.term, ast.ObjectTerm(
		ast.Item(ast.InternedTerm("owner"), path.term), ast.Item(ast.InternedTerm("bound"), a.text(bound)),
		ast.Item(ast.InternedTerm("resource"), a.text(resource)), ast.Item(ast.InternedTerm("reason"), a.text(reason)),
	)})
}

// ofContainer reads the amounts of a container, and adds to the totals what it may use: its limits, and what it requests
// where that is more or there is no limit.
func (a *amounts) ofContainer(list string, path fieldPath, container map[string]any) {
	if list == ephemeralContainers {
		a.ofBounds(path, container, uncounted)
		return
	}
	uses := map[string]*big.Int{}
	a.ofBounds(path, container, func(resource string, q quantity) {
		if most := uses[resource]; most == nil || most.Cmp(q.milli) < 0 {
			uses[resource] = atLeastNothing(q.milli)
		}
	})
	for resource, most := range uses {
		switch {
		case list != "initContainers":
			a.together.add(resource, most)
		case container["restartPolicy"] == "Always":
			a.sidecars.add(resource, most)
		default:
			a.init.raise(resource, most)
		}
	}
}

// ofOverhead reads what the runtime needs for the Pod.
func (a *amounts) ofOverhead(path fieldPath, overhead any) {
	a.of(path, overhead, func(resource string, q quantity) { a.overhead.add(resource, atLeastNothing(q.milli)) })
}

var nothing = new(big.Int)

func atLeastNothing(milli *big.Int) *big.Int {
	if milli.Sign() < 0 {
		return nothing
	}
	return milli
}
