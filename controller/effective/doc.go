// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package effective answers what Pod an object would run: a Sandbox or template its
// own, a warm pool that of its template, a claim that of its template with the
// claim's metadata, environment variables and volume claims merged in.
//
// It works on decoded JSON, so that fields which the Go types do not know reach the
// rules, and it changes none of its arguments. Admission judges by it and the claim
// reconciler builds by it, so what was judged is what runs.
package effective
