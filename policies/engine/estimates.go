// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// sharing are the builtins that make a collection of the members of what they are given.
var sharing = []string{
	"and", "array.slice", "intersection", "json.filter", "json.remove", "minus", "object.filter", "object.keys", "object.remove", "set_diff",
}

// growing are the builtins that make something of its own, most of them longer than what they are given, with an
// estimate of how long.
var growing = map[string]func(operands []*ast.Term) float64{
	"array.concat": together, "array.flatten": together, "base64.encode": together, "concat": together, "hex.encode": together,
	"internal.template_string": together, sized.Name: together, "json.marshal": together, "urlquery.decode": together, "urlquery.encode": together, "yaml.marshal": together,
	"union": together, "or": together, "object.union": together, "object.union_n": together, "strings.reverse": together, "upper": together, "lower": together,
	"split": func(operands []*ast.Term) float64 {
		text := plain(operands[0])
		return float64(len(text)) + memberSize*float64(strings.Count(text, plain(operands[1])))
	},
	"json.unmarshal": decoded, "yaml.unmarshal": decoded, "json.is_valid": decoded, "yaml.is_valid": decoded,
	"regex.split": eachOf(1), "regex.find_n": eachOf(1), "indexof_n": eachOf(0),
	"regex.find_all_string_submatch_n": func(operands []*ast.Term) float64 {
		return eachOf(1)(operands) * (1 + ofText(groups, plain(operands[0])))
	},
	"base64.decode": together, "hex.decode": together, "array.reverse": together, "sort": together, "sum": together, "max": together, "min": together,
	"glob.quote_meta": func(operands []*ast.Term) float64 { return 2 * together(operands) },
	"json.patch":      patched,
	"regex.replace": func(operands []*ast.Term) float64 {
		return (length(operands[0]) + 1) * (length(operands[2]) + 1)
	},
	"replace": func(operands []*ast.Term) float64 {
		text, old := plain(operands[0]), plain(operands[1])
		return length(operands[0]) + float64(strings.Count(text, old))*length(operands[2])
	},
	"sprintf": func(operands []*ast.Term) float64 {
		format, longest := plain(operands[0]), 0.0
		if arguments, ok := operands[1].Value.(*ast.Array); ok {
			for i := range arguments.Len() {
				longest = max(longest, length(arguments.Elem(i)))
			}
		}
		if padded.MatchString(format) {
			longest = max(longest, mostPadding)
		}
		return float64(len(format)) + float64(strings.Count(format, "%"))*longest
	},
}

// decoded is of JSON or YAML: each member has a sign or a line of its own.
func decoded(operands []*ast.Term) float64 {
	text := plain(operands[0])
	members := 0
	for _, sign := range ",:[{\n" {
		members += strings.Count(text, string(sign))
	}
	return float64(len(text)) + memberSize*float64(members)
}

// eachOf is as if each character of a text became a member.
func eachOf(operand int) func([]*ast.Term) float64 {
	return func(operands []*ast.Term) float64 { return memberSize * length(operands[operand]) }
}

// patched is of an object that each copy in the patches may double.
func patched(operands []*ast.Term) float64 {
	copies := 0.0
	patches, ok := operands[1].Value.(*ast.Array)
	if !ok {
		return 0 // It is an error anyway.
	}
	patches.Foreach(func(patch *ast.Term) {
		if object, ok := patch.Value.(ast.Object); ok {
			if op := object.Get(ast.InternedTerm("op")); op != nil && plain(op) == "copy" {
				copies++
			}
		}
	})
	return together(operands) * math.Exp2(copies)
}

// comparing are the builtins that look at all of one operand for each part of another, with an estimate of how often.
var comparing = map[string]func(operands []*ast.Term) float64{
	"trim": product, "trim_left": product, "trim_right": product,
	"strings.any_prefix_match": product, "strings.any_suffix_match": product, "object.subset": product,
	"regex.is_valid": func(operands []*ast.Term) float64 { return programOf(plain(operands[0])) },
	"regex.match":    expression(0, 1), "regex.split": expression(0, 1), "regex.find_n": expression(0, 1),
	"regex.find_all_string_submatch_n": expression(0, 1), "regex.replace": expression(1, 0), "glob.match": func(operands []*ast.Term) float64 {
		if len(plain(operands[0])) > mostProgram {
			return math.Inf(1)
		}
		return length(operands[0]) * length(operands[2])
	},
}

func product(operands []*ast.Term) float64 { return length(operands[0]) * length(operands[1]) }

