// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// BrokenModule is a module that did not load.
type BrokenModule struct {
	Source string `json:"source"`
	Name   string `json:"name"`
	// Rule is the id in its METADATA, empty when that could not be read.
	Rule        string      `json:"rule,omitempty"`
	Kinds       []string    `json:"kinds"`
	Enforcement Enforcement `json:"enforcement"`
	Severity    Severity    `json:"severity"`
	// Reason names the file, the line and what to do.
	Reason string `json:"reason"`
	// LastGood says that the module's last content that loaded stays in force. Otherwise every
	// object of its kinds gets a finding.
	LastGood bool `json:"lastGood"`
}

// LoadReport is the outcome of a load.
type LoadReport struct {
	// Digest names the set in force after the load.
	Digest string
	// Rules counts those that loaded, whatever their enforcement.
	Rules  int
	Broken []BrokenModule
	// Unknown are entries of the configuration about rules that do not exist.
	Unknown []UnknownRule
}

// loadedRules is what of a load can be said before the configuration.
type loadedRules struct {
	helpers map[string]*ast.Module
	// helperHash is that of their content.
	helperHash [sha256.Size]byte

	byFile  map[string]*rule
	byID    map[string]*rule
	broken  []BrokenModule
	unknown []UnknownRule
}

// cacheKey is all that the outcome of loading one module depends on.
type cacheKey struct {
	helpers, content [sha256.Size]byte
	file             string
}

type cached struct {
	rule *rule
	err  error
}

// moduleCache remembers what modules came to. It forgets everything when it is full.
type moduleCache struct {
	mu      sync.Mutex
	entries map[cacheKey]cached
	// bytes are those of the files: what they come to takes many times as much.
	bytes int
}

const (
	maxCachedModules = 2048
	maxCachedBytes   = 8 << 20
)

// compiled is for all engines of the process: an outcome depends on its key only, and checking the types of a
// module costs many times what all else about it does.
var compiled = moduleCache{entries: map[cacheKey]cached{}}

// of returns the outcome of a file of so many bytes.
func (c *moduleCache) of(key cacheKey, size int, load func() (*rule, error)) cached {
	c.mu.Lock()
	outcome, ok := c.entries[key]
	c.mu.Unlock()
	if ok {
		return outcome
	}
	outcome.rule, outcome.err = load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxCachedModules || c.bytes+size > maxCachedBytes {
		clear(c.entries)
		c.bytes = 0
	}
	if _, ok := c.entries[key]; !ok {
		c.bytes += size
	}
	c.entries[key] = outcome
	return outcome
}

// Load compiles the modules and puts them in force at once. A module outside of the library that
// does not load is left out and reported; in its place stands its last good content, or a finding
// for each object of its kinds. What the configuration says about a rule that does not exist is
// reported and has no effect. An error means that the set in force before stays.
func (e *Engine) Load(ctx context.Context, modules []Module, cfg Configuration) (LoadReport, error) {
	e.loading.Lock()
	defer e.loading.Unlock()
	loaded, err := e.loadModules(modules)
	if err != nil {
		return e.report(loaded), err
	}
	rules := loaded.withOwnInfo()
	loaded.unknown = cfg.unknown(rules, loaded.broken)
	if err := cfg.apply(rules); err != nil {
		return e.report(loaded), err
	}
	loaded.configureBroken(cfg)
	next, err := newSet(ctx, loaded, rules, cfg, e.ward.holds(rules))
	if err != nil {
		return e.report(loaded), fmt.Errorf("put the rules together: %w", err)
	}
	e.files = loaded.byFile
	e.current.Store(next)
	e.ward.retain(rules)
	return e.report(loaded), nil
}

// Try says what Load would come to, and changes nothing.
func (e *Engine) Try(ctx context.Context, modules []Module, cfg Configuration) (LoadReport, error) {
	scratch, err := New()
	if err != nil {
		return LoadReport{}, err
	}
	e.loading.Lock()
	scratch.files = e.files
	e.loading.Unlock()
	return scratch.Load(ctx, modules, cfg)
}

func (e *Engine) report(loaded *loadedRules) LoadReport {
	report := LoadReport{Digest: e.Digest()}
	if loaded != nil {
		report.Rules, report.Broken, report.Unknown = len(loaded.byID), loaded.broken, loaded.unknown
	}
	return report
}

func (e *Engine) loadModules(modules []Module) (*loadedRules, error) {
	modules = slices.DeleteFunc(slices.Clone(modules), func(m Module) bool { return m.isTest() && !m.isOfConfigMap() })
	slices.SortStableFunc(modules, func(a, b Module) int {
		return strings.Compare(sortKey(a), sortKey(b))
	})
	helpers, helperHash, rest, err := loadHelpers(modules)
	if err != nil {
		return nil, err
	}
	loaded := &loadedRules{helpers: helpers, helperHash: helperHash, byFile: map[string]*rule{}, byID: map[string]*rule{}}
	var errs []error
	for _, one := range e.outcomes(rest, loaded) {
		err := one.err
		if err == nil {
			err = loaded.add(one.module, one.rule)
		}
		if err != nil && one.module.Source == SourceLibrary {
			errs = append(errs, err)
		} else if err != nil {
			loaded.addBroken(one.module, err, e.files[one.module.file()])
		}
	}
	if len(errs) > 0 {
		return loaded, fmt.Errorf("the library does not load: %w", errors.Join(errs...))
	}
	if len(loaded.byID) == 0 && len(loaded.broken) == 0 {
		return loaded, errors.New("there are no rules: no module defines deny or warn")
	}
	return loaded, nil
}

// moduleOutcome is what a module came to by itself.
type moduleOutcome struct {
	cached
	module Module
}

