// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package defaults

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

// Kinds and operations that the package knows.
const (
	kindSandbox  = "Sandbox"
	kindTemplate = "SandboxTemplate"
	kindClaim    = "SandboxClaim"

	operationCreate = "CREATE"
	operationUpdate = "UPDATE"
)

const (
	// maxListed is how many fields the annotation names.
	maxListed = 100
	// more ends a list that does not name all.
	more = "..."
)

// Request is one write of an object.
type Request struct {
	// Operation is CREATE or UPDATE.
	Operation string
	// Kind is the kind of the object.
	Kind string
	// Object is the object as submitted, OldObject what it was before an UPDATE. Both
	// are decoded JSON and are not changed.
	Object, OldObject map[string]any
	// Tier is the tier of the object's namespace.
	Tier config.Tier
	// RuntimeClasses are the names of those under which a Pod can start in the cluster,
	// FreeClasses of those of them under which it can start now.
	RuntimeClasses, FreeClasses sets.Set[string]
	// User is the name of who writes the object.
	User string
	// Now is the time that claims are stamped with.
	Now time.Time
}

// Operations lists what to add to the object: the tier's defaults, the annotation
// that names them, and the annotations that save the controllers a write. It is
// empty where nothing is to be done, and always for an object on its way out.
func Operations(r Request) []jsonpatch.Operation {
	if leaving(r.OldObject) {
		return nil
	}
	p := patch{anchors: map[string]map[string]any{}}
	if r.hardens() {
		listed := p.harden(r)
		p.annotate(r.Object, keys.Defaulted, listed, func(old string) bool { return old == listed })
	}
	if r.Operation != operationCreate {
		return p.operations
	}
	kept := func(string) bool { return true }
	switch r.Kind {
	case kindSandbox:
		p.annotate(r.Object, keys.Creator, r.User, kept)
		if metadata, _ := member(r.Object, "metadata"); metadata != nil {
			name, _ := metadata["name"].(string)
			p.annotate(r.Object, keys.PodName, name, kept)
		}
	case kindClaim:
		p.annotate(r.Object, keys.Creator, r.User, kept)
		p.annotate(r.Object, keys.ControllerFirstObservedAt, r.Now.UTC().Format(time.RFC3339Nano), kept)
	}
	return p.operations
}

// Unmet lists the hardened defaults that are still unset although Operations would
// have set them: the object did not pass the mutation.
func Unmet(r Request) field.ErrorList {
	if leaving(r.OldObject) || !r.hardens() {
		return nil
	}
	var errs field.ErrorList
	for _, t := range targets(r) {
		if _, unset := t.state(); unset {
			errs = append(errs, field.Required(field.NewPath(t.name()), "hardened defaults were not applied, try again"))
		}
	}
	return errs
}

// Harden sets in a Pod, which it changes, what Operations would add to the Sandbox
// that runs it. It is for Pods that a pool or claim borrows: by the time one of them
// runs, its Sandbox was created, and so hardened.
func Harden(pod map[string]any, tier config.Tier, classes, free sets.Set[string]) {
	request := Request{
		Object: map[string]any{"spec": map[string]any{"podTemplate": pod}}, Tier: tier, RuntimeClasses: classes, FreeClasses: free,
	}
	for _, t := range targets(request) {
		if _, unset := t.state(); unset {
			fill(t.base, t.path, t.value)
		}
	}
}

// Before is the object as it was before an UPDATE, with what Operations adds to it now. What is set in old containers
// that the writer left alone is then no change of his.
func Before(r Request) map[string]any {
	pod, ok := member(r.OldObject, "spec", "podTemplate")
	if !ok || !r.hardens() {
		return r.OldObject
	}
	pod = runtime.DeepCopyJSON(pod)
	Harden(pod, r.Tier, r.RuntimeClasses, r.FreeClasses)
	object, spec := maps.Clone(r.OldObject), maps.Clone(r.OldObject["spec"].(map[string]any))
	spec["podTemplate"], object["spec"] = pod, spec
	return object
}

// hardens reports whether the write concerns a Pod that has to be hardened.
func (r Request) hardens() bool {
	if r.Kind != kindSandbox && r.Kind != kindTemplate {
		return false
	}
	return r.Operation == operationCreate || r.Operation == operationUpdate && podTemplateChanged(r.Object, r.OldObject)
}

// leaving reports whether a stored object is on its way out. A new one that says so is not:
// the apiserver takes the time away, after mutation.
func leaving(object map[string]any) bool {
	metadata, _ := member(object, "metadata")
	return metadata["deletionTimestamp"] != nil
}

// patch collects operations.
type patch struct {
	operations []jsonpatch.Operation
	// anchors are the objects that the operations so far add, by JSON Pointer: what
	// belongs into one of them is put there instead of into an operation of its own.
	anchors map[string]map[string]any
}

// harden adds the fields that are unset and returns the list for the annotation:
// those, and the ones of an earlier pass that still have the value given then. A long
// list is cut, so that the annotation does not grow with the object.
func (p *patch) harden(r Request) string {
	var earlier []string
	if annotations, ok := member(r.Object, "metadata", "annotations"); ok {
		list, _ := annotations[keys.Defaulted].(string)
		earlier = strings.Split(list, ",")
	}
	var listed []string
	rest := slices.Contains(earlier, more)
	for _, t := range targets(r) {
		value, unset := t.state()
		if unset {
			p.add(t)
		}
		if unset || reflect.DeepEqual(value, t.value) && slices.Contains(earlier, t.name()) {
			listed = append(listed, t.name())
		}
	}
	slices.Sort(listed)
	if rest = rest && len(listed) > 0 || len(listed) > maxListed; rest {
		listed = append(listed[:min(len(listed), maxListed)], more)
	}
	return strings.Join(listed, ",")
}

// annotate adds an annotation, unless there is one that may be kept or there is
// nothing to say.
func (p *patch) annotate(object map[string]any, key, value string, keep func(string) bool) {
	metadata, ok := member(object, "metadata")
	if !ok {
		return
	}
	annotations, _ := member(metadata, "annotations")
	old, isText := annotations[key].(string)
	switch {
	case isText && keep(old), !isText && annotations[key] != nil, value == "" && old == "":
		return
	}
	p.add(target{base: metadata, pointer: "/metadata", path: []string{"annotations", key}, value: value})
}

// add emits the operation for a target. Its parents that are missing or null are
// added as whole objects; adding a member that is null replaces it.
func (p *patch) add(t target) {
	at, pointer := t.base, t.pointer
	for i, name := range t.path {
		pointer += "/" + escape(name)
		rest := t.path[i+1:]
		if parent, pending := p.anchors[pointer]; pending {
			fill(parent, rest, t.value)
			return
		}
		next, isObject := at[name].(map[string]any)
		if isObject && len(rest) > 0 {
			at = next
			continue
		}
		if len(rest) == 0 {
			p.operations = append(p.operations, jsonpatch.NewOperation("add", pointer, t.value))
			return
		}
		if at[name] != nil {
			return
		}
		anchor := map[string]any{}
		fill(anchor, rest, t.value)
		p.anchors[pointer] = anchor
		p.operations = append(p.operations, jsonpatch.NewOperation("add", pointer, anchor))
		return
	}
}

// fill puts a value into an object, below new objects as needed.
func fill(object map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		next, ok := object[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[name] = next
		}
		object = next
	}
	object[path[len(path)-1]] = value
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escape(member string) string {
	return pointerEscapes.Replace(member)
}
