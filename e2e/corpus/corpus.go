// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package corpus reads the manifests below it and the verdicts that they state. The
// README beside it says how they are written.
package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Namespaces that cases name, with the labels that they have.
var Namespaces = map[string]map[string]string{
	"standard":   {},
	"restricted": {"platform.agents.x-k8s.io/tier": "restricted"},
	"trusted":    {"platform.agents.x-k8s.io/tier": "trusted"},
	"labelled":   {"pod-security.kubernetes.io/enforce": "restricted"},
	"unknown":    {"platform.agents.x-k8s.io/tier": "nobody-defined-this"},
}

// Evasions are the ways to get past a check that a case may try.
var Evasions = []string{
	EvasionInit, EvasionSidecar, EvasionEphemeral, EvasionEmpty, EvasionDuplicate, EvasionCase, EvasionLookAlike,
	EvasionImage, EvasionProjected, EvasionSteps, EvasionAnnotation, EvasionHuge, EvasionEnv,
}

// The evasions. Each hides a fault from a check that does not know of it, and each has a
// harmless use that a check must not take for a fault.
const (
	// EvasionInit puts it into an init container.
	EvasionInit = "init"
	// EvasionSidecar puts it into an init container that goes on running.
	EvasionSidecar = "sidecar"
	// EvasionEphemeral puts it into an ephemeral container.
	EvasionEphemeral = "ephemeral"
	// EvasionEmpty writes null, or something empty, where a value is looked for.
	EvasionEmpty = "empty"
	// EvasionDuplicate names two things alike.
	EvasionDuplicate = "duplicate"
	// EvasionCase writes a value in the other case.
	EvasionCase = "case"
	// EvasionLookAlike writes a letter that only looks like the one that is looked for.
	EvasionLookAlike = "look-alike"
	// EvasionImage writes digests and ports where a tag is looked for.
	EvasionImage = "image"
	// EvasionProjected projects a credential instead of mounting it.
	EvasionProjected = "projected"
	// EvasionSteps goes there in steps that look harmless.
	EvasionSteps = "steps"
	// EvasionAnnotation sets by an annotation what has a field.
	EvasionAnnotation = "annotation"
	// EvasionHuge puts it behind a lot else.
	EvasionHuge = "huge"
	// EvasionEnv brings it along as a variable of a claim.
	EvasionEnv = "env"
)

// Finding is a rule and the field that it is about, or a member of that field. The
// rule may be several with "|" between them: any one of them.
type Finding struct {
	Rule, Field string
}

// Is reports whether a finding of that rule about that field is meant.
func (f Finding) Is(rule, at string) bool {
	rest, within := strings.CutPrefix(at, f.Field)
	member := f.Field != "" && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
	return within && (rest == "" || member) && slices.Contains(strings.Split(f.Rule, "|"), rule)
}

// Document is one state of an object.
type Document struct {
	// Object is the manifest.
	Object map[string]any
	// Stored says that it is put there without being judged.
	Stored bool
}

// Case is one file.
type Case struct {
	// Name is the path of the file.
	Name string
	// Story is the sentence at its beginning.
	Story string
	// Allowed says that the last document has to be admitted.
	Allowed bool
	// Denials are all findings that refuse it, sorted; Warnings are some that warn.
	Denials, Warnings []Finding
	// Namespace is one of Namespaces, User is empty for a tenant or "controller".
	Namespace, User string
	// Values is the environment whose values are in force; empty for the chart's own.
	Values string
	// Offline says why no apiserver can be asked; empty when one can.
	Offline string
	// Unguarded says why the apiserver's own policies hold none of the rules of metadata and
	// owners that refuse it; empty when they hold them all.
	Unguarded string
	// Evasions are those of Evasions that it tries.
	Evasions []string
	// Documents are the states of the object, at least one.
	Documents []Document
}

// Last is the document that gets the verdict.
func (c *Case) Last() map[string]any {
	return c.Documents[len(c.Documents)-1].Object
}

