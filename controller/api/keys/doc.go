// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keys names every label and annotation of the Agent Sandbox API and of
// the platform, and says who may write each of them.
//
// The table in this package is the one source: the checks in Go, the data of the
// Rego rules and the expressions of the ValidatingAdmissionPolicies are made from
// it.
package keys
