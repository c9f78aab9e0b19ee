// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
)

// NameHash is the contract's hash of a name: FNV-1a, 32 bits, eight hex digits.
// Anyone who may choose names can make it collide, so nothing that isolates rests
// on it alone.
func NameHash(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // a hash never fails to write
	return fmt.Sprintf("%08x", h.Sum32())
}

// SandboxSelector is the label selector of a Sandbox's Pod in the form that a
// status carries.
func SandboxSelector(sandbox string) string {
	return SandboxNameHash + "=" + NameHash(sandbox)
}

// labelHashBytes is how much of a SHA-256 fits into the value of a label.
const labelHashBytes = 30

// TemplateKey is the value of the label Template: a hash of the template's name that
// nobody can make collide.
func TemplateKey(name string) string {
	return labelHash(name)
}

// RulesKey is the value of the label Rules: a hash of rules in their encoded form.
func RulesKey(rules string) string {
	return labelHash(rules)
}

// CreatorKey is the value of the label RetainedFor: a hash of the creator's name that
// nobody can make collide. Nobody in particular has no key, and so is nobody's equal.
func CreatorKey(creator string) string {
	if creator == "" {
		return ""
	}
	return labelHash(creator)
}

func labelHash(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:labelHashBytes])
}