// outcomes compiles each module by itself. Those that keep the id and the package that they have in force come first, so
// that no file takes either from another.
func (e *Engine) outcomes(modules []Module, loaded *loadedRules) []moduleOutcome {
	var all []moduleOutcome
	for _, m := range modules {
		if m.isTest() {
			loaded.addTest(m)
			continue
		}
		key := cacheKey{helpers: loaded.helperHash, content: m.hash(), file: m.file()}
		all = append(all, moduleOutcome{compiled.of(key, len(m.Content), func() (*rule, error) { return loadRule(m, loaded.helpers) }), m})
	}
	rank := func(o moduleOutcome) int {
		inForce := e.files[o.module.file()]
		switch {
		case o.module.Source == SourceLibrary:
			return 0
		case inForce != nil && (o.err != nil || inForce.sameName(o.rule)):
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(all, func(a, b moduleOutcome) int { return rank(a) - rank(b) })
	return all
}

// sortKey puts the library first, so that nobody can take a name of it.
func sortKey(m Module) string {
	if m.Source == SourceLibrary {
		return "0" + m.Name
	}
	return "1" + m.file()
}

// loadHelpers compiles the shared helpers by themselves.
func loadHelpers(modules []Module) (map[string]*ast.Module, [sha256.Size]byte, []Module, error) {
	helpers, hash := map[string]*ast.Module{}, sha256.New()
	var rest []Module
	for _, m := range modules {
		if m.Source != SourceLibrary {
			rest = append(rest, m)
			continue
		}
		parsed, err := parse(m.file(), string(m.Content))
		if err == nil && !isHelper(parsed.Package.Path) {
			rest = append(rest, m)
			continue
		}
		if err != nil {
			return nil, [sha256.Size]byte{}, nil, fmt.Errorf("the library does not load: %w", explain(m, err))
		}
		keepErrors(parsed)
		helpers[m.file()] = parsed
		content := m.hash()
		hash.Write(content[:])
	}
	if err := checkHelpers(helpers); err != nil {
		return nil, [sha256.Size]byte{}, nil, err
	}
	compiler := newCompiler()
	if compiler.Compile(helpers); compiler.Failed() {
		return nil, [sha256.Size]byte{}, nil, fmt.Errorf("the library does not load: %w", compiler.Errors)
	}
	return helpers, [sha256.Size]byte(hash.Sum(nil)), rest, nil
}

// checkHelpers refuses helpers that read parameters: those are a rule's own.
func checkHelpers(helpers map[string]*ast.Module) error {
	var errs []error
	for file, helper := range helpers {
		ast.WalkRefs(helper, func(ref ast.Ref) bool {
			if ref.HasPrefix(parametersRef) || ref.HasPrefix(inventoryRef) {
				errs = append(errs, fmt.Errorf("%s: a helper may not read %s, give it an argument", file, ref))
			}
			return false
		})
	}
	return errors.Join(errs...)
}

// add takes the rule in, unless another has its id or its package.
func (l *loadedRules) add(m Module, r *rule) error {
	if other, taken := l.byID[r.info.ID]; taken || isPodSecurity(r.info.ID) || IsNative(r.info.ID) {
		owner := "the engine"
		if taken {
			owner = other.file()
		}
		return fmt.Errorf("%s: METADATA custom.id is %q, which %s has already; use another", m.file(), r.info.ID, owner)
	}
	for file, other := range l.byFile {
		mine, theirs := r.module.Package.Path, other.module.Package.Path
		if mine.HasPrefix(theirs) || theirs.HasPrefix(mine) {
			return fmt.Errorf("%s: package %s is that of %s or one within it; use another", m.file(),
				strings.Join(packagePath(r.module), "."), file)
		}
	}
	l.byFile[m.file()], l.byID[r.info.ID] = r, r
	return nil
}

// addBroken notes a module that did not load. Without a readable METADATA it counts as a Deny
// rule for all kinds.
func (l *loadedRules) addBroken(m Module, reason error, lastGood *rule) {
	info, ok := salvageMetadata(m)
	if !ok {
		info = RuleInfo{Kinds: kinds, Default: Deny, Severity: High}
	}
	b := BrokenModule{
		Source: m.Source, Name: m.Name, Rule: info.ID, Kinds: info.Kinds, Enforcement: info.Default,
		Severity: info.Severity, Reason: reason.Error(),
	}
	if lastGood != nil && l.add(m, lastGood) == nil {
		b.LastGood = true
	}
	l.broken = append(l.broken, b)
}

// addTest notes a test in a ConfigMap, which nobody would run. One with METADATA is a rule by the wrong name, and
// fails as such; one without judges nothing under any name.
func (l *loadedRules) addTest(m Module) {
	l.addBroken(m, fmt.Errorf("%s: a name that ends in %s is that of a test, which is not run here: keep tests in a folder, and name a rule otherwise",
		m.file(), testSuffix), nil)
	if !bytes.Contains(m.Content, []byte("METADATA")) {
		l.broken[len(l.broken)-1].Kinds = nil
	}
}

// withOwnInfo returns copies of the rules that the configuration may change.
func (l *loadedRules) withOwnInfo() map[string]*rule {
	rules := make(map[string]*rule, len(l.byID))
	for id, r := range l.byID {
		own := *r
		rules[id] = &own
	}
	return rules
}

// configureBroken gives the findings of broken modules the enforcement that is configured for
// their rules; overrides come on top of it, by the namespace.
func (l *loadedRules) configureBroken(cfg Configuration) {
	for i, b := range l.broken {
		if given := cfg.Rules[b.Rule].Enforcement; b.Rule != "" && given != "" {
			l.broken[i].Enforcement = given
		}
	}
}
