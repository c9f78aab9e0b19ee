// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/quantity"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/clip"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

const (
	// maxDepth is how many levels of an object are judged. A Pod has less than thirty.
	maxDepth = 64
	// maxObject is how long an object may be, in bytes of JSON: etcd stores no longer
	// one.
	maxObject = 3 << 19
	// maxValues is how many values an object may have, whatever their length. What it
	// costs to judge one grows with it. A Pod of fifty containers has some five thousand.
	maxValues = 20_000
	// fewValues is how many values an update may add to an object that has too many: enough
	// for labels, an end, and other small things, of which each list has its own limit.
	fewValues = 100
	// valuesOfPod and valuesOfContainer are how many values mutation may set in an object
	// and in each of its containers: a tier asks for some fifteen of each, and for what it
	// drops and bounds one by one. membersSet is how many members it may add to a mapping.
	valuesOfPod       = 30
	valuesOfContainer = 60
	membersSet        = 10
	// maxEntries is how many entries a list and how many members an object may have.
	maxEntries = 1000
	// bytesOfPlace is how many bytes of JSON one place among the requests that are
	// judged at the same time stands for. Decoded they are some thirty times as long, so
	// that the 200 places of the default hold a hundred megabytes.
	bytesOfPlace = 16 << 10
	// shortBody is how long the usual bodies are at most, in bytes.
	shortBody = 256 << 10
	// shortBodies and longBodies are how many bytes of bodies are held at the same time, from
	// before they are read until they are answered: thousands of the usual ones, or seventy of
	// the longest of those, and beside them two of the longest of all. With the copies that
	// are made before one is judged the 32 MiB of both take some 150 megabytes; with the
	// hundred of those that are judged that is half of the 512Mi of the default.
	shortBodies = 18 << 20
	longBodies  = 2 * maxBody
	// waitForPlace, timeToArrive and timeToJudge are how long a request waits for its place,
	// how long its body may then take to arrive, and how long it is judged. With the moment
	// that a rule has to notice that its time is over they are less than the five seconds that
	// an apiserver gives us.
	waitForPlace = time.Second
	timeToArrive = 2 * time.Second
	timeToJudge  = 1800 * time.Millisecond
	// retryAfter is how many seconds a client is asked to wait when we are busy.
	retryAfter = 1
)

const (
	// ruleLimits is the rule of objects that are too large to judge.
	ruleLimits = "request-limits"
	// ruleBusy is the rule of requests that are too many at the same time.
	ruleBusy = "too-many-requests"
)

// entriesOf are limits of lists that rules look into, by name.
var entriesOf = map[string]int{
	"containers": 100, "initContainers": 100, "ephemeralContainers": 100, "volumes": 200, "volumeClaimTemplates": 100,
	"tolerations": 100, "imagePullSecrets": 100, "hostAliases": 100, "topologySpreadConstraints": 100, "sysctls": 100,
	"resourceClaims": 100, "ownerReferences": 100,
}

// errBusy is the reason of a refusal while too many requests are being judged.
var errBusy = errors.New("too many requests are being judged at the same time, nothing is wrong with this one: try again in a second")

// errLate is the reason of a refusal when no rule but the clock refuses.
var errLate = errors.New("the policies did not judge the object in time, as the webhook has too much to do or the object has too many parts: " +
	"try again in a second; if it happens again, tell the platform team")

// shedder refuses requests beyond a number at the same time, so that those before
// them are answered in time. A long request counts as several, so that the number
// bounds memory too.
type shedder struct {
	places *semaphore.Weighted
	limit  int64
}

func newShedder(limit int) shedder {
	return shedder{semaphore.NewWeighted(int64(limit)), int64(limit)}
}

// shed answers at once when there is no place left.
func (s shedder) shed(next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		size := min(s.limit, 1+int64(len(req.Object.Raw)+len(req.OldObject.Raw))/bytesOfPlace)
		if !s.places.TryAcquire(size) {
			return busy(errBusy)
		}
		defer s.places.Release(size)
		return next.Handle(ctx, req)
	})
}

// busy refuses a request that nobody had time for.
func busy(reason error) admission.Response {
	response := admission.Errored(http.StatusTooManyRequests, fmt.Errorf("%s: %s: %w", us, ruleBusy, reason))
	response.Result.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: ruleBusy, Message: reason.Error()}}}
	comeAgain(&response)
	return response
}

// comeAgain makes a refusal one after which clients repeat the request by themselves.
func comeAgain(refusal *admission.Response) {
	refusal.Result.Code, refusal.Result.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
	refusal.Result.Details.RetryAfterSeconds = retryAfter
}

// beyondLimits says what of an object is too large to judge, or nil. Of an update only what
// it brings in is, but for amounts of too many digits: no schema of ours takes them, and
// who reads one hangs. It is slight if it is no more than mutation may have set.
func beyondLimits(req admission.Request, r review) (found *engine.Finding, slight bool) {
	if size := len(req.Object.Raw); size > maxObject && len(req.OldObject.Raw) <= maxObject {
		return new(excess(fmt.Sprintf("the object has %d bytes, at most %d can be stored", size, maxObject), "Make it smaller.")), false
	}
	now, before := extentOf(r.object), extent{}
	found = now.beyond(before, room{})
	if found != nil && r.old != nil {
		before = extentOf(r.old)
		found = now.beyond(before, room{})
	}
	if found != nil && now.beyond(before, roomFor(r.object)) != nil {
		return found, false
	}
	slight = found != nil
	if path, text, costly := quantity.FindCostly(r.object); costly {
		found := excess("is an amount of too many digits", "Write it with a suffix, such as 500m or 2Gi.")
		found.Field, found.Value = strings.TrimPrefix(path, "."), text
		return &found, false
	}
	return found, slight
}

