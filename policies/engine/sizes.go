// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"unicode/utf8"
)

// sizes are numbers of what an object may have any number of, texts in characters.
type sizes struct {
	annotations, commands int
	// env is by the field path of the container.
	env map[string]any
}

func (s *sizes) ofAnnotations(annotations any) {
	eachValue(annotations, func(key string, value any) {
		if _, list := annotations.([]any); list {
			key = ""
		}
		s.annotations += utf8.RuneCountInString(key) + utf8.RuneCountInString(writtenText(value))
	})
}

func (s *sizes) ofContainer(path string, container map[string]any) {
	s.env[path] = sizeOf(container["env"])
	for _, list := range []string{"command", "args"} {
		eachValue(container[list], func(_ string, word any) { s.commands += utf8.RuneCountInString(writtenText(word)) })
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
