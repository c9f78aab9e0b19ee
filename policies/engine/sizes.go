// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/open-policy-agent/opa/v1/ast"
)

// sizes are numbers of what an object may have any number of, texts in bytes.
type sizes struct {
	annotations, commands int
	// env is that of the container that has the most.
	env int
}

func (s *sizes) document(f *facts) ast.Value {
	count := func(key string, n int) [2]*ast.Term {
		return [2]*ast.Term{ast.InternedTerm(key), ast.InternedTerm(n)}
	}
	return ast.NewObject(
		count("containers", len(f.containers)), count("volumes", len(f.volumes)), count("claims", len(f.claims)),
		count("annotations", s.annotations), count("commands", s.commands), count("env", s.env),
		[2]*ast.Term{ast.InternedTerm("requested"), number(f.amounts.storage)},
	)
}

func (s *sizes) ofAnnotations(annotations any) {
	eachValue(annotations, func(key string, value any) {
		if _, list := annotations.([]any); list {
			key = ""
		}
		s.annotations += len(key) + len(writtenText(value))
	})
}

func (s *sizes) ofContainer(container map[string]any) {
	s.env = max(s.env, sizeOf(container["env"]))
	for _, list := range []string{"command", "args"} {
		eachValue(container[list], func(_ string, word any) { s.commands += len(writtenText(word)) })
	}
}

func sizeOf(collection any) int {
	switch members := collection.(type) {
	case []any:
		return len(members)
	case map[string]any:
		return len(members)
	default:
		return 0
	}
}
