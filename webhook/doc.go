// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook is the admission server: it hardens what a tenant left open and
// judges what he asks for, before it is stored.
//
// # What the server expects of the webhook configurations
//
// The configurations are objects of the chart. They have no caBundle and no Secret
// data: the provider of the certificate writes those.
//
//   - /mutate: CREATE and UPDATE of sandboxes (agents.x-k8s.io), sandboxtemplates and
//     sandboxclaims (extensions.agents.x-k8s.io). failurePolicy may be Ignore, since
//     validation refuses what should have been set and is not.
//   - /validate: CREATE and UPDATE of sandboxes, sandboxtemplates, sandboxwarmpools and
//     sandboxclaims, and UPDATE of sandboxwarmpools/scale. failurePolicy Fail.
//   - /validate-policy: CREATE, UPDATE and DELETE of configmaps in the release namespace
//     with an objectSelector on platform.agents.x-k8s.io/policy-source=true.
//     failurePolicy Ignore: loading checks again.
//   - All: v1beta1 only, scope Namespaced, matchPolicy Equivalent, sideEffects None,
//     admissionReviewVersions [v1], timeoutSeconds 5 (the engine decides within 2),
//     reinvocationPolicy IfNeeded for /mutate (a second pass changes nothing).
//   - namespaceSelector leaves out kube-system, kube-node-lease and the release's own
//     namespace by kubernetes.io/metadata.name, but for /validate-policy.
//   - matchConditions may skip updates by the controllers' ServiceAccount, by the
//     garbage collector and by the namespace controller, those of
//     system:kube-controller-manager but for Scales (it is the garbage collector, and the
//     autoscaler, where they have no credentials of their own), updates that change neither
//     spec nor labels, annotations or ownerReferences, and those that only suspend a
//     Sandbox or shrink a pool. The server gives the same answer without them; but with
//     them none of these depends on it. Creations by the controllers must reach
//     /validate. DELETE and CONNECT are allowed if sent.
//
// The controllers' users are told by --controller-users: they may write reserved keys
// and owners, and create kinds that the tier keeps from tenants. The policies hold
// for them too.
//
// # What is decided
//
// A refusal is 403 Forbidden with one message and one cause a finding. Faults of our
// own are 500, and 503 before the first policies are loaded: they are in-band, so
// that a failurePolicy cannot turn them into an admission, and they name themselves.
// 429 asks to come again, which clients do by themselves: too many are judged at the
// same time, or nothing refuses the request but that its rules had no time.
// Warnings are findings that refuse nothing. Audit annotations carry the digest of
// the policies and the rules that had something to say.
//
// # Decisions
//
// 2026-11-29, ratchet: an update is refused for what it brings in only. A finding is
// old if its rule, its place (by names, not indexes) and its value are, and of what else it
// is about nothing is new; less of an amount is old too. Each old one excuses a single new one.
// The old object counts with the defaults that the update made admission add. The failure
// of a rule, and a tier that nobody defined, excuse nothing once the spec changes.
// Considered: judging only when the spec changed, which lets an old fault block the
// correction of another.
//
// 2026-11-29, ceilings of tiers: what a tier requires is judged by Go code that the
// Sandbox reconciler shares, not by a policy, so that it holds whatever the policies are.
// The Pod that a pool or claim borrows is hardened before it is judged, as its Sandbox
// will be: a tier that asks for more does not refuse claims of older templates. Times are
// never set, so a tier with a longest lifetime refuses what has no end; and limits that
// would take a Pod beyond its tier are not set, so that nobody is refused for amounts that
// he did not ask for. A Pod that calls itself Windows is not excused.
//
// 2026-11-29, bodies: their length and depth are bounded before anything decodes them. An
// apiserver takes an answer that is no review for a webhook that is away, so that a deep
// one is answered with a review; a long one no apiserver sends.
//
// 2026-11-30, bodies have places in a budget of bytes before they are read: requests beyond
// the number that is judged are told so only when they are decoded, and until then seventy of
// the longest bodies filled the memory of a replica. A place goes by the length that is
// announced. Who finds none in a second gets 429 with Retry-After, which an apiserver follows
// by itself; this is no review, as there is no uid to answer before a body is read. Whose body
// takes more than two seconds to arrive is cut off, since else a few who announce much
// and send nothing would keep out all others. Considered: a smaller limit for each body,
// but an update carries two objects of the length that etcd takes.
//
// 2026-11-30, bodies of up to 256 KiB have a budget of their own, 18 of the 32 MiB: five senders
// that announced the longest body, sent nothing and came again held all of it, though each was
// cut off, and apiservers got 429. Now they keep out long bodies only; to keep out the usual
// ones takes seventy. More than that no budget does against who may connect as often as he
// likes: a NetworkPolicy does, which the chart renders. Considered: places for what has
// arrived instead of what is announced, which fills up with bodies that all miss their end.
//
// 2026-11-30, limits have the ratchet too: an object that was stored before a limit became
// what it is may be relabelled, extended, suspended and ended, as long as the list, the
// depth or the number of values that is beyond does not grow; to one with too many values
// an update may add a hundred. Two things hold whatever was before: the bounds of a body,
// 7 MiB and a thousand levels, since reading more would cost the memory of the replica; and
// amounts of too many digits, which no schema of ours takes and no reader survives.
//
// 2026-11-30, limits are measured before mutation, and with room for what it may set after it:
// an object just within them is not refused for what it was given. One that is beyond by no
// more than the room and was left alone by mutation is refused for its size.
//
// 2026-11-30, what a request says of itself proves nothing: on its way out is what the
// stored object says so of, and an operation that is none is a fault of the request.
//
// 2026-11-29, what a claim brings and its template does not take (env, volumes,
// clashing metadata) is a warning: the API reports it in the claim's Ready condition,
// clients know those reasons, and the template may change. Reserved keys are refused.
//
// 2026-11-29, reserved keys that the controllers wrote may not be removed by users:
// replacing an object without them would detach it. Apply and patch keep them.
//
// 2026-11-29, a replica that stops answers on each connection once more and asks for it
// to be left, before it closes any: of some five hundred requests that crossed the end of
// a replica one was lost, when its connection was closed while it was being written.
//
// 2026-11-29, a rule that had no time is a finding like that of any other failure where
// it warns or records, and where other findings refuse. Where nothing else refuses, the
// request is asked to come again: on a machine that gives the webhook no processor time
// every rule is late, and a final refusal would blame all of them for it. A rule that
// never ends is not run any more after a few times, and then refuses for good.
//
// 2026-11-30, dry runs are logged, marked, and not counted: alerts and ratios are about what
// is admitted, while the log tells who tries what, and is looked up by the id that a dry run
// has in the audit log of the apiserver too. Considered: leaving them out of the log, which
// hides who looks for a hole before he uses it.
//
// 2026-11-29, policy ConfigMaps: a rule may be configured in one ConfigMap only. One
// that disappears stays in force until the webhook restarts, unless the annotation
// platform.agents.x-k8s.io/removal-confirmed=true was on it when it went. Before the first load, a configuration that cannot
// be read keeps the replica unready, as going on without it might allow what it
// denies; a rule that does not load does not, it is a finding for its kinds.
package webhook
