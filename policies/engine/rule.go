// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// rule is a module that loaded: its description and its Rego, ready to compile with others.
type rule struct {
	info RuleInfo
	// content is the hash of the module.
	content    [sha256.Size]byte
	parameters *parameterSchema
	// module has its references to input.parameters replaced by data.parameters[id], so that all
	// rules share one input.
	module *ast.Module
	// compiled is the module as the compiler left it, where every reference is written out.
	compiled *ast.Module
	// passesParameters says that the module reads its input as a whole, so that the
	// parameters have to be put into it.
	passesParameters bool
	// readsClock says that the module may ask for the time beside the input's.
	readsClock bool
	entries    []string
}

// file names the module that the rule is.
func (r *rule) file() string {
	return Module{Source: r.info.Source, Name: r.info.Name}.file()
}

// sameName says whether two rules have the same id and package.
func (r *rule) sameName(other *rule) bool {
	return r.info.ID == other.info.ID && r.module.Package.Path.Equal(other.module.Package.Path)
}

// Entry points of a rule: findings of deny have the rule's enforcement, those of warn are
// warnings at most.
const (
	entryDeny = "deny"
	entryWarn = "warn"
)

func parse(file, content string) (*ast.Module, error) {
	return ast.ParseModuleWithOpts(file, content, ast.ParserOptions{
		ProcessAnnotation: true,
		RegoVersion:       ast.RegoV1,
		Capabilities:      capabilities(),
	})
}

// loadRule reads one module by itself and compiles it with nothing but the shared helpers. Its
// errors name the file, the line and what to do.
func loadRule(m Module, helpers map[string]*ast.Module) (*rule, error) {
	parsed, err := parseBounded(m)
	if err != nil {
		return nil, err
	}
	info, err := readMetadata(m, parsed)
	if err != nil {
		return nil, err
	}
	r := &rule{info: info, module: parsed, content: m.hash()}
	if r.parameters, err = newParameterSchema(info.Schema); err != nil {
		return nil, fmt.Errorf("%s: METADATA custom.parameters: %w", m.file(), err)
	}
	if info.Default != Off && len(info.AtLeastOne) > 0 && !hasEntry(info.AtLeastOne, r.parameters.defaults) {
		return nil, fmt.Errorf(`%s: METADATA custom.enforcement is %s but no entry is in %s by default: write "Off" in quotes, or a default`,
			m.file(), info.Default, list(info.AtLeastOne))
	}
	if r.entries, err = checkModule(m, parsed, info); err != nil {
		return nil, err
	}
	if r.passesParameters, err = shareInput(parsed, info.ID); err != nil {
		return nil, fmt.Errorf("%s: %w", m.file(), err)
	}
	r.readsClock = asksForTime(parsed)
	keepErrors(parsed)
	keepUndefined(parsed, entryDeny, entryWarn)
	modules := map[string]*ast.Module{m.file(): parsed}
	maps.Copy(modules, helpers)
	types, err := schemaSet(info.Kinds)
	if err != nil {
		return nil, err
	}
	compiler := newCompiler(ofOthers(r)...).WithSchemas(types)
	if compiler.Compile(modules); compiler.Failed() {
		return nil, explain(m, compiler.Errors)
	}
	r.compiled = compiler.Modules[m.file()]
	return r, nil
}

// explain adds to the errors of OPA what to do about the common ones.
func explain(m Module, err error) error {
	var list ast.Errors
	if !errors.As(err, &list) {
		return fmt.Errorf("%s: %w", m.file(), err)
	}
	var lines []string
	for _, e := range list {
		line := e.Error()
		if e.Location == nil || e.Location.File == "" {
			line = m.file() + ": " + line
		}
		lines = append(lines, strings.TrimSpace(line)+hint(e.Message)+m.typeHint(e.Message))
	}
	return errors.New(strings.Join(lines, "\n"))
}

