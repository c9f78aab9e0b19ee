// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judge says what is wrong with an object of the platform: by the rules of the
// API itself, by the hardened defaults of the tier and by the policies of the engine,
// on the Pod that would really run. The webhook asks it of what comes in, the audit of
// what is there. What it reads of the cluster, it reads through Lookup.
package judge