// room is what mutation may have set: so many values in all, and so many members of a mapping.
type room struct{ values, members int }

// roomFor is the room in an object: that of a Pod and its metadata, and that of each container.
func roomFor(object map[string]any) room {
	pod := objectAt(object, "spec", "podTemplate", "spec")
	containers := 0
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		members, _ := pod[list].([]any)
		containers += len(members)
	}
	return room{values: valuesOfPod + containers*valuesOfContainer, members: membersSet}
}

// excess is the finding that an object is beyond a limit.
func excess(message, remediation string) engine.Finding {
	return engine.Finding{
		Rule: ruleLimits, Severity: engine.High, Enforcement: engine.Deny, Message: message, Remediation: remediation,
	}
}

// nesting is the finding that an object nests too deep.
func nesting() engine.Finding {
	return excess(fmt.Sprintf("the object nests more than %d levels", maxDepth), "Make it flatter.")
}

// extent is how large an object is.
type extent struct {
	// values is how many values it has in all, depth how many levels.
	values, depth int
	// crowded are its lists and mappings that have more entries than are judged.
	crowded []crowd
	// at leads to the value that is being measured.
	at []step
}

// mutatedMappings are mappings of any names that mutation adds to.
var mutatedMappings = []string{"annotations", "limits", "requests"}

// crowd is a list or a mapping with too many entries.
type crowd struct {
	// path says where it is, and place by names where there are some, whatever the order
	// of the lists on the way.
	path, place   string
	entries, most int
	what          string
}

// step leads to a member, or to an entry of a list, which may have a name.
type step struct {
	name  string
	entry int
	list  bool
}

// extentOf measures an object.
func extentOf(object map[string]any) extent {
	var e extent
	e.visit(object)
	return e
}

func (e *extent) visit(value any) {
	e.values++
	e.depth = max(e.depth, len(e.at))
	switch value := value.(type) {
	case map[string]any:
		e.count(len(value), maxEntries, "members")
		for name, member := range value {
			e.below(step{name: name}, member)
		}
	case []any:
		e.count(len(value), e.mostEntries(), "entries")
		for i, entry := range value {
			named, _ := entry.(map[string]any)
			e.below(step{name: textAt(named, "name"), entry: i, list: true}, entry)
		}
	}
}

func (e *extent) below(s step, value any) {
	e.at = append(e.at, s)
	e.visit(value)
	e.at = e.at[:len(e.at)-1]
}

// mostEntries is how many entries the list that is being measured may have.
func (e *extent) mostEntries() int {
	if len(e.at) == 0 || e.at[len(e.at)-1].list {
		return maxEntries
	}
	return cmp.Or(entriesOf[e.at[len(e.at)-1].name], maxEntries)
}

// count notes what is crowded, as far as that is worth the memory.
func (e *extent) count(entries, most int, what string) {
	if entries <= most || len(e.at) > maxDepth || len(e.crowded) == maxEntries {
		return
	}
	var path, place strings.Builder
	for _, s := range e.at {
		name := clip.To(s.name, maxValue)
		if s.list {
			path.WriteString("[" + strconv.Itoa(s.entry) + "]")
			place.WriteString("[" + name + "]")
			continue
		}
		path.WriteString("." + name)
		place.WriteString("." + name)
	}
	e.crowded = append(e.crowded, crowd{path.String(), place.String(), entries, most, what})
}

// beyond says what is beyond a limit, with some room, that was not before, or nil.
func (e *extent) beyond(before extent, more room) *engine.Finding {
	had := map[string]int{}
	for _, c := range before.crowded {
		had[c.place] = max(had[c.place], c.entries)
	}
	brought := slices.DeleteFunc(slices.Clone(e.crowded), func(c crowd) bool {
		most := had[c.place]
		if slices.Contains(mutatedMappings, c.place[strings.LastIndexByte(c.place, '.')+1:]) {
			most = max(c.most, most) + more.members
		}
		return c.entries <= most
	})
	stored := 0
	if before.values > maxValues {
		stored = before.values + fewValues
	}
	switch {
	case len(brought) > 0:
		c := slices.MinFunc(brought, func(a, b crowd) int { return strings.Compare(a.path, b.path) })
		found := excess(fmt.Sprintf("has %d %s, at most %d are judged", c.entries, c.what, c.most), "Use fewer.")
		found.Field = strings.TrimPrefix(c.path, ".")
		return &found
	case e.depth > max(maxDepth, before.depth):
		return new(nesting())
	case e.values > max(maxValues, stored)+more.values:
		return new(excess(fmt.Sprintf("the object has more than %d values", maxValues), "Make it smaller."))
	}
	return nil
}
