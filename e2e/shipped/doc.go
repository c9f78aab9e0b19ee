// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shipped tests the controller as it is shipped: processes with their flags and
// a Lease, on a real apiserver with nodes that do not exist. What one controller does
// inside is tested beside it; here is what only a whole process shows.
package shipped
