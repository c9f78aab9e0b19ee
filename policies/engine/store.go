// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
)

// Where the parameters of rules, and what exists in the cluster, are among the data.
const (
	parametersRoot = "parameters"
	inventoryRoot  = "inventory"
	// knownRoot is what Go reads of the parameters for the helpers.
	knownRoot = "known"
)

// documents are the data of one evaluation.
type documents struct {
	parameters ast.Object
	known      ast.Object
	stock      *stock
}

type documentsKey struct{}

func withDocuments(ctx context.Context, d documents) context.Context {
	return context.WithValue(ctx, documentsKey{}, d)
}

// requestStore serves to each evaluation the data in its context, so that one compiled query does for all
// namespaces.
type requestStore struct {
	storage.WritesNotSupported
	storage.PolicyNotSupported
	storage.TriggersNotSupported
}

type transaction struct{}

// ID is the same for all: nothing is ever written.
func (transaction) ID() uint64 { return 1 }

// NewTransaction begins nothing.
func (requestStore) NewTransaction(context.Context, ...storage.TransactionParams) (storage.Transaction, error) {
	return transaction{}, nil
}

// Commit does nothing.
func (requestStore) Commit(context.Context, storage.Transaction) error { return nil }

// Abort does nothing.
func (requestStore) Abort(context.Context, storage.Transaction) {}

// Truncate is refused.
func (requestStore) Truncate(context.Context, storage.Transaction, storage.TransactionParams, storage.Iterator) error {
	return &storage.Error{Code: storage.WritesNotSupportedErr}
}

// Read returns the document at the path.
func (requestStore) Read(ctx context.Context, _ storage.Transaction, path storage.Path) (any, error) {
	d, _ := ctx.Value(documentsKey{}).(documents)
	if len(path) > 0 && path[0] == parametersRoot && d.parameters != nil {
		return find(d.parameters, path[1:])
	}
	if len(path) > 0 && path[0] == knownRoot && d.known != nil {
		return find(d.known, path[1:])
	}
	if len(path) > 0 && path[0] == inventoryRoot {
		return d.stock.at(ctx, path[1:])
	}
	return nil, notFound(path)
}

func find(document ast.Value, path storage.Path) (any, error) {
	for i, step := range path {
		var member *ast.Term
		switch d := document.(type) {
		case ast.Object:
			member = d.Get(ast.InternedTerm(step))
		case *ast.Array:
			if index, ok := indexIn(step, d.Len()); ok {
				member = d.Elem(index)
			}
		}
		if member == nil {
			return nil, notFound(path[:i+1])
		}
		document = member.Value
	}
	return document, nil
}

// indexIn reads an index into a list of that length.
func indexIn(step string, length int) (index int, ok bool) {
	index, err := strconv.Atoi(step)
	return index, err == nil && index >= 0 && index < length
}

func notFound(path storage.Path) error {
	return &storage.Error{Code: storage.NotFoundErr, Message: fmt.Sprintf("%v: document does not exist", path)}
}
