// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The rules of a kind are evaluated as one: a set of pairs, the number of a column and a finding of it. What
// a rule costs that finds nothing is then its own conditions, without the bookkeeping of a document for each.
const (
	togetherRoot = "together"
	togetherRule = "found"
)

// togetherModule puts the entry points of the columns into one rule. It takes them as the compiler left them, so that
// they mean the same in another package.
func togetherModule(kind string, columns []column, ways shortcuts) (*ast.Module, error) {
	module := &ast.Module{Package: &ast.Package{
		Path: ast.Ref{ast.DefaultRootDocument, ast.StringTerm(togetherRoot), ast.StringTerm(kind)},
	}}
	for i, c := range columns {
		for _, r := range c.rule.compiled.Rules {
			if r.Head.Ref()[0].Value.Compare(ast.Var(c.entry)) != 0 {
				continue
			}
			own, err := ways.take(r.Copy())
			if err != nil {
				return nil, err
			}
			head := ast.RefHead(ast.Ref{ast.VarTerm(togetherRule)})
			head.Key = ast.ArrayTerm(ast.InternedTerm(i), own.Head.Key)
			head.Location, own.Head, own.Module, own.Annotations = own.Head.Location, head, module, nil
			module.Rules = append(module.Rules, own)
		}
	}
	return module, nil
}

// compileTogether compiles the helpers, each rule by itself, and the rules of every kind as one.
func compileTogether(helpers map[string]*ast.Module, rules map[string]*rule, columns map[string][]column) (*ast.Compiler, error) {
	modules, ways := maps.Clone(helpers), findShortcuts(helpers)
	for _, r := range rules {
		modules[r.file()] = r.module
	}
	for _, kind := range slices.Sorted(maps.Keys(columns)) {
		m, err := togetherModule(kind, columns[kind], ways)
		if err != nil {
			return nil, err
		}
		if len(m.Rules) > 0 {
			modules[togetherRoot+"/"+strings.ToLower(kind)] = m
		}
	}
	whole := newCompiler(ofOthers(slices.Collect(maps.Values(rules))...)...).WithStrict(false)
	if whole.Compile(modules); whole.Failed() {
		return nil, whole.Errors
	}
	return whole, nil
}

// ofOthers are the files of the rules that are not of the library.
func ofOthers(rules ...*rule) []string {
	var files []string
	for _, r := range rules {
		if r.info.Source != SourceLibrary {
			files = append(files, r.file())
		}
	}
	return files
}
