// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

// facts are what rules ask of every Pod, read once in Go: the containers, images and amounts by field path.
// The helpers of policies/lib give the same answers from the bare input; a fuzz test compares the two.
type facts struct {
	reader *reader
	base   string

	// What most rules visit is converted at once, the rest as rules ask for it.
	converter                                   *converter
	containers, owners, volumes, claims, images [][2]*ast.Term
	amounts                                     *amounts
	sizes                                       sizes
	// err is the first value that is none of JSON.
	err error
}

func newFacts(r *reader, podPath string) *facts {
	base := r.path(podPath, ".spec")
	return &facts{
		reader: r, base: base, amounts: newAmounts(r, base), sizes: sizes{env: map[string]any{}},
		converter: &converter{pairs: make([][2]*ast.Term, 0, termBlock)},
	}
}

func (f *facts) addTo(fields map[string]any) {
	for name, members := range map[string][][2]*ast.Term{
		"containers": f.containers, "owners": f.owners, "volumes": f.volumes, "claims": f.claims, "images": f.images,
	} {
		fields[name] = ast.NewObject(members...)
	}
	f.amounts.addTo(fields)
	fields["sizes"] = map[string]any{
		"containers": len(f.containers), "volumes": len(f.volumes), "env": f.sizes.env,
		"annotations": f.sizes.annotations, "commands": f.sizes.commands,
	}
}

var containerLists = []string{"containers", "initContainers", "ephemeralContainers"}

// ofPod reads the Pod template.
func (f *facts) ofPod(pod map[string]any) {
	spec := objectAt(pod, "spec")
	f.sizes.ofAnnotations(objectAt(pod, "metadata")["annotations"])
	f.owner(f.base, spec)
	f.amounts.ofBounds(f.base, spec)
	f.amounts.of(f.reader.path(f.base, ".overhead"), spec["overhead"])
	for _, list := range containerLists {
		each(spec[list], func(index string, member map[string]any) {
			f.container(list, f.reader.path(f.base, "."+list+"[", index, "]"), member)
		})
	}
	each(spec["volumes"], func(index string, volume map[string]any) {
		f.volume(f.reader.path(f.base, ".volumes[", index, "]"), volume)
	})
}

// owner notes what of the Pod containers may have too.
func (f *facts) owner(path string, spec map[string]any) {
	owned := map[string]any{}
	for _, field := range []string{"securityContext", "resources"} {
		if value, ok := spec[field]; ok {
			owned[field] = value
		}
	}
	f.owners = append(f.owners, f.pair(path, owned))
}

// container reads one container.
func (f *facts) container(list, path string, container map[string]any) {
	pair := f.pair(path, container)
	f.containers, f.owners = append(f.containers, pair), append(f.owners, pair)
	f.amounts.ofContainer(list, path, container)
	f.sizes.ofContainer(path, container)
	f.image(f.reader.path(path, ".image"), container["image"])
}

func (f *facts) volume(path string, volume map[string]any) {
	f.volumes = append(f.volumes, f.pair(path, volume))
	if image := volume["image"]; image != nil {
		f.image(f.reader.path(path, ".image.reference"), objectAt(volume, "image")["reference"])
	}
	if limit := objectAt(volume, "emptyDir")["sizeLimit"]; limit != nil {
		f.amounts.add(f.reader.path(path, ".emptyDir.sizeLimit"), limit)
	}
	if volume["ephemeral"] != nil {
		f.claim(f.reader.path(path, ".ephemeral.volumeClaimTemplate.spec"),
			objectAt(objectAt(objectAt(volume, "ephemeral"), "volumeClaimTemplate"), "spec"))
	}
}

// ofClaims reads the volume claim templates of the object.
func (f *facts) ofClaims(object map[string]any) {
	each(objectAt(object, "spec")["volumeClaimTemplates"], func(index string, template map[string]any) {
		f.claim(f.reader.path("spec.volumeClaimTemplates[", index, "].spec"), objectAt(template, "spec"))
	})
}

func (f *facts) claim(path string, spec map[string]any) {
	f.claims = append(f.claims, f.pair(path, spec))
	for _, bound := range boundNames {
		f.amounts.of(f.reader.path(path, ".resources.", bound), objectAt(spec, "resources")[bound])
	}
}

// image reads one reference; absent and null count as empty.
func (f *facts) image(path string, written any) {
	image := notImage
	if text, ok := written.(string); ok {
		image = ofText(f.reader.images, text)
	}
	f.images = append(f.images, [2]*ast.Term{f.converter.term(ast.String(path)), image})
}

// pair is a path with the object there, empty when there is none.
func (f *facts) pair(path string, object map[string]any) [2]*ast.Term {
	value, err := f.converter.object(object)
	if err != nil {
		f.err, value = err, ast.InternedEmptyObject
	}
	return [2]*ast.Term{f.converter.term(ast.String(path)), value}
}

// each visits the members of an array or object; what is no object counts as an empty one.
func each(collection any, visit func(index string, member map[string]any)) {
	eachValue(collection, func(index string, raw any) {
		member, _ := raw.(map[string]any)
		visit(index, member)
	})
}

func eachValue(collection any, visit func(index string, member any)) {
	switch members := collection.(type) {
	case []any:
		for i, member := range members {
			visit(strconv.Itoa(i), member)
		}
	case map[string]any:
		for key, member := range members {
			visit(key, member)
		}
	}
}

// writtenText is a value as text: a string as it is, anything else as JSON.
func writtenText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	converted, err := ast.InterfaceToValue(value)
	if err != nil {
		return ""
	}
	return converted.String()
}
