// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/distribution/reference"
	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// helperQuery prepares a query of the shared helpers.
func helperQuery(tb testing.TB, query string) rego.PreparedEvalQuery {
	tb.Helper()
	files, err := filepath.Glob("../lib/*.rego")
	if err != nil || len(files) == 0 {
		tb.Fatal(files, err)
	}
	options := []func(*rego.Rego){rego.Query(query)}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.rego") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		options = append(options, rego.Module(file, string(content)))
	}
	prepared, err := rego.New(options...).PrepareForEval(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return prepared
}

// ask returns the answer as JSON.
func ask(tb testing.TB, query rego.PreparedEvalQuery, input ast.Value) string {
	tb.Helper()
	results, err := query.Eval(context.Background(), rego.EvalParsedInput(input))
	if err != nil || len(results) != 1 {
		tb.Fatalf("%v: %v, %v", input, results, err)
	}
	data, err := json.MarshalIndent(results[0].Expressions[0].Value, "", " ")
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

const helperAnswers = `{
	"containers": data.lib.containers.by_path, "started": data.lib.containers.started,"paths": data.lib.containers.started_paths, "volumes": data.lib.volumes.by_path,
	"claims": data.lib.volumes.claims, "images": data.lib.images.parsed, "requested": data.lib.quantities.requested, "resources": data.lib.quantities.resources, "owners": data.lib.containers.owners,
	"totals": data.lib.totals.by_resource, "faults": data.lib.quantities.faults,
	"limited": data.lib.quantities.limited, "highest": data.lib.quantities.highest, "sizes": data.lib.sizes.of_pod,
	"claim annotations": data.lib.volumes.claim_annotations, "labels": data.lib.labels.of_pods, "annotations": data.lib.labels.annotations_of_pods,
}`

var objectTexts = []string{
	`{}`, `{"spec": null}`, `{"spec": {"podTemplate": {}}}`, `{"spec": {"podTemplate": {"spec": []}}}`,
	`{"spec": {"podTemplate": {"spec": {"containers": [{"name": "a", "image": "python:3", "resources": {"limits": {"cpu": "1", "memory": 5}}}, null, "x"]}}}}`,
	`{"spec": {"podTemplate": {"spec": {"containers": {"a": {"image": null}, "b": 7}, "initContainers": "x", "resources": {"limits": {"cpu": null}}}}}}`,
	`{"spec": {"podTemplate": {"spec": {"ephemeralContainers": [{"image": "Python"}], "volumes": [null, {"image": {}}, {"image": "x"}]}}}}`,
	`{"spec": {"podTemplate": {"spec": {"volumes": [{"image": {"reference": "a:1"}}, {"ephemeral": {}}, {"ephemeral": {"volumeClaimTemplate": {"spec": {"a": 1}}}}]}}}}`,
	`{"spec": {"volumeClaimTemplates": [null, {"spec": {"resources": {"requests": {"storage": "lots"}}}}, "x"]}}`,
	`{"spec": {"volumeClaimTemplates": {"a": {"spec": null}}, "podTemplate": {"spec": {"volumes": {"b": {"emptyDir": {"sizeLimit": "1Gi"}}}}}}}`,
	`{"template": {"spec": {"volumeClaimTemplates": [{"spec": {"resources": {"requests": {"storage": "1Gi"}}}}, 7]}}, "spec": {"volumeClaimTemplates": [{"spec": {}}]}}`,
	`{"template": {"spec": {"volumeClaimTemplates": {"a": {"spec": {"accessModes": ["ReadWriteMany"]}}}}}}`,
	`{"template": {"spec": {"volumeClaimTemplatesPolicy": "Overrides", "volumeClaimTemplates": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}, {"metadata": {"name": ""}}, {"metadata": {"name": 7}}]}},
		"spec": {"volumeClaimTemplates": [{"metadata": {"name": "b", "annotations": {"x/y": "z"}}}, {"metadata": {"name": ""}}, {"metadata": {"name": 7}}]}}`,
	`{"template": {"spec": {"volumeClaimTemplatesPolicy": "Allowed", "volumeClaimTemplates": [{"metadata": {"name": "a"}}]}}, "spec": {"volumeClaimTemplates": [{"metadata": {"name": "a"}}]}}`,
	`{"spec": {"volumeClaimTemplates": [{"metadata": {"annotations": null}}, {"metadata": {"annotations": "x"}}, {"metadata": 1}, false],
		"podTemplate": {"spec": {"volumes": [{"ephemeral": false}, {"ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"a": 1}}}}}]}}}}`,
	`{"spec": {"podTemplate": {"metadata": {"annotations": {"a": "ä", "b": 1, "c": null}}, "spec": {"containers": [{"env": [1, {}], "command": ["sh", 1], "args": {"a": "bc"}}, {"env": "x", "args": "x"}]}}}}`,
	`{"spec": {"podTemplate": {"spec": {"containers": [{"resources": {"limits": {"cpu": 1, "a": "x"}}}, {"resources": {"limits": {"cpu": "500m"}}}],
		"initContainers": [{"restartPolicy": "Always", "resources": {"limits": {"cpu": "100m", "b": 2}}}, {"resources": {"limits": {"cpu": 7}}}, {"resources": {"limits": {"c": -1}}}],
		"ephemeralContainers": [{"resources": {"limits": {"cpu": 9, "d": 1}}}]}}}}`,
	`{"spec": {"podTemplate": {"spec": {"overhead": {"cpu": "250m", "memory": "x", "d": null, "e": -1}, "containers": [{"resources": {"limits": {"cpu": 1, "f": -2}, "requests": {"cpu": 2, "g": 3}}}],
		"initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": 4}}}, {"resources": {"requests": {"cpu": 7, "g": 1}}}], "ephemeralContainers": [{"resources": {"requests": {"h": 1}}}]}}}}`,
	`{"spec": {"podTemplate": {"spec": {"overhead": ["1"], "containers": []}}}}`,
	`{"spec": {"podTemplate": {"spec": {"containers": [{"resources": {"limits": ["x"], "requests": {"cpu": {}}}}, {"resources": null}, {"image": false}]}}}}`,
}

// checkFacts compares what Go reads beforehand with what the helpers find without it.
func checkFacts(tb testing.TB, query rego.PreparedEvalQuery, text string) {
	tb.Helper()
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil {
		return
	}
	fields, err := newReader().inputFields(Input{
		Kind: KindSandbox, Object: object, Pod: objectAt(objectAt(object, "spec"), "podTemplate"), Template: objectAt(object, "template"), Now: time.Unix(0, 0),
	})
	if err != nil {
		return
	}
	input, err := ast.InterfaceToValue(fields)
	if err != nil {
		return
	}
	for _, name := range factNames {
		delete(fields, name)
	}
	bare := ast.LazyObject(fields)
	if diff := cmp.Diff(ask(tb, query, input), ask(tb, query, bare)); diff != "" {
		tb.Errorf("%s (-Go +Rego):\n%s", text, diff)
	}
}

func TestFactsAreThoseOfTheHelpers(t *testing.T) {
	query := helperQuery(t, helperAnswers)
	for _, text := range objectTexts {
		checkFacts(t, query, text)
	}
}

func FuzzFacts(f *testing.F) {
	for _, text := range objectTexts {
		f.Add(text)
	}
	query := helperQuery(f, helperAnswers)
	f.Fuzz(func(t *testing.T, text string) { checkFacts(t, query, text) })
}

var imageTexts = []string{
	"python", "python:3.12-slim", "team/agent", "docker.io/python", "index.docker.io/python:1", "DOCKER.IO/team/agent", "DOCKER.IO/python", "Index.docker.io/python", "localhost/a",
	"localhost:5000/a:2", "agent:5000", "registry.example.com/a/b/c", "Registry.Example.com/a", "[fd00::1]:5000/a:1", "10.0.0.1/a",
	"python@sha256:" + sha, "a.b/c:1@sha256:" + sha, "python@sha256:0123", "", " python", "python\n", "Python", "a//b", "a/", "/a", "a:", "a:1:2",
	"my_registry.example.com/a", "a.b./c", sha, "a@" + sha, "pythоn", "a__b/c", "a___b", "a..b", "a-.b", "docker.io", "docker.io/", "a.b:x/c",
	"a.b/" + strings.Repeat("c", 252), "a.b/" + strings.Repeat("c", 300), "a:" + strings.Repeat("1", 129), "\xff", "a.b:/c", "[::1]/a", "İ/a",
}

const sha = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// checkImage compares Go with Rego, and both with the library that container engines use.
func checkImage(tb testing.TB, query rego.PreparedEvalQuery, text string) {
	tb.Helper()
	if strings.ToValidUTF8(text, "") != text {
		return
	}
	ours := imageTerm(text)
	value, err := ast.JSON(ours.Value)
	if err != nil {
		tb.Fatal(err)
	}
	fromGo, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(string(fromGo), ask(tb, query, ast.String(text))); diff != "" {
		tb.Errorf("%q (-Go +Rego):\n%s", text, diff)
	}
	checkAgainstEngines(tb, text, value.(map[string]any))
}

// checkAgainstEngines holds that what we read as a reference they read the same way, and that what they read we do.
func checkAgainstEngines(tb testing.TB, text string, ours map[string]any) {
	tb.Helper()
	parsed, err := reference.ParseNormalizedNamed(text)
	if ours["error"] != nil {
		if err == nil && !refusedOnPurpose(parsed) {
			tb.Errorf("%q is a reference to them and none to us", text)
		}
		return
	}
	if host, rest, ok := strings.Cut(text, "/"); err != nil && ok && isASCII(host) {
		parsed, err = reference.ParseNormalizedNamed(strings.ToLower(host) + "/" + rest)
	}
	if err != nil {
		tb.Errorf("%q is a reference to us and none to them: %v", text, err)
		return
	}
	host := strings.ToLower(reference.Domain(parsed))
	if host == olderRegistry {
		host = defaultRegistry
	}
	theirs := map[string]any{"registry": host, "repository": host + "/" + reference.Path(parsed), "tag": "", "digest": ""}
	if tagged, ok := parsed.(reference.Tagged); ok {
		theirs["tag"] = tagged.Tag()
	}
	if digested, ok := parsed.(reference.Digested); ok {
		theirs["digest"] = string(digested.Digest())
	}
	if diff := cmp.Diff(theirs, ours); diff != "" {
		tb.Errorf("%q (-theirs +ours):\n%s", text, diff)
	}
}

// refusedOnPurpose says whether a reference has a digest of an algorithm that nobody checks, or names a registry that
// is no host, which they then take for a part of the path.
func refusedOnPurpose(parsed reference.Named) bool {
	digested, ok := parsed.(reference.Digested)
	return ok && !digestGrammar.MatchString(string(digested.Digest())) || reference.Domain(parsed) == ""
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}

func TestImagesAreThoseOfContainerEngines(t *testing.T) {
	query := helperQuery(t, "data.lib.images.parse(input)")
	for _, text := range imageTexts {
		checkImage(t, query, text)
	}
}

func FuzzImage(f *testing.F) {
	for _, text := range imageTexts {
		f.Add(text)
	}
	query := helperQuery(f, "data.lib.images.parse(input)")
	f.Fuzz(func(t *testing.T, text string) { checkImage(t, query, text) })
}

var cidrTexts = []string{
	"10.0.0.0/8", "010.0.0.0/8", "10.0.0.1/8", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/08", "0.0.0.0/0", "::/0", "fc00::/7", "fd00::1/8",
	"64:ff9b::/96", "::ffff:10.0.0.0/104", "::ffff:a00:0/104", "2001:0::/16", "FC00::/7", "1.2.3.4/32", "256.0.0.0/8", "", "/", "x/8", "fe80::%eth0/64",
	"10.0.0.0/8 ", "1::/129", "10.0.0/8", "169.254.169.254/32",
}

// checkCIDR holds that a range is valid exactly if Go writes it the same way.
func checkCIDR(tb testing.TB, query rego.PreparedEvalQuery, text string) {
	tb.Helper()
	if strings.ToValidUTF8(text, "") != text {
		return
	}
	prefix, err := netip.ParsePrefix(text)
	want := err == nil && !prefix.Addr().Is4In6() && prefix.Masked().String() == strings.ToLower(text)
	if got := ask(tb, query, ast.String(text)) == "true"; got != want {
		tb.Errorf("%q: valid is %v, Go says %v (%v)", text, got, want, err)
	}
}

const cidrQuery = `count([1 | data.lib.cidrs.valid(input)]) == 1`

func TestRangesAreThoseOfGo(t *testing.T) {
	query := helperQuery(t, cidrQuery)
	for _, text := range cidrTexts {
		checkCIDR(t, query, text)
	}
}

func FuzzCIDR(f *testing.F) {
	for _, text := range cidrTexts {
		f.Add(text)
	}
	query := helperQuery(f, cidrQuery)
	f.Fuzz(func(t *testing.T, text string) { checkCIDR(t, query, text) })
}
