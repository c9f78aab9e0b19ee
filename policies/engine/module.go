// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// SourceLibrary is the source of the embedded library: only its modules may define shared
// helpers, and all of them have to compile.
const SourceLibrary = "library"

// SourceConfigMap begins the sources that are ConfigMaps; their namespace and name follow, as in configmap/NS/NAME.
const SourceConfigMap = "configmap/"

const testSuffix = "_test.rego"

// Module is one file of Rego.
type Module struct {
	// Source says where the file is from: SourceLibrary, or for example configmap/NS/NAME.
	Source string
	// Name is the file's name within its source.
	Name    string
	Content []byte
}

// Source is all that one set of rules is made of.
type Source struct {
	Modules       []Module
	Configuration Configuration
}

// file is the name by which errors and caches know the module; that of the library is its path in the
// project, and that of a mask its path.
func (m Module) file() string {
	switch m.Source {
	case SourceLibrary:
		return "policies/" + m.Name
	case sourceMask:
		return m.Name
	default:
		return m.Source + "/" + m.Name
	}
}

func (m Module) hash() [sha256.Size]byte {
	return sha256.Sum256(m.Content)
}

func (m Module) isTest() bool {
	return strings.HasSuffix(m.Name, testSuffix)
}

func (m Module) isOfConfigMap() bool {
	return strings.HasPrefix(m.Source, SourceConfigMap)
}

// LoadFS reads every .rego file below the roots, tests left out, as modules of a source.
// Names that begin with a dot are skipped: a mounted ConfigMap keeps its versions there.
func LoadFS(source string, fsys fs.FS, roots ...string) ([]Module, error) {
	var modules []Module
	visit := func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(path.Base(name), ".") && name != ".":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() || path.Ext(name) != ".rego":
			return nil
		}
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if m := (Module{Source: source, Name: name, Content: content}); !m.isTest() {
			modules = append(modules, m)
		}
		return nil
	}
	for _, root := range roots {
		if err := fs.WalkDir(fsys, root, visit); err != nil {
			return nil, fmt.Errorf("read rules of %s: %w", source, err)
		}
	}
	if len(modules) == 0 {
		return nil, fmt.Errorf("read rules of %s: no .rego file below %s", source, strings.Join(roots, ", "))
	}
	slices.SortFunc(modules, func(a, b Module) int { return strings.Compare(a.Name, b.Name) })
	return modules, nil
}