func expression(pattern, text int) func([]*ast.Term) float64 {
	return func(operands []*ast.Term) float64 {
		return programOf(plain(operands[pattern])) * (length(operands[text]) + 1)
	}
}

// mostProgram is of an expression, in steps: OPA remembers a hundred of them, whatever their size.
const mostProgram = 1 << 15

// programs are the sizes of expressions.
var programs = newCache(func(pattern string) float64 {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 1 // It is an error anyway.
	}
	return stepsOf(parsed)
})

// programOf is beyond all measure for one that is not to be remembered.
func programOf(pattern string) float64 {
	if size := ofText(programs, pattern); size <= mostProgram {
		return size
	}
	return math.Inf(1)
}

// stepsOf counts what a part of an expression becomes: repeats are written out.
func stepsOf(part *syntax.Regexp) float64 {
	steps := 1 + float64(len(part.Rune))
	for _, sub := range part.Sub {
		steps += stepsOf(sub)
	}
	if part.Op == syntax.OpRepeat {
		steps *= float64(max(part.Min, part.Max, 1))
	}
	return steps
}

// groups are the numbers of groups of expressions: each match has a text for each of them.
var groups = newCache(func(pattern string) float64 {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0 // It is an error anyway.
	}
	return float64(parsed.MaxCap())
})

// padded are formats that make a text as long as they say; Go takes widths up to a million.
var padded = regexp.MustCompile(`[0-9]{4}|\*`)

const mostPadding = 1e6

// computing are the builtins that take ever longer for longer numbers, with how many digits they are given.
var computing = map[string]func(operands []*ast.Term) float64{
	"abs": figures, "ceil": figures, "div": figures, "floor": figures, "format_int": figures, "minus": figures, "mul": figures,
	"plus": figures, "rem": figures, "round": figures, "to_number": figures,
	"product": func(operands []*ast.Term) float64 { return figures(membersOf(operands[0])) },
}

// figures are those of the numbers, and of the texts that are to be one.
func figures(numbers []*ast.Term) float64 {
	sum := 0.0
	for _, number := range numbers {
		switch value := number.Value.(type) {
		case ast.Number:
			sum += digits(string(value))
		case ast.String:
			sum += float64(len(value))
		}
	}
	return sum
}

func membersOf(collection *ast.Term) []*ast.Term {
	switch value := collection.Value.(type) {
	case *ast.Array:
		all := make([]*ast.Term, 0, value.Len())
		value.Foreach(func(member *ast.Term) { all = append(all, member) })
		return all
	case ast.Set:
		return value.Slice()
	default:
		return nil
	}
}

// shared counts the places of the members of collections, which the outcome may have too.
func shared(operands []*ast.Term) float64 {
	sum := 0.0
	for _, operand := range operands {
		if collection, ok := operand.Value.(interface{ Len() int }); ok {
			sum += float64(collection.Len())
		}
	}
	return placeSize * sum
}

func together(operands []*ast.Term) float64 {
	sum := 0.0
	for _, operand := range operands {
		sum += length(operand)
	}
	return sum
}

// length is that of a text, the digits of a number, and of a collection that of all members as often as they occur. It
// ends where it is more than any call may make.
func length(term *ast.Term) float64 {
	s := scale{}
	s.weigh(term)
	return s.weight
}

type scale struct{ weight float64 }

func (s *scale) full() bool { return s.weight > mostText }

func (s *scale) weigh(term *ast.Term) {
	switch value := term.Value.(type) {
	case ast.String:
		s.weight += float64(len(value))
	case ast.Number:
		s.weight += digits(string(value))
	case *ast.Array:
		value.Until(s.member)
	case ast.Set:
		value.Until(s.member)
	case ast.Object:
		value.Until(func(key, member *ast.Term) bool {
			s.weigh(key)
			return s.member(member)
		})
	default:
		s.weight++
	}
}

// member says whether there is no need to look at more.
func (s *scale) member(term *ast.Term) bool {
	s.weight += memberSize
	if !s.full() {
		s.weigh(term)
	}
	return s.full()
}

// digits counts those that the number has when it is written out.
func digits(number string) float64 {
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(number), "e")
	if !scientific {
		return float64(len(number))
	}
	power, err := strconv.ParseFloat(exponent, 64)
	if err != nil {
		return math.Inf(1)
	}
	return float64(len(mantissa)) + math.Abs(power)
}

func plain(term *ast.Term) string {
	text, _ := term.Value.(ast.String)
	return string(text)
}
