// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// parameterSchema checks the parameters of one rule and fills in what is not given.
type parameterSchema struct {
	schema   *jsonschema.Schema
	defaults map[string]any
}

var errNoReferences = errors.New("a schema of parameters may not refer to another document")

// noLoader keeps schemas from reading files or addresses.
type noLoader struct{}

// Load refuses.
func (noLoader) Load(string) (any, error) {
	return nil, errNoReferences
}

// newParameterSchema compiles the schemas of a rule's parameters. Each needs a description and
// a default that fits, so that a rule finds all of its parameters in its input.
func newParameterSchema(properties map[string]any) (*parameterSchema, error) {
	if properties == nil {
		properties = map[string]any{}
	}
	p := &parameterSchema{defaults: map[string]any{}}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, ok := properties[name].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("parameter %s has no schema; give it type, description and default", name)
		}
		if text, _ := property["description"].(string); text == "" {
			return nil, fmt.Errorf("parameter %s has no description", name)
		}
		value, ok := property["default"]
		if !ok {
			return nil, fmt.Errorf("parameter %s has no default", name)
		}
		p.defaults[name] = value
	}
	schema, err := compileSchema(map[string]any{
		"type": "object", "additionalProperties": false, "properties": properties,
	})
	if err != nil {
		return nil, err
	}
	p.schema = schema
	if faults := p.validate(p.defaults); len(faults) > 0 {
		return nil, fmt.Errorf("the default of parameter %s does not fit its schema: %s", faults[0].path, faults[0].reason)
	}
	return p, nil
}

func compileSchema(document map[string]any) (*jsonschema.Schema, error) {
	const name = "mem:///parameters.json"
	normalised, err := throughJSON(document)
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	compiler.AssertFormat()
	for _, format := range formats {
		compiler.RegisterFormat(format)
	}
	if err := compiler.AddResource(name, normalised); err != nil {
		return nil, err
	}
	schema, err := compiler.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("the parameters are no JSON schema: %w", err)
	}
	return schema, nil
}

// mergeParameters returns the parameters with those given in their place.
func mergeParameters(base, given map[string]any) map[string]any {
	merged := maps.Clone(base)
	for name, value := range given {
		merged[name] = inPlaceOf(base[name], value)
	}
	return merged
}

// inPlaceOf is a value that is given in the place of another: of mappings each member, which null takes away. Who names
// one ceiling keeps the others.
func inPlaceOf(there, given any) any {
	members, isMapping := given.(map[string]any)
	if !isMapping {
		return given
	}
	base, _ := there.(map[string]any)
	merged := make(map[string]any, len(base)+len(members))
	maps.Copy(merged, base)
	for name, member := range members {
		if member == nil {
			delete(merged, name)
			continue
		}
		merged[name] = inPlaceOf(base[name], member)
	}
	return merged
}

// formats are those that schemas of parameters may ask for besides the ones of JSON schema. What a rule cannot read would
// fail for each object, or count as nothing.
var formats = []*jsonschema.Format{
	{Name: "quantity", Validate: checkText(func(text string) error {
		if !readQuantity(text).valid {
			return errors.New(notQuantityReason)
		}
		return nil
	})},
	{Name: "cidr", Validate: checkText(func(text string) error {
		prefix, err := netip.ParsePrefix(text)
		if err == nil && prefix != prefix.Masked() {
			return fmt.Errorf("its first address is %s", prefix.Masked().Addr())
		}
		return err
	})},
}

// checkText is a check of texts; what is none is for the type to refuse.
func checkText(check func(text string) error) func(any) error {
	return func(value any) error {
		if text, ok := value.(string); ok {
			return check(text)
		}
		return nil
	}
}

// parameterFault is one value that does not fit.
type parameterFault struct {
	path, value, reason string
}

func (p *parameterSchema) validate(parameters map[string]any) []parameterFault {
	if parameters == nil {
		return nil
	}
	normalised, err := throughJSON(parameters)
	if err != nil {
		return []parameterFault{{reason: err.Error()}}
	}
	var invalid *jsonschema.ValidationError
	if err := p.schema.Validate(normalised); !errors.As(err, &invalid) {
		return nil
	}
	return leaves(invalid, normalised)
}

// leaves returns the innermost causes of a validation error.
func leaves(invalid *jsonschema.ValidationError, document any) []parameterFault {
	if len(invalid.Causes) == 0 {
		return []parameterFault{{
			path:   strings.Join(invalid.InstanceLocation, "."),
			value:  valueAt(document, invalid.InstanceLocation),
			reason: invalid.ErrorKind.LocalizedString(message.NewPrinter(language.English)),
		}}
	}
	var faults []parameterFault
	for _, cause := range invalid.Causes {
		faults = append(faults, leaves(cause, document)...)
	}
	return faults
}

func valueAt(document any, location []string) string {
	for _, step := range location {
		switch d := document.(type) {
		case map[string]any:
			document = d[step]
		case []any:
			var index int
			if _, err := fmt.Sscanf(step, "%d", &index); err == nil && index < len(d) {
				document = d[index]
			}
		}
	}
	return textOf(document)
}

// throughJSON returns the value with the types of decoded JSON, numbers as written.
func throughJSON(value any) (any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(data))
}

// textOf renders a value for a message: text as it is, anything else as JSON.
func textOf(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
