// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// row is a line of a table: what holds, and what proves it.
var row = regexp.MustCompile(`(?m)^\| (.+?) \| (.+) \|$`)

// proof is the name of a test, and of the case where it is one.
var proof = regexp.MustCompile("`([a-z0-9/]+)\\.(Test\\w+)(?:: ([^`]+))?`")

func rows(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return row.FindAllStringSubmatch(string(text), -1)
}

// suite is what each test of a package says in words, the names of its cases among them.
type suite map[string]map[string]bool

// read reads the files of a directory whose names end in one of the suffixes.
func read(t *testing.T, dir string, wanted func(name string) bool) []*ast.File {
	t.Helper()
	entries, err := fs.ReadDir(os.DirFS(".."), dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, entry := range entries {
		if !wanted(entry.Name()) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path.Join("..", dir, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

func suiteOf(t *testing.T, dir string) suite {
	t.Helper()
	functions := map[string]*ast.FuncDecl{}
	for _, file := range read(t, dir, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
		for _, declaration := range file.Decls {
			if function, isFunc := declaration.(*ast.FuncDecl); isFunc && function.Recv == nil {
				functions[function.Name.Name] = function
			}
		}
	}
	s := suite{}
	for name, function := range functions {
		words, calls := contentsOf(function)
		for _, called := range calls {
			if helper := functions[called]; helper != nil {
				more, _ := contentsOf(helper)
				maps.Copy(words, more)
			}
		}
		s[name] = words
	}
	return s
}

// contentsOf are the texts that stand in a function, and the names of the functions that it
// calls: the cases of a test are its own, or listed by a function of their own.
func contentsOf(function *ast.FuncDecl) (words map[string]bool, calls []string) {
	words = map[string]bool{}
	ast.Inspect(function, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				words[text] = true
			}
		case *ast.CallExpr:
			if called, isName := n.Fun.(*ast.Ident); isName {
				calls = append(calls, called.Name)
			}
		}
		return true
	})
	return words, calls
}

func TestEveryRowOfTheReadmeIsProven(t *testing.T) {
	suites, proven := map[string]suite{}, 0
	for _, line := range rows(t) {
		what, proofs := line[1], proof.FindAllStringSubmatch(line[2], -1)
		if what == "What holds" {
			continue
		}
		if len(proofs) == 0 || len(proofs) != strings.Count(line[2], "`")/2 {
			t.Errorf("%q: %d proofs in %q", what, len(proofs), line[2])
		}
		for _, p := range proofs {
			dir, test, words := p[1], p[2], p[3]
			if dir != "e2e" && !strings.HasPrefix(dir, "e2e/") {
				dir = "controller/" + dir
			}
			if _, read := suites[dir]; !read {
				suites[dir] = suiteOf(t, dir)
			}
			cases, exists := suites[dir][test]
			if !exists {
				t.Errorf("%q: there is no %s in %s", what, test, dir)
			} else if words != "" && !cases[words] {
				t.Errorf("%q: %s in %s has no case %q", what, test, dir, words)
			}
			proven++
		}
	}
	if proven == 0 {
		t.Error("no row was read")
	}
}

// said is what a name of a constant begins with that clients and users read.
var said = regexp.MustCompile(`^(Reason|reason|event)[A-Z]`)

// sayings are the values of those constants of a package.
func sayings(t *testing.T, dir string) []string {
	t.Helper()
	var words []string
	for _, file := range read(t, dir, func(name string) bool { return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") }) {
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, isValue := node.(*ast.ValueSpec); isValue && len(spec.Values) == 1 && said.MatchString(spec.Names[0].Name) {
				if literal, isLiteral := spec.Values[0].(*ast.BasicLit); isLiteral {
					words = append(words, strings.Trim(literal.Value, `"`))
				}
			}
			return true
		})
	}
	return words
}

// What the controllers can say is in a row, so that nothing new goes unproven.
func TestEveryReasonIsInTheReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"controller/template", "controller/warmpool", "controller/claim"} {
		words := sayings(t, dir)
		if len(words) == 0 {
			t.Errorf("%s says nothing", dir)
		}
		for _, word := range words {
			if !strings.Contains(string(text), "`"+word+"`") {
				t.Errorf("%s can say %s, and no row of README.md does", dir, word)
			}
		}
	}
}
