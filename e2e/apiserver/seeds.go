// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"iter"
	"os"
	"strconv"
	"testing"
)

const (
	// seedsVariable sets how many seeds a long run tries.
	seedsVariable = "PROPERTY_SEEDS"
	// seedVariable repeats the one seed that failed.
	seedVariable = "PROPERTY_SEED"
)

// Seeds are those of a property test, from 1 on: so many, or as many as the environment
// variable PROPERTY_SEEDS says, or only the one that PROPERTY_SEED names.
func Seeds(t *testing.T, few uint64) iter.Seq[uint64] {
	t.Helper()
	first, count := uint64(1), variable(t, seedsVariable, few)
	if os.Getenv(seedVariable) != "" {
		first, count = variable(t, seedVariable, 0), 1
	}
	return func(yield func(uint64) bool) {
		for seed := range count {
			if !yield(first + seed) {
				return
			}
		}
	}
}

// LongRun says whether more is to be tried than every run has time for.
func LongRun() bool { return os.Getenv(seedsVariable) != "" }

func variable(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s=%s: give a number: %v", name, text, err)
	}
	return number
}
