// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package claim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/relations"
)

// outage is a time in which a node, or the Pod of a member, is out of service, as the
// controllers know. It begins and ends after what had these versions; until is 0 while it
// lasts.
type outage struct {
	node, member string
	from, until  uint64
}

// concerns says whether a member is out of service with it.
func (o outage) concerns(member *agentsv1beta1.Sandbox) bool {
	return o.node != "" && o.node == member.Status.NodeName || o.member != "" && o.member == member.Name
}

// history is everything that was ever stored of some kinds of objects.
type history struct {
	mu       sync.Mutex
	changes  []change
	caughtUp []func()
}

// change is an object as it was stored, or as it went, in the order of versions.
type change struct {
	version uint64
	object  client.Object
	gone    bool
}

// record begins a history.
func (e *environment) record(kinds ...client.ObjectList) *history {
	e.Helper()
	h := &history{}
	for _, kind := range kinds {
		h.caughtUp = append(h.caughtUp, e.Watch(kind, func(event watch.Event) {
			object, isObject := event.Object.(client.Object)
			if !isObject {
				return
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			h.changes = append(h.changes, change{versionOf(object.GetResourceVersion()), object, event.Type == watch.Deleted})
		}))
	}
	return h
}

// versionOf is a version as the apiserver counts them, over all kinds.
func versionOf(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(err) //nolint:forbidigo // The apiserver no longer counts.
	}
	return version
}

// verdicts are what a history shows.
type verdicts struct {
	// wrong is what should never have been.
	wrong []error
	// adopted are the members that became a claim's.
	adopted int
	// judged are those of them that had to be what the template describes, by the strategy
	// that said so.
	judged map[extensionsv1beta1.UpdateStrategyType]int
	// edits is how often the template came to describe something else.
	edits int
}

// replay goes through a history.
type replay struct {
	verdicts

	outages []outage
	// sightings are the generations of the pool that were shown when its members were asked for.
	sightings map[string]int64
	templates []described
	pools     []asked
	// observed is the generation that the pool controller has said it has seen.
	observed int64
	// claims are the versions in which the claims were made.
	claims map[types.UID]uint64
	boxes  map[types.UID]*agentsv1beta1.Sandbox
}

// described is what the template described from a version on.
type described struct {
	version uint64
	image   string
}

// asked is what the pool asked for from a version on.
type asked struct {
	version    uint64
	generation int64
	// most is how many members it may have, those included that are being replaced.
	most int
	// strategy is the one in force; strict is true when it hands out no stale members.
	strategy extensionsv1beta1.UpdateStrategyType
	strict   bool
}

// judge holds a history against what was promised, given when nodes were away and what the
// pool's controller had been shown.
func (h *history) judge(outages []outage, sightings map[string]int64) verdicts {
	for _, wait := range h.caughtUp {
		wait()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortStableFunc(h.changes, func(a, b change) int { return cmp.Compare(a.version, b.version) })
	r := &replay{outages: outages, sightings: sightings, claims: map[types.UID]uint64{}, boxes: map[types.UID]*agentsv1beta1.Sandbox{}}
	r.judged = map[extensionsv1beta1.UpdateStrategyType]int{}
	for _, c := range h.changes {
		switch object := c.object.(type) {
		case *extensionsv1beta1.SandboxTemplate:
			r.template(c.version, object)
		case *extensionsv1beta1.SandboxWarmPool:
			r.pool(c.version, object)
		case *extensionsv1beta1.SandboxClaim:
			if _, known := r.claims[object.UID]; !known {
				r.claims[object.UID] = c.version
			}
		case *agentsv1beta1.Sandbox:
			r.sandbox(c, object)
		}
	}
	r.edits = len(r.templates) - 1
	return r.verdicts
}

func (r *replay) fail(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Errorf(format, args...))
}

// imageOf is the image that tells templates, and what is made of them, apart.
func imageOf(object client.Object) string {
	switch of := object.(type) {
	case *extensionsv1beta1.SandboxTemplate:
		return of.Spec.PodTemplate.Spec.Containers[0].Image
	case *agentsv1beta1.Sandbox:
		return of.Spec.PodTemplate.Spec.Containers[0].Image
	default:
		return ""
	}
}

