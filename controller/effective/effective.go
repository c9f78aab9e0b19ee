// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package effective

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Where the Pod of an object stands, relative to that object.
const (
	// PathOwn is the path in Sandboxes and templates.
	PathOwn = "spec.podTemplate"
	// PathTemplate is the path for pools and claims, which borrow their template's Pod.
	PathTemplate = "template.spec.podTemplate"
)

// Result is what an object would run.
type Result struct {
	// Pod has the members metadata and spec. It is nil for an object without a Pod,
	// such as a pool whose template does not exist.
	Pod map[string]any
	// Path is where the Pod stands: PathOwn or PathTemplate.
	Path string
	// VolumeClaimTemplates are the volumes that outlive the Pod. They replace volumes
	// of the Pod that have their name; Pod is shown as it was written.
	VolumeClaimTemplates []any
	// Errors say what of a claim could not be merged; it is missing from the Pod.
	Errors field.ErrorList
}

// OfOwn returns the Pod of a Sandbox or of a template as such.
func OfOwn(object map[string]any) Result {
	result := blueprint(object)
	result.Path = PathOwn
	return result
}

// OfPool returns the Pod of a pool's members. The template is nil if there is none.
func OfPool(template map[string]any) Result {
	if template == nil {
		return Result{Path: PathTemplate}
	}
	result := blueprint(template)
	result.Path = PathTemplate
	secure(result.Pod, template)
	return result
}

// OfClaim returns the Pod of a claim's Sandbox. The template is nil if there is none.
func OfClaim(claim, template map[string]any) Result {
	result := OfPool(template)
	if template == nil {
		return result
	}
	m := merge{claim: objectAt(claim, "spec"), template: objectAt(template, "spec")}
	m.metadata(result.Pod)
	m.environment(result.Pod)
	result.VolumeClaimTemplates = m.volumes(result.VolumeClaimTemplates)
	result.Errors = m.errs
	return result
}

// blueprint copies the Pod out of a Sandbox or template. Reserved keys never reach a
// Pod from there, so they are not part of it.
func blueprint(object map[string]any) Result {
	spec := objectAt(object, "spec")
	source := objectAt(spec, "podTemplate")
	metadata := map[string]any{}
	for _, form := range []string{"labels", "annotations"} {
		kept := map[string]any{}
		for key, value := range objectAt(source, "metadata", form) {
			if !keys.ReservedInPod(key) {
				kept[key] = value
			}
		}
		if len(kept) > 0 {
			metadata[form] = kept
		}
	}
	podSpec := runtime.DeepCopyJSON(objectAt(source, "spec"))
	if podSpec == nil {
		podSpec = map[string]any{}
	}
	volumes, _ := spec["volumeClaimTemplates"].([]any)
	copied, _ := runtime.DeepCopyJSONValue(volumes).([]any)
	return Result{Pod: map[string]any{"metadata": metadata, "spec": podSpec}, VolumeClaimTemplates: copied}
}

// secure applies what every Sandbox made from a template gets: no token of the
// Kubernetes API, and public resolvers where the template's egress is the default.
func secure(pod, template map[string]any) {
	spec := objectAt(pod, "spec")
	if spec["automountServiceAccountToken"] == nil {
		spec["automountServiceAccountToken"] = false
	}
	if policy, _ := spec[fieldDNSPolicy].(string); opensByProfile(template) && policy == "" {
		spec[fieldDNSPolicy] = dnsNone
		spec[fieldDNSConfig] = map[string]any{fieldNameservers: []any{"8.8.8.8", "1.1.1.1"}}
	}
}

// objectAt follows a path of objects; what is no object counts as absent.
func objectAt(object map[string]any, path ...string) map[string]any {
	for _, member := range path {
		object, _ = object[member].(map[string]any)
	}
	return object
}

// ensure returns the object at a member, made when it is absent.
func ensure(object map[string]any, member string) map[string]any {
	if existing, ok := object[member].(map[string]any); ok {
		return existing
	}
	made := map[string]any{}
	object[member] = made
	return made
}

// withoutKeys copies an object without some members.
func withoutKeys(object map[string]any, names ...string) map[string]any {
	copied := maps.Clone(object)
	for _, name := range names {
		delete(copied, name)
	}
	return copied
}
