// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ceilings says what of a Pod goes beyond its tier: fields that the tier
// requires and the Pod weakens, ServiceAccounts that it does not list, and more
// resources than it gives.
//
// It is one pure decision for two who ask: admission, about the Pod that an object
// would run, and the Sandbox reconciler, before it makes the Pod of a Sandbox that
// may have been stored while admission was absent or the tier was another.
//
// Nothing excuses a Pod. One that calls itself a Windows Pod is judged like any other,
// since a runtime need not be what a Pod says, and so cannot run in a tier that
// requires what only Linux knows.
package ceilings
