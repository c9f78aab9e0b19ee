// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

// facts are what rules ask of every Pod, read once in Go: the containers, images, limits and quantities
// by field path. The helpers of policies/lib give the same answers from the bare input; a fuzz test
// compares the two.
type facts struct {
	reader    *reader
	converter *converter
	base      string

	containers, volumes, claims, images, resources, quantities [][2]*ast.Term
}

func newFacts(r *reader, c *converter, podPath string) *facts {
	return &facts{reader: r, converter: c, base: podPath + ".spec"}
}

func (f *facts) addTo(fields map[string]any) {
	for name, members := range map[string][][2]*ast.Term{
		"containers": f.containers, "volumes": f.volumes, "claims": f.claims, "images": f.images,
		"resources": f.resources, "quantities": f.quantities,
	} {
		fields[name] = f.converter.term(ast.NewObject(members...))
	}
}

var containerLists = []string{"containers", "initContainers", "ephemeralContainers"}

// ofPod reads the Pod template.
func (f *facts) ofPod(pod ast.Value) {
	spec := asObject(memberOf(pod, "spec"))
	f.bounds(f.base, spec)
	f.amounts(f.base+".overhead", memberOf(spec, "overhead"))
	for _, list := range containerLists {
		each(memberOf(spec, list), func(index string, member *ast.Term) {
			f.container(f.base+"."+list+"["+index+"]", member)
		})
	}
	each(memberOf(spec, "volumes"), func(index string, member *ast.Term) {
		f.volume(f.base+".volumes["+index+"]", objectTerm(member))
	})
}

// container reads one container; what is no object counts as an empty one.
func (f *facts) container(path string, member *ast.Term) {
	member = objectTerm(member)
	f.containers = append(f.containers, f.pair(path, member))
	f.bounds(path, member.Value)
	f.image(path+".image", memberOf(member.Value, "image"))
}

func (f *facts) volume(path string, member *ast.Term) {
	volume := member.Value
	f.volumes = append(f.volumes, f.pair(path, member))
	if image := memberOf(volume, "image"); image != nil {
		f.image(path+".image.reference", memberOf(image, "reference"))
	}
	if limit := memberOf(memberOf(volume, "emptyDir"), "sizeLimit"); limit != nil {
		f.quantities = append(f.quantities, f.pair(path+".emptyDir.sizeLimit", f.quantity(limit)))
	}
	if ephemeral := memberOf(volume, "ephemeral"); ephemeral != nil {
		f.claim(path+".ephemeral.volumeClaimTemplate.spec", memberOf(memberOf(ephemeral, "volumeClaimTemplate"), "spec"))
	}
}

// ofClaims reads the volume claim templates of the object.
func (f *facts) ofClaims(object ast.Value) {
	each(memberOf(memberOf(object, "spec"), "volumeClaimTemplates"), func(index string, template *ast.Term) {
		f.claim("spec.volumeClaimTemplates["+index+"].spec", memberOf(template.Value, "spec"))
	})
}

func (f *facts) claim(path string, spec ast.Value) {
	f.claims = append(f.claims, f.pair(path, f.converter.term(asObject(spec))))
	for _, bound := range []string{"limits", "requests"} {
		f.amounts(path+".resources."+bound, memberOf(memberOf(spec, "resources"), bound))
	}
}

// bounds reads the limits and requests of a container or of the Pod.
func (f *facts) bounds(path string, owner ast.Value) {
	resources := memberOf(owner, "resources")
	f.resources = append(f.resources, f.pair(path, f.converter.term(ast.NewObject(
		[2]*ast.Term{ast.InternedTerm("limits"), f.amounts(path+".resources.limits", memberOf(resources, "limits"))},
		[2]*ast.Term{ast.InternedTerm("requests"), f.amounts(path+".resources.requests", memberOf(resources, "requests"))},
	))))
}

// amounts reads the quantities of one mapping and returns them by name.
func (f *facts) amounts(path string, written ast.Value) *ast.Term {
	object, ok := written.(ast.Object)
	if !ok || object.Len() == 0 {
		return ast.InternedEmptyObject
	}
	named := make([][2]*ast.Term, 0, object.Len())
	object.Foreach(func(key, value *ast.Term) {
		name, ok := key.Value.(ast.String)
		if _, null := value.Value.(ast.Null); !ok || null {
			return
		}
		quantity := f.quantity(value.Value)
		named = append(named, [2]*ast.Term{key, quantity})
		f.quantities = append(f.quantities, f.pair(path+"."+string(name), quantity))
	})
	return f.converter.term(ast.NewObject(named...))
}

func (f *facts) quantity(written ast.Value) *ast.Term {
	return f.reader.quantities.of(writtenText(written))
}

// image reads one reference; absent and null count as empty.
func (f *facts) image(path string, written ast.Value) {
	image := notImage
	if text, ok := written.(ast.String); ok {
		image = f.reader.images.of(string(text))
	}
	f.images = append(f.images, f.pair(path, image))
}

func (f *facts) pair(path string, value *ast.Term) [2]*ast.Term {
	return [2]*ast.Term{f.converter.term(ast.String(path)), value}
}

// memberOf returns the member of an object, nil when it is absent, null, or there is no object.
func memberOf(document ast.Value, key string) ast.Value {
	object, ok := document.(ast.Object)
	if !ok {
		return nil
	}
	member := object.Get(ast.InternedTerm(key))
	if member == nil {
		return nil
	}
	if _, null := member.Value.(ast.Null); null {
		return nil
	}
	return member.Value
}

// objectTerm returns the term, that of an empty object if it is none.
func objectTerm(term *ast.Term) *ast.Term {
	if _, ok := term.Value.(ast.Object); ok {
		return term
	}
	return ast.InternedEmptyObject
}

func asObject(value ast.Value) ast.Value {
	if object, ok := value.(ast.Object); ok {
		return object
	}
	return ast.InternedEmptyObject.Value
}

// each visits the members of an array or object.
func each(collection ast.Value, visit func(index string, member *ast.Term)) {
	switch members := collection.(type) {
	case *ast.Array:
		for i := range members.Len() {
			visit(strconv.Itoa(i), members.Elem(i))
		}
	case ast.Object:
		members.Foreach(func(key, member *ast.Term) { visit(writtenText(key.Value), member) })
	}
}

// writtenText is a value as text: a string as it is, anything else as JSON.
func writtenText(value ast.Value) string {
	if text, ok := value.(ast.String); ok {
		return string(text)
	}
	return value.String()
}
