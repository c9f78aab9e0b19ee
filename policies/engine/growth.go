// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// What one call of a builtin may make. A text that is joined with itself thirty times has a billion characters,
// and a number that is squared as often cannot be cancelled: no deadline helps against either, so such a call is an
// error of its rule.
const (
	// mostText is in bytes; a member of a collection counts as memberSize.
	mostText   = 8 << 20
	memberSize = 32
	// mostDigits is of numbers.
	mostDigits = 1 << 14
)

// growing are the builtins that make something longer than what they are given, with an estimate of how long.
var growing = map[string]func(operands []*ast.Term) float64{
	"array.concat": together, "array.flatten": together, "base64.encode": together, "concat": together, "hex.encode": together,
	"internal.template_string": together, "json.marshal": together, "urlquery.encode": together, "yaml.marshal": together,
	"union": together, "or": together, "object.union": together, "strings.reverse": together, "upper": together, "lower": together,
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

// padded are formats that make a text as long as they say; Go takes widths up to a million.
var padded = regexp.MustCompile(`[0-9]{4}|\*`)

const mostPadding = 1e6

// computing are the builtins that compute with numbers.
var computing = []string{
	"abs", "ceil", "div", "floor", "format_int", "max", "min", "minus", "mul", "plus", "product", "rem", "round", "sum", "to_number",
}

func init() {
	for name, estimate := range growing {
		bound(name, estimate, mostText)
	}
	for _, name := range computing {
		bound(name, together, mostDigits)
	}
}

// bound makes a call of the builtin an error that would make more than so much.
func bound(name string, estimate func([]*ast.Term) float64, most float64) {
	inner := topdown.GetBuiltin(name)
	topdown.RegisterBuiltinFunc(name, func(call topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		if size := estimate(operands); size > most {
			return fmt.Errorf("it would make %.0f characters, at most %.0f are allowed", size, most)
		}
		return inner(call, operands, iter)
	})
}

func together(operands []*ast.Term) float64 {
	sum := 0.0
	for _, operand := range operands {
		sum += length(operand)
	}
	return sum
}

// length is that of a text, the digits of a number, and of a collection that of all members.
func length(term *ast.Term) float64 {
	switch value := term.Value.(type) {
	case ast.String:
		return float64(len(value))
	case ast.Number:
		return digits(string(value))
	case *ast.Array:
		sum := 0.0
		for i := range value.Len() {
			sum += memberSize + length(value.Elem(i))
		}
		return sum
	case ast.Set:
		sum := 0.0
		for _, member := range value.Slice() {
			sum += memberSize + length(member)
		}
		return sum
	case ast.Object:
		sum := 0.0
		value.Foreach(func(key, member *ast.Term) { sum += memberSize + length(key) + length(member) })
		return sum
	default:
		return 1
	}
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
