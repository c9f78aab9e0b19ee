// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// allowedBuiltins are the functions that a rule may call. A new one of OPA is not allowed until
// it is listed here. What a listed function costs grows with its input at most, and what it
// returns depends on nothing else (time.now_ns is pinned to the time of the request).
//
// Left out on purpose: what leaves the process or tells of it (http.send, net.lookup_ip_addr,
// opa.runtime), what differs between two runs (rand.intn, uuid.rfc4122), what holds or makes
// keys (crypto.x509.*, io.jwt.*, providers.aws.*), what may fetch a schema (json.*_schema),
// what turns a short text into hours of work and cannot be cancelled (bits.lsh,
// graph.reachable_paths, numbers.range, net.cidr_expand), and units.*, whose answers differ
// from those of Kubernetes (lib.quantities has the right ones).
var allowedBuiltins = slices.Concat(
	[]string{ // Operators and what the compiler makes of syntax.
		"and", "assign", "div", "eq", "equal", "gt", "gte", "lt", "lte", "minus", "mul", "neq", "or",
		"plus", "rem", "internal.member_2", "internal.member_3", "internal.print",
		"internal.template_string", "print", "set_diff", sized.Name, defined.Name,
	},
	[]string{ // Numbers and aggregates.
		"abs", "ceil", "count", "floor", "format_int", "max", "min", "product", "round", "sort", "sum",
		"to_number",
	},
	[]string{ // Types and sets.
		"is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string", "type_name",
		"intersection", "union",
	},
	[]string{ // Arrays and objects.
		"array.concat", "array.flatten", "array.reverse", "array.slice", "object.filter", "object.get",
		"object.keys", "object.remove", "object.subset", "object.union", "object.union_n", "json.filter", "json.patch",
		"json.remove",
	},
	[]string{ // Text.
		"concat", "contains", "endswith", "glob.match", "glob.quote_meta", "indexof", "indexof_n", "lower",
		"regex.find_all_string_submatch_n", "regex.find_n", "regex.is_valid", "regex.match",
		"regex.replace", "regex.split", "replace", "split", "sprintf", "startswith",
		"strings.any_prefix_match", "strings.any_suffix_match", "strings.count", "strings.reverse",
		"substring", "trim", "trim_left", "trim_prefix", "trim_right", "trim_space", "trim_suffix", "upper",
	},
	[]string{ // Encodings and digests.
		"base64.decode", "base64.encode", "base64.is_valid", "crypto.sha256", "hex.decode", "hex.encode",
		"json.is_valid", "json.marshal", "json.unmarshal", "urlquery.decode", "urlquery.encode",
		"yaml.is_valid", "yaml.marshal", "yaml.unmarshal",
	},
	[]string{ // Addresses, versions and times.
		"net.cidr_contains", "net.cidr_intersects", "net.cidr_is_valid", "net.cidr_merge",
		"semver.compare", "semver.is_valid", "time.add_date", "time.clock", "time.date", "time.diff",
		"time.format", "time.now_ns", "time.parse_duration_ns", "time.parse_ns",
		"time.parse_rfc3339_ns", "time.weekday", "uri.is_valid", "uri.parse",
	},
)

// capabilities returns what rules may use of OPA.
func capabilities() *ast.Capabilities {
	caps := ast.CapabilitiesForThisVersion()
	caps.Builtins = slices.DeleteFunc(slices.Clone(caps.Builtins), func(b *ast.Builtin) bool {
		return !slices.Contains(allowedBuiltins, b.Name)
	})
	caps.AllowNet = []string{}
	return caps
}

// newCompiler returns a compiler for rules, which bounds what the files of others than us compose. Capabilities are
// set here, since those given to a query are ignored once it has a compiler.
func newCompiler(ofOthers ...string) *ast.Compiler {
	return ast.NewCompiler().
		WithCapabilities(capabilities()).
		WithStrict(true).
		WithEnablePrintStatements(false).
		WithStageAfterID(ast.StageCheckRecursion, sizing(ofOthers))
}
