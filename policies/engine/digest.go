// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	opa "github.com/open-policy-agent/opa/v1/version"
	build "k8s.io/component-base/version"
)

// basis is all that the digest of a set names beside the rules.
type basis struct {
	// Build is the version of the program, with the rules that Go decides; OPA that of the evaluator.
	Build, OPA    string
	Helpers       [sha256.Size]byte
	Configuration Configuration
}

func basisOf(loaded *loadedRules, cfg Configuration) basis {
	return basis{Build: build.Get().GitVersion, OPA: opa.Version, Helpers: loaded.helperHash, Configuration: cfg}
}

// member is a rule in force.
type member struct {
	File    string
	Content [sha256.Size]byte
}

// sum names what is in force, which need not be what was asked for: the last good content of a module that does not
// load counts, not the one that is submitted, and rules in quarantine do not judge.
func (s *set) sum() string {
	var judging []member
	for _, id := range slices.Sorted(maps.Keys(s.rules)) {
		judging = append(judging, member{s.rules[id].file(), s.rules[id].content})
	}
	var failing []BrokenModule
	for _, b := range s.broken {
		if !b.LastGood {
			failing = append(failing, b)
		}
	}
	data, err := json.Marshal(struct {
		Basis   basis
		Rules   []member
		Failing []BrokenModule
		Held    []string
	}{s.basis, judging, failing, slices.Sorted(maps.Keys(s.held))})
	if err != nil { // a configuration comes from YAML or a literal: it has a JSON form, and so has the rest
		data = []byte(err.Error())
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
