// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairqueue makes the work queues of the controllers whose objects belong to
// namespaces. They serve namespaces in turn, so that one namespace's burst does not delay
// another's requests. Within a namespace the first to come is the first to be served.
//
// # Decisions
//
// 2026-11-30: Priority goes before turns: what a controller finds when it starts, and what
// is only looked at again, waits for what has changed, whosever it is. In turn are the
// requests of one priority. One request in eight is of the lowest priority that there is:
// a claim that an earlier leader did not serve would else wait for as long as others come.
//
// 2026-11-30: All controllers of namespaced objects have such a queue, not only that of
// claims: a claim that starts cold needs a pass over its Sandbox, and one that waits needs
// one over its pool.
//
// 2026-11-30: What an apiserver failed in that was away is tried again within five seconds, by all
// of these controllers: a claim whose adoption was not answered holds a Sandbox that others could
// have. What a quota or a policy refuses may be refused for long, and waits for up to a minute.
//
// 2026-11-30: No queue is filled while the replica stands by. Whatever came and went meanwhile
// would stay in it, and stand before what is there when the replica takes the lead. The caches
// are filled (lookup.Hold), so that the controllers find in moments what there is.
//
// 2026-11-30: A queue that is shut down gives out nothing more. The work queue beneath
// would be emptied first, and whoever takes the lead would wait for that.
package fairqueue