func hint(message string) string {
	if name, ok := strings.CutPrefix(message, "undefined function "); ok {
		if _, known := ast.BuiltinMap[name]; known {
			return "; this builtin is not allowed in rules" + insteadOf(name)
		}
		return ""
	}
	if strings.Contains(message, "`contains` keyword is required") || strings.Contains(message, "`if` keyword is required") {
		return "; write: deny contains finding if { ... }"
	}
	return ""
}

func insteadOf(builtin string) string {
	if strings.HasPrefix(builtin, "units.") {
		return ", use data.lib.quantities"
	}
	return ""
}

// checkModule refuses what could reach beyond the rule, or could never fire.
func checkModule(m Module, parsed *ast.Module, info RuleInfo) ([]string, error) {
	var errs []error
	refuse := func(location *ast.Location, format string, args ...any) {
		row := 0
		if location != nil {
			row = location.Row
		}
		errs = append(errs, fmt.Errorf("%s:%d: %s", m.file(), row, fmt.Sprintf(format, args...)))
	}
	if path := packagePath(parsed); len(path) < 3 || path[0] != "policies" {
		refuse(parsed.Package.Location, "package %s: name it policies.<group>.<rule>", strings.Join(path, "."))
	}
	entries := checkEntries(parsed, refuse)
	checkImports(parsed, refuse)
	checkReferences(parsed, info, refuse)
	ast.WalkWiths(parsed, func(w *ast.With) bool {
		refuse(w.Location, "with is for tests only; move what differs into a function with an argument")
		return false
	})
	return entries, errors.Join(errs...)
}

type refusal func(location *ast.Location, format string, args ...any)

func checkEntries(parsed *ast.Module, refuse refusal) []string {
	var entries []string
	seen := false
	for _, r := range parsed.Rules {
		name := string(r.Head.Ref()[0].Value.(ast.Var))
		if name != entryDeny && name != entryWarn {
			continue
		}
		seen = true
		if len(r.Head.Args) > 0 || len(r.Head.Ref()) > 1 || r.Default || r.Head.RuleKind() != ast.MultiValue {
			refuse(r.Location, "%s has to be a set of findings; write: %s contains finding if { ... }", name, name)
			continue
		}
		if !slices.Contains(entries, name) {
			entries = append(entries, name)
		}
	}
	if !seen {
		refuse(parsed.Package.Location, "the rule has neither deny nor warn; write: deny contains finding if { ... }")
	}
	slices.Sort(entries)
	return entries
}

func checkImports(parsed *ast.Module, refuse refusal) {
	for _, imported := range parsed.Imports {
		path, ok := imported.Path.Value.(ast.Ref)
		if !ok {
			continue
		}
		switch text := path.String(); {
		case text == "rego.v1", strings.HasPrefix(text, "future.keywords"), isHelper(path):
		case path.HasPrefix(ast.InputRootRef):
			refuse(imported.Location, "import %s: refer to input directly", text)
		default:
			refuse(imported.Location, "import %s: a rule may import data.lib.* only", text)
		}
	}
}

func checkReferences(parsed *ast.Module, info RuleInfo, refuse refusal) {
	own := parsed.Package.Path
	visit := func(ref ast.Ref) bool {
		switch {
		case servesData(ref, info):
		case ref.HasPrefix(inventoryRef):
			refuse(ref[0].Location, "%s: declare what the rule reads of the cluster in METADATA custom.data, and name it", ref)
		case ref.HasPrefix(ast.DefaultRootRef) && !isHelper(ref) && !ref.HasPrefix(own):
			refuse(ref[0].Location, "%s: a rule may refer to its input, its own package and data.lib.* only", ref)
		case ref.HasPrefix(parametersRef) && !declared(ref, info):
			refuse(ref[0].Location, "%s: there is no such parameter; declare it in METADATA custom.parameters", ref)
		}
		return false
	}
	for _, r := range parsed.Rules {
		ast.WalkRefs(r, visit)
		if readsWhole(r, ast.DefaultRootDocument) {
			refuse(r.Location, "data: a rule may not read all data")
		}
	}
}

