// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

const (
	operationCreate = judge.OperationCreate
	operationUpdate = judge.OperationUpdate

	kindScale        = "Scale"
	kindConfigMap    = "ConfigMap"
	subresourceScale = "scale"
)

// review is an admission request whose objects are decoded.
type review struct {
	// id is the UID of the request.
	id              string
	operation, kind string
	namespace, name string
	object, old     map[string]any
	user            engine.UserInfo
	dryRun          bool
}

// read decodes a request as it was written: no Go type of ours stands between the
// user and the rules.
func read(req admission.Request) (review, error) {
	r := review{
		id: string(req.UID), operation: string(req.Operation), kind: req.Kind.Kind, namespace: req.Namespace, name: req.Name,
		user:   engine.UserInfo{Username: req.UserInfo.Username, UID: req.UserInfo.UID, Groups: req.UserInfo.Groups},
		dryRun: ptr.Deref(req.DryRun, false),
	}
	for _, part := range []struct {
		raw  []byte
		into *map[string]any
	}{{req.Object.Raw, &r.object}, {req.OldObject.Raw, &r.old}} {
		if len(part.raw) == 0 {
			continue
		}
		if err := json.Unmarshal(part.raw, part.into); err != nil {
			return r, fmt.Errorf("read the object: %w", err)
		}
		// Nobody judges who wrote which field, which may be as long as the object.
		delete(objectAt(*part.into, "metadata"), "managedFields")
	}
	if r.object == nil {
		return r, fmt.Errorf("read the object: the request for %s %s/%s has none", r.kind, r.namespace, r.name)
	}
	if name := textAt(r.object, "metadata", "name"); name != "" {
		r.name = name
	}
	return r, nil
}

// leaving reports whether the stored object is on its way out: then only finalizers can
// change, and nobody may stand in their way. What a request says of itself is the user's
// to write.
func (r review) leaving() bool {
	return r.operation == operationUpdate && objectAt(r.old, "metadata")["deletionTimestamp"] != nil
}

// harmless reports whether an update can bring nothing in: neither the spec nor
// judged metadata changed, or the change only takes away.
func (r review) harmless() bool {
	if r.operation != operationUpdate {
		return false
	}
	spec, before := objectAt(r.object, "spec"), objectAt(r.old, "spec")
	if r.kind == kindScale {
		return number(spec["replicas"]) <= number(before["replicas"])
	}
	if !reflect.DeepEqual(judgedMetadata(r.object), judgedMetadata(r.old)) {
		return false
	}
	return reflect.DeepEqual(spec, before) || r.suspends(spec, before) || r.shrinks(spec, before)
}

// lastApplied is where kubectl notes what was applied; it repeats the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// judgedMetadata is the metadata that somebody may have something to say about.
func judgedMetadata(object map[string]any) map[string]any {
	metadata := objectAt(object, "metadata")
	annotations := maps.Clone(objectAt(metadata, "annotations"))
	delete(annotations, lastApplied)
	judged := map[string]any{"labels": metadata["labels"], "ownerReferences": metadata["ownerReferences"]}
	if len(annotations) > 0 {
		judged["annotations"] = annotations
	}
	return judged
}

// suspended is an operating mode.
const suspended = "Suspended"

// suspends reports whether a Sandbox is suspended and nothing else of it changes.
func (r review) suspends(spec, before map[string]any) bool {
	return r.kind == engine.KindSandbox && spec["operatingMode"] == suspended && equalWithout(spec, before, "operatingMode")
}

// shrinks reports whether a pool gets smaller and nothing else of it changes.
func (r review) shrinks(spec, before map[string]any) bool {
	return r.kind == engine.KindSandboxWarmPool && number(spec["replicas"]) <= number(before["replicas"]) &&
		equalWithout(spec, before, "replicas")
}

func equalWithout(a, b map[string]any, members ...string) bool {
	left, right := maps.Clone(a), maps.Clone(b)
	for _, member := range members {
		delete(left, member)
		delete(right, member)
	}
	return reflect.DeepEqual(left, right)
}

// ofTheEnd are the members of a spec that say when and how an object ends. So does an
// operating mode that suspends it.
var ofTheEnd = map[string][]string{
	engine.KindSandbox: {"shutdownTime", "shutdownPolicy"}, engine.KindSandboxClaim: {"lifecycle"},
}

// change is how much of the spec an update touches.
func (r review) change() judge.Change {
	spec, before := objectAt(r.object, "spec"), objectAt(r.old, "spec")
	end := ofTheEnd[r.kind]
	if spec["operatingMode"] == suspended {
		end = slices.Concat(end, []string{"operatingMode"})
	}
	switch {
	case r.operation == operationUpdate && reflect.DeepEqual(spec, before):
		return judge.ChangesNothing
	case r.operation == operationUpdate && equalWithout(spec, before, end...):
		return judge.ChangesEnd
	default:
		return judge.ChangesSpec
	}
}

// scaled turns the scaling of a pool into an update of the pool.
func (r review) scaled(pool map[string]any) review {
	size := func(replicas any) map[string]any {
		spec := maps.Clone(objectAt(pool, "spec"))
		spec["replicas"] = replicas
		resized := maps.Clone(pool)
		resized["spec"] = spec
		return resized
	}
	r.kind = engine.KindSandboxWarmPool
	r.object, r.old = size(objectAt(r.object, "spec")["replicas"]), size(objectAt(r.old, "spec")["replicas"])
	return r
}

// number reads a count. A pool or scale without one has none to grow from.
func number(value any) float64 {
	switch value := value.(type) {
	case int64:
		return float64(value)
	case float64:
		return value
	default:
		return 0
	}
}

// objectAt follows a path of objects; what is no object counts as absent.
func objectAt(object map[string]any, path ...string) map[string]any {
	for _, member := range path {
		object, _ = object[member].(map[string]any)
	}
	return object
}

func textAt(object map[string]any, path ...string) string {
	last := len(path) - 1
	text, _ := objectAt(object, path[:last]...)[path[last]].(string)
	return text
}
