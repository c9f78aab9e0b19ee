// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/policy"
)

func TestDangerousBuiltinsAreNotAllowed(t *testing.T) {
	dangerous := []string{
		"http.send", "net.lookup_ip_addr", "opa.runtime", "rand.intn", "uuid.rfc4122", "json.match_schema",
		"json.verify_schema", "io.jwt.encode_sign", "io.jwt.encode_sign_raw", "io.jwt.decode_verify",
		"crypto.x509.parse_and_verify_certificates", "crypto.x509.parse_keypair", "crypto.parse_private_keys",
		"providers.aws.sign_req", "rego.parse_module", "trace", "numbers.range", "numbers.range_step",
		"net.cidr_expand", "graph.reachable_paths", "bits.lsh", "strings.replace_n", "strings.render_template",
		"walk", "graphql.parse", "units.parse", "units.parse_bytes",
	}
	caps := capabilities()
	if len(caps.Builtins) != len(allowedBuiltins) {
		t.Errorf("%d builtins, %d are listed: one that is listed does not exist", len(caps.Builtins), len(allowedBuiltins))
	}
	if caps.AllowNet == nil || len(caps.AllowNet) != 0 {
		t.Error("a host may be reached")
	}
	for _, builtin := range caps.Builtins {
		if slices.Contains(dangerous, builtin.Name) {
			t.Errorf("%s is allowed", builtin.Name)
		}
		if builtin.IsNondeterministic() && builtin.Name != "time.now_ns" {
			t.Errorf("%s is allowed and depends on more than its input", builtin.Name)
		}
	}
	for _, name := range dangerous {
		if _, ok := ast.BuiltinMap[name]; !ok {
			t.Errorf("%s is no builtin any more", name)
		}
	}
}

// What a call may make is bounded for every builtin, but for those whose outcome is little or a part of what they are
// given.
func TestEveryBuiltinHasItsBound(t *testing.T) {
	little := []string{
		"assign", "eq", "equal", "gt", "gte", "lt", "lte", "neq", "internal.member_2", "internal.member_3", "internal.print", "print", defined.Name,
		"count", "is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string", "type_name", "object.get",
		"contains", "endswith", "indexof", "startswith", "strings.count", "substring", "trim_prefix", "trim_space", "trim_suffix",
		"base64.is_valid", "crypto.sha256", "net.cidr_contains", "net.cidr_intersects", "net.cidr_is_valid", "net.cidr_merge",
		"semver.compare", "semver.is_valid", "time.add_date", "time.clock", "time.date", "time.diff", "time.format", "time.now_ns",
		"time.parse_duration_ns", "time.parse_ns", "time.parse_rfc3339_ns", "time.weekday", "uri.is_valid", "uri.parse",
	}
	for _, name := range allowedBuiltins {
		if name == holdBuiltin || name == panicBuiltin {
			continue
		}
		l := limitOf(name)
		if bounded := l.digits != nil || l.makes != nil || l.compares != nil; bounded == slices.Contains(little, name) {
			t.Errorf("%s is bounded: %t, and said to make little: %t", name, bounded, !bounded)
		}
	}
}

func TestTheDigestNamesTheBuild(t *testing.T) {
	mine := &set{basis: basis{Build: "v1.0.0", OPA: "1"}}
	for name, other := range map[string]basis{
		"build": {Build: "v1.0.1", OPA: "1"}, "evaluator": {Build: "v1.0.0", OPA: "2"}, "helpers": {Build: "v1.0.0", OPA: "1", Helpers: [32]byte{1}},
	} {
		if (&set{basis: other}).sum() == mine.sum() {
			t.Errorf("another %s has the same digest", name)
		}
	}
	if (&set{basis: mine.basis, held: map[string]bool{"a": true}}).sum() == mine.sum() {
		t.Error("a rule in quarantine changes nothing")
	}
}

func TestEveryCheckOfPodSecurityHasAPlaceAndARemedy(t *testing.T) {
	for _, check := range policy.DefaultChecks() {
		p, ok := places[check.ID]
		if !ok || p.remedy == "" || len(p.pod)+len(p.container)+len(p.volume) == 0 {
			t.Errorf("check %s has no place or no remedy", check.ID)
		}
	}
	if got, want := len(places), len(policy.DefaultChecks()); got != want {
		t.Errorf("%d places for %d checks", got, want)
	}
}

