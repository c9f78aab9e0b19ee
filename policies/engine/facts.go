// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
)

// facts are what rules ask of every Pod, read once in Go: the containers, images and amounts by field path.
// The helpers of policies/lib give the same answers from the bare input; a fuzz test compares the two.
//
// All of it are finished values of Rego: a lazy one costs with each look at it, and is made a second time as
// soon as a rule passes it to a function.
type facts struct {
	*converter
	reader *reader
	base   fieldPath

	// pod is the Pod template as a whole.
	pod                                         *ast.Term
	containers, owners, volumes, claims, images members
	// started are the containers that run on their own when the Pod starts.
	started []*ast.Term
	// labels and annotations are those that a Pod gets, by the field path of the mapping that gives them.
	labels, annotations members
	// claimAnnotations are those that volume claims get, in the same way.
	claimAnnotations members
	amounts          *amounts
	sizes            sizes
}

// members are those of an object that is to be made.
type members = [][2]*ast.Term

// fieldPath is a field path.
type fieldPath struct {
	text string
	term *ast.Term
}

// factsOf reads the Pod and the volume claims of the input. It fails on what is none of JSON.
func (r *reader) factsOf(in Input) (*facts, error) {
	c := &converter{pairs: make(members, 0, termBlock)}
	base := r.path(in.PodPath, ".spec")
	f := &facts{converter: c, reader: r, base: base, amounts: newAmounts(r, c, base)}
	var err error
	if f.pod, err = c.convert(in.Pod); err != nil {
		return nil, err
	}
	f.ofPod(in.Pod)
	if err := f.ofMetadata(in); err != nil {
		return nil, err
	}
	return f, f.ofClaims(in.Object, in.Template)
}

func (f *facts) addTo(fields map[string]any) {
	for name, members := range map[string]members{
		"containers": f.containers, "owners": f.owners, "volumes": f.volumes, "claims": f.claims, "images": f.images,
	} {
		fields[name] = objectOf(members)
	}
	fields["started"] = ast.NewSet(f.started...)
	fields["pod_labels"], fields["pod_annotations"] = objectOf(f.labels), objectOf(f.annotations)
	fields["claim_annotations"] = objectOf(f.claimAnnotations)
	f.amounts.addTo(fields)
	fields["sizes"] = f.sizes.document(f)
}

// factNames are the members of the input that facts make.
var factNames = []string{
	"containers", "started", "owners", "volumes", "claims", "images", "pod_labels", "pod_annotations", "claim_annotations", "sizes",
	"quantities", "resources", "requested", "faults", "limited", "highest", "totals",
}

var containerLists = []string{"containers", "initContainers", ephemeralContainers}

const ephemeralContainers = "ephemeralContainers"

// ofPod reads the Pod template.
func (f *facts) ofPod(pod map[string]any) {
	spec, value := objectAt(pod, "spec"), memberOf(f.pod, "spec")
	f.sizes.ofAnnotations(objectAt(pod, "metadata")["annotations"])
	f.owner(value)
	f.amounts.ofBounds(f.base, spec, uncounted)
	f.amounts.ofOverhead(f.reader.path(f.base.text, ".overhead"), spec["overhead"])
	for _, list := range containerLists {
		each(spec[list], memberOf(value, list), func(index string, member map[string]any, value *ast.Term) {
			f.container(list, f.reader.path(f.base.text, "."+list+"[", index, "]"), member, value)
		})
	}
	each(spec["volumes"], memberOf(value, "volumes"), func(index string, volume map[string]any, value *ast.Term) {
		f.volume(f.reader.path(f.base.text, ".volumes[", index, "]"), volume, value)
	})
}

// owner notes what of the Pod containers may have too.
func (f *facts) owner(spec *ast.Term) {
	base := len(f.pairs)
	for _, field := range []string{"securityContext", "resources"} {
		if value := memberOf(spec, field); value != nil {
			f.pairs = append(f.pairs, [2]*ast.Term{ast.InternedTerm(field), value})
		}
	}
	f.owners = append(f.owners, [2]*ast.Term{f.base.term, f.term(objectOf(f.pairs[base:]))})
	f.pairs = f.pairs[:base]
}

// container reads one container.
func (f *facts) container(list string, path fieldPath, container map[string]any, value *ast.Term) {
	pair := [2]*ast.Term{path.term, objectOrEmpty(value)}
	if list != ephemeralContainers {
		f.started = append(f.started, path.term)
	}
	f.containers, f.owners = append(f.containers, pair), append(f.owners, pair)
	f.amounts.ofContainer(list, path, container)
	f.sizes.ofContainer(container)
	f.image(f.reader.path(path.text, ".image"), container["image"])
}

