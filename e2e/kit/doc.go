// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kit is what the user stories are told with: a cluster that has the
// bundle installed, namespaces that clean up after themselves, manifests applied as
// a user applies them, and waiting that says what it saw when it gives up.
package kit
