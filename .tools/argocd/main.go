// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command argocd says what Argo CD would show as out of sync. It compares by Argo CD's own
// library, in a module of its own, since that asks for all of Kubernetes.
//
// It reads a Question and writes Differences, as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	openapi "github.com/google/gnostic-models/openapiv2"
	"github.com/itchyny/gojq"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/util/proto"
)

// manager is the field manager of Argo CD.
const manager = "argocd-controller"

// Question is what is compared.
type Question struct {
	// OpenAPI is the document of the apiserver, version 2.
	OpenAPI json.RawMessage `json:"openAPI"`
	// Ignore are the jqPathExpressions of ignoreDifferences by kind.
	Ignore map[string][]string `json:"ignore"`
	// Pairs are the objects.
	Pairs []Pair `json:"pairs"`
}

// Pair is an object in Git and in the cluster.
type Pair struct {
	Name string         `json:"name"`
	Git  map[string]any `json:"git"`
	Live map[string]any `json:"live"`
	// DryRun is what the apiserver answers to a dry run of a server-side apply of Git.
	DryRun json.RawMessage `json:"dryRun"`
}

// Difference is what Argo CD shows of an object when it compares in that way.
type Difference struct {
	Name      string          `json:"name"`
	Way       string          `json:"way"`
	Live      json.RawMessage `json:"live"`
	Predicted json.RawMessage `json:"predicted"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "argocd:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	var q Question
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return fmt.Errorf("read the question: %w", err)
	}
	parser, err := parserOf(q.OpenAPI)
	if err != nil {
		return err
	}
	ignore, err := compile(q.Ignore)
	if err != nil {
		return err
	}
	found := []Difference{}
	for _, pair := range q.Pairs {
		ways := map[string][]diff.Option{
			"nothing ignored":  nil,
			"ignoring":         {diff.WithNormalizer(ignore)},
			"structured merge": {diff.WithNormalizer(ignore), diff.WithStructuredMergeDiff(true)},
			"server side":      {diff.WithServerSideDiff(true), diff.WithServerSideDryRunner(pair)},
		}
		for way, options := range ways {
			options = append(options, diff.WithGVKParser(parser), diff.WithManager(manager))
			result, err := diff.Diff(copied(pair.Git), copied(pair.Live), options...)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", pair.Name, way, err)
			}
			if result.Modified {
				found = append(found, Difference{pair.Name, way, result.NormalizedLive, result.PredictedLive})
			}
		}
	}
	return json.NewEncoder(out).Encode(found)
}

func copied(object map[string]any) *unstructured.Unstructured {
	return (&unstructured.Unstructured{Object: object}).DeepCopy()
}

// Run answers the dry run of a server-side apply.
func (p Pair) Run(context.Context, *unstructured.Unstructured, string) (string, error) {
	return string(p.DryRun), nil
}

// parserOf reads the types of the apiserver.
func parserOf(document []byte) (*managedfields.GvkParser, error) {
	read, err := openapi.ParseDocument(document)
	if err != nil {
		return nil, fmt.Errorf("read the document of the apiserver: %w", err)
	}
	models, err := proto.NewOpenAPIData(read)
	if err != nil {
		return nil, fmt.Errorf("read the types of the apiserver: %w", err)
	}
	return managedfields.NewGVKParser(models, false)
}

// ignored are ignoreDifferences, which Argo CD's controller applies outside of the library:
// it deletes what each expression says.
type ignored map[string][]*gojq.Code

func compile(expressions map[string][]string) (ignored, error) {
	all := ignored{}
	for kind, list := range expressions {
		for _, expression := range list {
			query, err := gojq.Parse("del(" + expression + ")")
			if err != nil {
				return nil, fmt.Errorf("%s: %w", expression, err)
			}
			code, err := gojq.Compile(query)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", expression, err)
			}
			all[kind] = append(all[kind], code)
		}
	}
	return all, nil
}

// Normalize takes away what is ignored.
func (i ignored) Normalize(object *unstructured.Unstructured) error {
	for _, code := range i[object.GetKind()] {
		result, _ := code.Run(object.Object).Next()
		left, is := result.(map[string]any)
		if err, failed := result.(error); failed || !is {
			return errors.Join(fmt.Errorf("ignore differences of %s", object.GetName()), err)
		}
		object.Object = left
	}
	return nil
}
