// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine judges sandboxes by rules written in Rego and by the Pod Security
// Standards.
//
// Load compiles a set of modules and swaps it in as a whole; Evaluate judges one object by
// the set in force. Whatever goes wrong within a rule (it does not compile, errs, runs out of
// time, gives nothing) is a finding of that rule with that rule's enforcement: nothing is
// allowed because of a fault. Rules run with builtins that neither leave the process nor
// depend on anything but their input.
package engine
