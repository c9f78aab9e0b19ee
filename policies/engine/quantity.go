// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"math/big"
	"regexp"

	"github.com/open-policy-agent/opa/v1/ast"
	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"

	apiquantity "github.com/agent-sandbox-platform/agent-sandbox/controller/api/quantity"
)

// quantityGrammar is what Kubernetes documents as a quantity; its parser lets more through, such
// as a suffix without a number.
var quantityGrammar = regexp.MustCompile(apiquantity.Pattern)

const notQuantityReason = "is not a quantity such as 500m, 2, 1.5Gi or 1e3"

var notQuantity = quantity{
	value: ast.ObjectTerm(ast.Item(ast.InternedTerm("error"), ast.StringTerm(notQuantityReason))),
	milli: new(big.Int), number: ast.InternedTerm(0),
}

// readQuantity reads {milli, bytes}, whole numbers rounded away from zero, or {error}.
func readQuantity(text string) quantity {
	if !quantityGrammar.MatchString(text) {
		return notQuantity
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return notQuantity
	}
	amount := q.AsDec()
	milli := whole(amount, 3)
	written := number(milli)
	return quantity{milli: milli, number: written, valid: true, value: ast.ObjectTerm(
		ast.Item(ast.InternedTerm("milli"), written), ast.Item(ast.InternedTerm("bytes"), number(whole(amount, 0))),
	)}
}

// whole returns the amount in units of ten to the minus scale.
func whole(amount *inf.Dec, scale inf.Scale) *big.Int {
	return new(big.Int).Set(new(inf.Dec).Round(amount, scale, inf.RoundUp).UnscaledBig())
}

func number(n *big.Int) *ast.Term {
	return ast.NumberTerm(json.Number(n.String()))
}