// Files that are only tried come to be remembered too, and whoever tries them chooses how long they are.
func TestWhatIsRememberedOfModulesIsBounded(t *testing.T) {
	for name, tc := range map[string]struct{ size, most int }{
		"short files": {1, maxCachedModules}, "long files": {1 << 20, maxCachedBytes >> 20}, "one that is longer than all may be": {2 * maxCachedBytes, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, loads, most := moduleCache{entries: map[cacheKey]cached{}}, 0, 0
			for i := range 2*tc.most + 1 {
				for range 2 {
					c.of(cacheKey{file: strconv.Itoa(i)}, tc.size, func() (*rule, error) {
						loads++
						return &rule{}, nil
					})
				}
				most = max(most, len(c.entries))
			}
			if most != tc.most || loads != 2*tc.most+1 {
				t.Errorf("%d are remembered at the same time, want %d; loaded %d times", most, tc.most, loads)
			}
		})
	}
}

// regoQuantity is lib.quantities.parse as a function.
func regoQuantity(tb testing.TB) func(text string) map[string]any {
	tb.Helper()
	query := helperQuery(tb, "data.lib.quantities.parse(input)")
	return func(text string) map[string]any {
		results, err := query.Eval(context.Background(), rego.EvalInput(text))
		if err != nil || len(results) != 1 {
			tb.Fatalf("parse(%q): %v, %v", text, results, err)
		}
		object, ok := results[0].Expressions[0].Value.(map[string]any)
		if !ok {
			tb.Fatalf("parse(%q) is %v", text, results[0])
		}
		return object
	}
}

// quantityOf is what Go reads of the text.
func quantityOf(tb testing.TB, text string) map[string]any {
	tb.Helper()
	value, err := ast.JSON(readQuantity(text).value.Value)
	if err != nil {
		tb.Fatal(err)
	}
	return value.(map[string]any)
}

var quantityTexts = []string{
	"0", "00", "-0", "+1", "1", "2.", ".5", "0.5", "-1.5", "100m", "5n", "1u", "1001u", "999999999n", "1000000001n",
	"2k", "1M", "1G", "1T", "1P", "1E", "1E0", "1e3", "1E+3", "1e-3", "1e007", "1e18", "1e19", "1e30", "1e99", "1e-99",
	"1Ki", "1.5Gi", "0.1Ki", "0.0001Ki", "7.9Ei", "8Ei", "9Ei", "-9Ei", "8388608Ti", "9223372036854775807",
	"9223372036854775808", "123456789012345678901234567890", "0.1234567891", "1.0000000001", "4294967296m",
	"0.000000000000000000000000000001", "1.7976931348623157e30", "1e", "e3", "1e+", "Ki", "", ".", "-", "+", " 1", "1 ",
	"1K", "1GB", "1i", "0x1", "1_000", "1e1.5", "--1", "1..2", "NaN", "Inf", "1e100", "1Kii", "١",
}

// checkQuantity compares Go with Rego, and both with Kubernetes where that has an answer of 64 bits.
func checkQuantity(tb testing.TB, fromRego func(string) map[string]any, text string) {
	tb.Helper()
	fromGo := quantityOf(tb, text)
	data, err := json.Marshal(fromGo)
	if err != nil {
		tb.Fatal(err)
	}
	got, err := json.Marshal(fromRego(text))
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(got)); diff != "" {
		tb.Errorf("%q (-Go +Rego):\n%s", text, diff)
	}
	accepts := fromGo["error"] == nil
	if isLong(text) {
		if accepts {
			tb.Errorf("%q is longer than what we read, and we read it", text)
		}
		return // it may keep the parser of Kubernetes busy for ever
	}
	checkAgainstKubernetes(tb, text, accepts, string(data))
}