func (r *replay) template(version uint64, now *extensionsv1beta1.SandboxTemplate) {
	if last := len(r.templates) - 1; last < 0 || r.templates[last].image != imageOf(now) {
		r.templates = append(r.templates, described{version, imageOf(now)})
	}
}

func (r *replay) pool(version uint64, now *extensionsv1beta1.SandboxWarmPool) {
	r.observed = now.Status.ObservedGeneration
	if last := len(r.pools) - 1; last >= 0 && r.pools[last].generation == now.Generation {
		return
	}
	most, strategy := int(*now.Spec.Replicas), extensionsv1beta1.UpdateStrategyOnReplenish
	if now.Spec.UpdateStrategy != nil {
		strategy = now.Spec.UpdateStrategy.Type
	}
	if strategy == extensionsv1beta1.UpdateStrategyRollingUpdate {
		most += max(1, most/5)
	}
	r.pools = append(r.pools, asked{version, now.Generation, most, strategy, judgesStaleness(now)})
}

func (r *replay) sandbox(c change, now *agentsv1beta1.Sandbox) {
	before := r.boxes[now.UID]
	if c.gone {
		delete(r.boxes, now.UID)
		return
	}
	r.boxes[now.UID] = now
	switch {
	case relations.Pool(now) != nil && (before == nil || relations.Pool(before) == nil):
		r.made(now)
	case before != nil && relations.Pool(before) != nil && relations.Claim(now) != nil:
		r.handedOut(c.version, before, now)
	}
}

// made checks that there was room for one more by a generation of the pool that its
// controller may have gone by: one that it had been shown, and none before the one that it
// last said it had seen.
func (r *replay) made(member *agentsv1beta1.Sandbox) {
	most, live := 0, 0
	shown, asked := r.sightings[member.Name]
	if !asked {
		r.fail("nobody asked for member %s", member.Name)
	}
	for _, p := range r.pools {
		if p.generation >= r.observed && p.generation <= shown {
			most = max(most, p.most)
		}
	}
	for _, box := range r.boxes {
		if relations.Pool(box) != nil {
			live++
		}
	}
	if live > most {
		r.fail("with %s there were %d members, and %d may be at most between generation %d and %d", member.Name, live, most, r.observed, shown)
	}
}

// handedOut checks a member as it was in the very version that was taken.
func (r *replay) handedOut(version uint64, member, taken *agentsv1beta1.Sandbox) {
	r.adopted++
	claim := relations.Claim(taken)
	made, known := r.claims[claim.UID]
	if !known {
		r.fail("member %s went to claim %s, which was never made", member.Name, claim.Name)
		return
	}
	if !usable(member) {
		r.fail("member %s went to claim %s, and was unfit: %+v", member.Name, claim.Name, member.Status)
	}
	if inForce(r.pools, made, func(p asked) uint64 { return p.version }, func(p asked) bool { return !p.strict }) == 0 {
		r.judged[r.pools[len(r.pools)-1].strategy]++
		if inForce(r.templates, made, func(d described) uint64 { return d.version }, func(d described) bool { return d.image == imageOf(member) }) == 0 {
			r.fail("member %s went to claim %s with %s, which no template described since version %d of the claim: %v",
				member.Name, claim.Name, imageOf(member), made, r.templates)
		}
	}
	for _, o := range r.outages {
		if o.concerns(member) && made > o.from && (o.until == 0 || version <= o.until) {
			r.fail("member %s went to claim %s during %+v", member.Name, claim.Name, o)
		}
	}
}

// inForce counts which of what was in force at a version or came after it are meant.
func inForce[T any](all []T, at uint64, since func(T) uint64, meant func(T) bool) int {
	count := 0
	for i, one := range all {
		overtaken := i+1 < len(all) && since(all[i+1]) <= at
		if !overtaken && meant(one) {
			count++
		}
	}
	return count
}
