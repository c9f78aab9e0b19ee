// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation holds the rules of the API itself that a schema cannot say:
// names that could never work, keys and owners that only controllers write, what
// the tier of the namespace lets a tenant do. They hold in every environment and
// cannot be switched off, unlike the policies of the engine.
//
// Everything is a pure function of its input. A fault names the field, the value,
// what is wrong and the remedy.
package validation