// Cases reads every case of the folder, in the order of their names.
func Cases(folder fs.FS) ([]Case, error) {
	files, err := fs.Glob(folder, "*/*/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the corpus: %w", err)
	}
	var cases []Case
	for _, file := range files {
		text, err := fs.ReadFile(folder, file)
		if err != nil {
			return nil, fmt.Errorf("read the corpus: %w", err)
		}
		c, err := parse(file, text)
		if err != nil {
			return nil, fmt.Errorf("corpus: %s: %w", file, err)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// World reads what exists before. Documents for runners without an apiserver are left
// out unless they are asked for.
func World(folder fs.FS, offline bool) ([]map[string]any, error) {
	text, err := fs.ReadFile(folder, "world.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the corpus: %w", err)
	}
	var objects []map[string]any
	for _, part := range split(text) {
		if strings.HasPrefix(part, "# offline") && !offline {
			continue
		}
		var object map[string]any
		if err := yaml.Unmarshal([]byte(part), &object); err != nil {
			return nil, fmt.Errorf("corpus: world.yaml: %w", err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func split(text []byte) []string {
	var parts []string
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		if part = bytes.TrimSpace(part); len(part) > 0 {
			parts = append(parts, string(part))
		}
	}
	return parts
}

func parse(file string, text []byte) (Case, error) {
	verdict := path.Base(path.Dir(file))
	c := Case{Name: filepath.ToSlash(file), Allowed: verdict == "allow", Namespace: "standard"}
	if verdict != "allow" && verdict != "deny" {
		return c, fmt.Errorf("the folder is %q: move it into allow or deny", verdict)
	}
	for line := range strings.Lines(string(text)) {
		comment, is := strings.CutPrefix(line, "# ")
		if !is {
			break
		}
		if err := c.comment(strings.TrimSpace(comment)); err != nil {
			return c, err
		}
	}
	for _, part := range split(text) {
		document := Document{Stored: strings.Contains("\n"+part, "\n# stored\n")}
		if err := yaml.Unmarshal([]byte(part), &document.Object); err != nil {
			return c, err
		}
		c.Documents = append(c.Documents, document)
	}
	return c, c.check()
}

// comment reads a line of the comment: the story, or a key.
func (c *Case) comment(line string) error {
	if line == "stored" {
		return nil
	}
	key, value, isKey := strings.Cut(line, ": ")
	if !isKey || strings.Contains(key, " ") {
		c.Story = strings.TrimSpace(c.Story + " " + line)
		return nil
	}
	texts := map[string]*string{
		"namespace": &c.Namespace, "user": &c.User, "values": &c.Values, "offline": &c.Offline, "unguarded": &c.Unguarded,
	}
	lists := map[string]*[]Finding{"expect": &c.Denials, "warn": &c.Warnings}
	switch {
	case key == "evasion":
		c.Evasions = append(c.Evasions, strings.Split(value, ", ")...)
	case texts[key] != nil:
		*texts[key] = value
	case lists[key] != nil:
		rule, at, _ := strings.Cut(value, " ")
		*lists[key] = append(*lists[key], Finding{rule, at})
	default:
		return fmt.Errorf("there is no key %q, see README.md", key)
	}
	return nil
}

func (c *Case) check() error {
	slices.SortFunc(c.Denials, Compare)
	_, knownNamespace := Namespaces[c.Namespace]
	unknown := slices.IndexFunc(c.Evasions, func(name string) bool { return !slices.Contains(Evasions, name) })
	switch {
	case c.Story == "":
		return errors.New("say in the first line what the manifest tries")
	case len(c.Documents) == 0:
		return errors.New("there is no document")
	case c.Allowed && len(c.Denials) > 0:
		return errors.New("it is in allow but expects findings that refuse")
	case !c.Allowed && len(c.Denials) == 0:
		return errors.New("it is in deny but expects no finding")
	case unknown >= 0:
		return fmt.Errorf("there is no evasion %q", c.Evasions[unknown])
	case !knownNamespace:
		return fmt.Errorf("there is no namespace %q", c.Namespace)
	case !slices.Contains([]string{"", "controller"}, c.User):
		return fmt.Errorf("there is no user %q", c.User)
	}
	return nil
}

// Differences compares the causes of a refusal with the findings that a case states: those
// that are missing, and the causes that nobody stated.
func (c *Case) Differences(causes []metav1.StatusCause) (missing []Finding, unstated []metav1.StatusCause) {
	unstated = slices.Clone(causes)
	for _, want := range c.Denials {
		i := slices.IndexFunc(unstated, func(cause metav1.StatusCause) bool { return want.Is(string(cause.Type), cause.Field) })
		if i < 0 {
			missing = append(missing, want)
			continue
		}
		unstated = slices.Delete(unstated, i, i+1)
	}
	return missing, unstated
}

// Compare orders findings by field, then rule.
func Compare(a, b Finding) int {
	return strings.Compare(a.Field+"\x00"+a.Rule, b.Field+"\x00"+b.Rule)
}