func (f *facts) volume(path fieldPath, volume map[string]any, value *ast.Term) {
	f.volumes = append(f.volumes, [2]*ast.Term{path.term, objectOrEmpty(value)})
	if image := volume["image"]; image != nil {
		f.image(f.reader.path(path.text, ".image.reference"), objectAt(volume, "image")["reference"])
	}
	if limit := objectAt(volume, "emptyDir")["sizeLimit"]; limit != nil {
		f.amounts.add(f.reader.path(path.text, ".emptyDir.sizeLimit"), limit)
	}
	if volume["ephemeral"] != nil {
		template, value := objectAt(objectAt(volume, "ephemeral"), "volumeClaimTemplate"), memberOf(value, "ephemeral")
		f.claim(f.reader.path(path.text, ".ephemeral.volumeClaimTemplate"), template, memberOf(value, "volumeClaimTemplate"))
	}
}

// ofMetadata reads the labels and annotations of the Pod's template and those that a claim adds.
func (f *facts) ofMetadata(in Input) error {
	added, err := f.convert(objectAt(objectAt(in.Object, "spec"), "additionalPodMetadata"))
	if err != nil {
		return err
	}
	own, above := memberOf(f.pod, "metadata"), f.reader.path(in.PodPath, ".metadata")
	for list, name := range map[*members]string{&f.labels: "labels", &f.annotations: "annotations"} {
		if given := memberOf(own, name); given != nil {
			*list = append(*list, [2]*ast.Term{f.reader.path(above.text, ".", name).term, given})
		}
		if given := memberOf(added, name); given != nil {
			*list = append(*list, [2]*ast.Term{f.reader.path("spec.additionalPodMetadata.", name).term, given})
		}
	}
	return nil
}

// ofClaims reads the volume claim templates of the object, and those of the template that it borrows from: without the
// ones that the object replaces.
func (f *facts) ofClaims(object, template map[string]any) error {
	overrides, own := objectAt(template, "spec")["volumeClaimTemplatesPolicy"] == "Overrides", map[string]bool{}
	err := f.ofTemplates("spec.volumeClaimTemplates[", object, func(name string) bool {
		if overrides && name != "" {
			own[name] = true
		}
		return true
	})
	if err != nil {
		return err
	}
	return f.ofTemplates("template.spec.volumeClaimTemplates[", template, func(name string) bool { return !own[name] })
}

func (f *facts) ofTemplates(path string, object map[string]any, counts func(name string) bool) error {
	templates := objectAt(object, "spec")["volumeClaimTemplates"]
	value, err := f.convert(templates)
	if err != nil {
		return err
	}
	each(templates, value, func(index string, template map[string]any, value *ast.Term) {
		if name, _ := objectAt(template, "metadata")["name"].(string); counts(name) {
			f.claim(f.reader.path(path, index, "]"), template, value)
		}
	})
	return nil
}

// claim reads a volume claim template.
func (f *facts) claim(path fieldPath, template map[string]any, value *ast.Term) {
	at := f.reader.path(path.text, ".spec")
	f.claims = append(f.claims, [2]*ast.Term{at.term, objectOrEmpty(memberOf(value, "spec"))})
	f.amounts.ofClaim(at, objectAt(template, "spec"))
	if given := memberOf(memberOf(value, "metadata"), "annotations"); given != nil {
		f.claimAnnotations = append(f.claimAnnotations, [2]*ast.Term{f.reader.path(path.text, ".metadata.annotations").term, given})
	}
}

// image reads one reference; absent and null count as empty.
func (f *facts) image(path fieldPath, written any) {
	image := notImage
	if text, ok := written.(string); ok {
		image = ofText(f.reader.images, text)
	}
	f.images = append(f.images, [2]*ast.Term{path.term, image})
}

// each visits the members of an array or object and their values; what is no object counts as an empty one.
func each(collection any, value *ast.Term, visit func(index string, member map[string]any, value *ast.Term)) {
	eachValue(collection, func(index string, raw any) {
		member, _ := raw.(map[string]any)
		visit(index, member, elementOf(value, index))
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

// elementOf is a member of an array or object by the index that each gives, nil when there is none.
func elementOf(collection *ast.Term, index string) *ast.Term {
	if collection == nil {
		return nil
	}
	if array, ok := collection.Value.(*ast.Array); ok {
		if i, err := strconv.Atoi(index); err == nil && i < array.Len() {
			return array.Elem(i)
		}
		return nil
	}
	return memberOf(collection, index)
}

// memberOf is a member of an object, nil when there is none.
func memberOf(object *ast.Term, key string) *ast.Term {
	if object == nil {
		return nil
	}
	members, ok := object.Value.(ast.Object)
	if !ok {
		return nil
	}
	return members.Get(ast.InternedTerm(key))
}

func objectOrEmpty(value *ast.Term) *ast.Term {
	if value != nil {
		if _, ok := value.Value.(ast.Object); ok {
			return value
		}
	}
	return ast.InternedEmptyObject
}

func objectOf(pairs members) ast.Value {
	if len(pairs) == 0 {
		return ast.InternedEmptyObject.Value
	}
	return ast.NewObject(pairs...)
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
