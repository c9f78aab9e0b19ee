// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit judges what is stored by the rules of today: rules, tiers, labels of
// namespaces, templates and RuntimeClasses change, and admission has judged an object
// once. It asks what the webhook asks (controller/judge), refuses nothing and changes
// nothing: it tells, by metrics and by reports where the cluster has the kind. What it
// says of Sandboxes that wait in pools, the controllers of pools and claims follow.
//
// A pass is about one namespace. It judges what changed since the last one, and
// everything when its turn is due (controller.go, examine.go), remembers it (ledger.go)
// and publishes it (metrics.go, reports.go, reporter.go). Everything is read from the
// caches of the controllers (lookup.go); the only read of the apiserver is one list of
// our own reports when the controller takes the lead.
//
// # Decisions
//
// 2026-12-01: What is being deleted is neither judged nor judged by: the controllers take a template
// or pool that goes for one that does not exist, and so does the audit.
//
// 2026-11-29: A stored object is judged as if it were created today with the metadata
// that it has: whoever wrote reserved keys and owners was allowed to then. Hardened
// defaults that it lacks refuse nothing, since admission would set them.
//
// 2026-11-29: Objects are judged as their Go types have them, not as raw JSON: raw JSON of
// ten thousand Sandboxes would have to be kept in memory a second time. Fields that the
// types do not know are pruned by the apiserver unless its definitions are newer than
// this program.
//
// 2026-11-29: Findings are shared between objects, in memory and in reports: one result
// names the objects that have it. Most objects come from a template, so that a report
// grows with the number of faults and not with that of Sandboxes.
//
// 2026-11-29: A change is looked at ten seconds later. Claims that live for seconds cost
// nothing that way; admission has judged them.
//
// 2026-11-30: What is remembered holds as long as what it rests on: the policies, the
// object and what it refers to, the namespace and the RuntimeClasses (ledger.go, state), and of
// what else exists, and of the time, what a rule did read when it judged (entry.holds). A
// verdict that a rule gave by the clock is remembered for a minute when somebody is about to get the
// Sandbox; the audit judges it again at its interval. Considered: judging by the clock in
// every pass, which for ten thousand objects with an end would be all that it does.
//
// 2026-11-29: The share of CPU is kept by pausing after each object, and after what was
// listed and published, for a multiple of the time that it took. That time includes the waiting for a CPU, so that on a busy machine
// the audit takes less than its share. Considered: reading the CPU time of the process,
// in which the other controllers cannot be told apart.
package audit