// checkAgainstKubernetes compares what we make of a quantity with what Kubernetes does.
func checkAgainstKubernetes(tb testing.TB, text string, accepts bool, ours string) {
	tb.Helper()
	parsed, err := resource.ParseQuantity(text)
	small := resource.MustParse("9e15")
	switch {
	case accepts && err != nil:
		tb.Errorf("%q is a quantity to us and none to Kubernetes: %v", text, err)
	case !accepts && err == nil && documentedQuantity.MatchString(text):
		tb.Errorf("%q is a quantity to Kubernetes and none to us", text)
	}
	if err != nil || !accepts || parsed.Sign() < 0 || parsed.Cmp(small) > 0 {
		return
	}
	want := fmt.Sprintf(`{"bytes":%d,"milli":%d}`, parsed.Value(), parsed.MilliValue())
	if diff := cmp.Diff(want, ours); diff != "" {
		tb.Errorf("%q (-Kubernetes +ours):\n%s", text, diff)
	}
}

// documentedQuantity is the grammar in the documentation of the API. The parser of Kubernetes takes some texts beyond
// it for zero.
var documentedQuantity = regexp.MustCompile(`^[+-]?(?:[0-9]+|[0-9]+\.[0-9]*|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`)

// isLong says whether a quantity has more digits than we read, so that no text is costly.
func isLong(text string) bool {
	digits, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	count := func(part string) int { return len(strings.Trim(part, "+-.iKMGTPkmun")) }
	return count(digits) > 40 || len(strings.TrimLeft(exponent, "+-0")) > 2
}

func TestQuantitiesAreThoseOfKubernetes(t *testing.T) {
	fromRego := regoQuantity(t)
	for _, text := range quantityTexts {
		checkQuantity(t, fromRego, text)
	}
}

func FuzzQuantity(f *testing.F) {
	for _, text := range quantityTexts {
		f.Add(text)
	}
	fromRego := regoQuantity(f)
	f.Fuzz(func(t *testing.T, text string) { checkQuantity(t, fromRego, text) })
}

// Cost is what a rule costs alone.
type Cost struct {
	Allocations float64
	Findings    int
}

// CostsAlone counts, for every rule by its id, the allocations of evaluating it alone and its findings: the most
// of its kinds.
func CostsAlone(t *testing.T, e *Engine, of func(kind string) Input) map[string]Cost {
	t.Helper()
	s, costs := e.current.Load(), map[string]Cost{}
	for id, r := range s.rules {
		j, err := prepare(context.Background(), s.compiler, "", judgement{sets: r.columns()})
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range r.info.Kinds {
			in := of(kind)
			v, err := s.variantOf(in.Namespace)
			if err != nil {
				t.Fatal(err)
			}
			on := *v
			on.enforcement = map[string]Enforcement{id: Deny}
			fields, err := e.reader.inputFields(in)
			if err != nil {
				t.Fatal(err)
			}
			req := request{variant: &on, fields: fields, documents: documents{parameters: v.parameters, known: v.known, stock: &stock{}}}
			found := evaluate(context.Background(), j, req, &account{})
			cost := testing.AllocsPerRun(10, func() { evaluate(context.Background(), j, req, &account{}) })
			costs[id] = Cost{max(costs[id].Allocations, cost), max(costs[id].Findings, len(found.findings))}
		}
	}
	return costs
}

// A check may fail for two members together. The part is told of then, beside others that fail by themselves.
func TestAPartThatFailsOnlyAsAWholeIsNotPassedOver(t *testing.T) {
	twoPorts := func(_ *metav1.ObjectMeta, spec *corev1.PodSpec) policy.CheckResult {
		return policy.CheckResult{Allowed: len(spec.Containers[0].Ports) < 2, ForbiddenReason: "too many ports"}
	}
	raw := map[string]any{"name": "a", "ports": []any{map[string]any{"hostPort": int64(1)}, map[string]any{"hostPort": int64(2)}}}
	part := suspect{where: place{apart: true}, check: twoPorts, list: "containers", raw: raw, candidates: []string{"ports[].hostPort"}}
	if found := part.atFault(t.Context()); len(found) != 1 || found[0].field != "" || found[0].value == "" {
		t.Errorf("found %+v, want the container as a whole", found)
	}
}
