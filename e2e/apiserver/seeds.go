// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"iter"
	"os"
	"strconv"
	"testing"
)

// seedsVariable sets how many seeds a long run tries.
const seedsVariable = "PROPERTY_SEEDS"

// Seeds are those of a property test: so many, or as many as the environment variable
// PROPERTY_SEEDS says.
func Seeds(t *testing.T, few uint64) iter.Seq[uint64] {
	t.Helper()
	count := few
	if text := os.Getenv(seedsVariable); text != "" {
		var err error
		if count, err = strconv.ParseUint(text, 10, 32); err != nil {
			t.Fatalf("%s=%s: give a number of seeds: %v", seedsVariable, text, err)
		}
	}
	return func(yield func(uint64) bool) {
		for seed := range count {
			if !yield(seed + 1) {
				return
			}
		}
	}
}
