// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts_test proves what rendering alone can prove about the charts: that
// every object is valid, that their references meet, and that values which cannot
// work are refused with a sentence. What needs a cluster is in e2e.
package charts_test