// readsWhole says whether the root document occurs by itself, not as the head of a reference.
func readsWhole(r *ast.Rule, root *ast.Term) bool {
	found := false
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case ast.Ref:
			found = found || (len(x) == 1 && x[0].Equal(root))
			for _, element := range x[1:] {
				visitor.Walk(element)
			}
			return true
		case *ast.Term:
			_, isVar := x.Value.(ast.Var)
			found = found || (isVar && x.Equal(root))
		}
		return false
	})
	visitor.Walk(r)
	return found
}

var parametersRef = ast.InputRootRef.Append(ast.StringTerm("parameters"))

func declared(ref ast.Ref, info RuleInfo) bool {
	if len(info.Schema) == 0 {
		return false
	}
	if len(ref) <= len(parametersRef) {
		return true
	}
	name, ok := ref[len(parametersRef)].Value.(ast.String)
	if !ok {
		return true
	}
	_, ok = info.Schema[string(name)]
	return ok
}

func asksForTime(parsed *ast.Module) bool {
	asks := false
	ast.WalkRefs(parsed, func(ref ast.Ref) bool {
		asks = asks || ref.Equal(ast.NowNanos.Ref())
		return asks
	})
	return asks
}

func isHelper(ref ast.Ref) bool {
	return len(ref) >= 2 && ref.HasPrefix(helpersRef)
}

var helpersRef = ast.DefaultRootRef.Append(ast.StringTerm("lib"))

func packagePath(parsed *ast.Module) []string {
	var path []string
	for _, term := range parsed.Package.Path[1:] {
		if text, ok := term.Value.(ast.String); ok {
			path = append(path, string(text))
		}
	}
	return path
}

// shareInput replaces the rule's references to input.parameters. It says whether parameters can
// still be reached through the input, because the rule reads it as a whole.
func shareInput(parsed *ast.Module, id string) (bool, error) {
	own := ast.DefaultRootRef.Append(ast.StringTerm("parameters")).Append(ast.StringTerm(id))
	replace := func(ref ast.Ref) (ast.Value, error) {
		if ref.HasPrefix(parametersRef) {
			return own.Concat(ref[len(parametersRef):]), nil
		}
		return ref, nil
	}
	whole := false
	for i, r := range parsed.Rules {
		if err := replaceInDeclarations(r, replace); err != nil {
			return false, err
		}
		changed, err := ast.TransformRefs(r, replace)
		if err != nil {
			return false, err
		}
		r, ok := changed.(*ast.Rule)
		if !ok {
			return false, fmt.Errorf("rule became %T", changed)
		}
		parsed.Rules[i] = r
		whole = whole || readsWhole(r, ast.InputRootDocument)
		ast.WalkRefs(r, func(ref ast.Ref) bool {
			if ref[0].Equal(ast.InputRootDocument) && (!namesField(ref) || ref.HasPrefix(parametersRef)) {
				whole = true
			}
			return false
		})
	}
	return whole, nil
}

// replaceInDeclarations covers "some x in y", which the transformation of OPA passes over.
func replaceInDeclarations(r *ast.Rule, replace func(ast.Ref) (ast.Value, error)) error {
	var failed error
	ast.WalkNodes(r, func(node ast.Node) bool {
		declaration, ok := node.(*ast.SomeDecl)
		if !ok {
			return false
		}
		for i, symbol := range declaration.Symbols {
			changed, err := ast.TransformRefs(symbol, replace)
			if err != nil {
				failed = err
				return true
			}
			if value, ok := changed.(ast.Value); ok {
				declaration.Symbols[i] = ast.NewTerm(value).SetLocation(symbol.Location)
			}
		}
		return false
	})
	return failed
}

func namesField(ref ast.Ref) bool {
	if len(ref) < 2 {
		return false
	}
	_, ok := ref[1].Value.(ast.String)
	return ok
}
