// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// variant is what the rules are in the namespaces that some overrides select.
type variant struct {
	enforcement map[string]Enforcement
	parameters  ast.Object
	// known are the quantities among the parameters, by their text.
	known ast.Object
}

// variantOf returns the variant for a namespace. Those that no request has asked for are made when one does.
func (s *set) variantOf(namespace NamespaceInfo) (*variant, error) {
	var selected uint64
	for i, o := range s.overrides {
		if o.selects(namespace) {
			selected |= 1 << i
		}
	}
	if known, ok := s.variants.Load(selected); ok {
		return known.(*variant), nil
	}
	made, err := s.makeVariant(selected)
	if err != nil {
		return nil, err
	}
	s.variants.Store(selected, made)
	return made, nil
}

// makeVariant applies overrides to the configuration of the environment, in order.
func (s *set) makeVariant(selected uint64) (*variant, error) {
	v := &variant{enforcement: map[string]Enforcement{}}
	parameters := map[string]any{}
	for id, r := range s.rules {
		own := r.info.Parameters
		v.enforcement[id] = r.info.Enforcement
		for i, o := range s.overrides {
			given, ok := o.Rules[id]
			if !ok || selected&(1<<i) == 0 {
				continue
			}
			if given.Enforcement != "" {
				v.enforcement[id] = given.Enforcement
			}
			own = mergeParameters(own, given.Parameters)
		}
		if r.lacksEntry(v.enforcement[id], own) {
			return nil, fmt.Errorf("rule %s is %s but the overrides of this namespace together leave no entry in %s; leave one, or set enforcement to Off",
				id, v.enforcement[id], list(r.info.AtLeastOne))
		}
		parameters[id] = own
	}
	document, err := throughJSON(parameters)
	if err != nil {
		return nil, fmt.Errorf("read the parameters: %w", err)
	}
	value, err := ast.InterfaceToValue(document)
	if err != nil {
		return nil, fmt.Errorf("read the parameters: %w", err)
	}
	v.parameters, _ = value.(ast.Object)
	quantities, mappings := ast.NewObject(), ast.NewObject()
	collectQuantities(ast.NewTerm(value), quantities, mappings)
	v.known = ast.NewObject(
		ast.Item(ast.StringTerm("quantities"), ast.NewTerm(quantities)), ast.Item(ast.StringTerm("mappings"), ast.NewTerm(mappings)),
	)
	return v, nil
}

// collectQuantities adds what of the document is text and a quantity, and the numbers of mappings to text.
func collectQuantities(document *ast.Term, quantities, mappings ast.Object) {
	switch d := document.Value.(type) {
	case ast.String:
		if q := readQuantity(string(d)); q.valid {
			quantities.Insert(document, q.value)
		}
	case *ast.Array:
		d.Foreach(func(member *ast.Term) { collectQuantities(member, quantities, mappings) })
	case ast.Object:
		var milli members
		d.Foreach(func(name, member *ast.Term) {
			collectQuantities(member, quantities, mappings)
			if text, ok := member.Value.(ast.String); ok {
				milli = append(milli, [2]*ast.Term{name, readQuantity(string(text)).number})
			}
		})
		if len(milli) > 0 {
			mappings.Insert(document, ast.NewTerm(ast.NewObject(milli...)))
		}
	}
}

// everOn says whether the rule is on anywhere.
func (s *set) everOn(r *rule) bool {
	return r.info.Enforcement != Off || slices.ContainsFunc(s.overrides, func(o Override) bool {
		given := o.Rules[r.info.ID].Enforcement
		return given != "" && given != Off
	})
}
