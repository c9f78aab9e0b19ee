// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/quantity"
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
	// maxEntries is how many entries a list and how many members an object may have.
	maxEntries = 1000
	// bytesOfPlace is how many bytes of JSON one place among the requests that are
	// judged at the same time stands for. Decoded they are some thirty times as long, so
	// that the 200 places of the default hold a hundred megabytes.
	bytesOfPlace = 16 << 10
	// maxBodies is how many bytes of bodies are held at the same time, from before they are
	// read until they are answered: four of the longest, or thousands of the usual ones. With
	// the copies that are made before one is judged they take some 150 megabytes; with the
	// hundred of those that are judged that is half of the 512Mi of the default.
	maxBodies = 32 << 20
	// waitForPlace and timeToArrive are how long a request waits for its place, and how long
	// its body may then take to arrive. With what judging takes they are less than the five
	// seconds that an apiserver gives us.
	waitForPlace = time.Second
	timeToArrive = 2 * time.Second
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

// busy refuses a request in a way that clients repeat by themselves.
func busy(reason error) admission.Response {
	response := admission.Errored(http.StatusTooManyRequests, fmt.Errorf("%s: %s: %w", us, ruleBusy, reason))
	response.Result.Reason = metav1.StatusReasonTooManyRequests
	response.Result.Details = &metav1.StatusDetails{
		RetryAfterSeconds: retryAfter,
		Causes:            []metav1.StatusCause{{Type: ruleBusy, Message: reason.Error()}},
	}
	return response
}

// beyondLimits says what of an object is too large to judge, or nil.
func beyondLimits(req admission.Request, r review) error {
	if size := len(req.Object.Raw); size > maxObject {
		return fmt.Errorf("%s: the object has %d bytes, at most %d can be stored: make it smaller", ruleLimits, size, maxObject)
	}
	var c counter
	found := c.visit("", r.object, 0)
	switch {
	case found == nil:
		if path, text, costly := quantity.FindCostly(r.object); costly {
			return fmt.Errorf("%s: %s (%s) is an amount of too many digits: write it with a suffix, such as 500m or 2Gi",
				ruleLimits, strings.TrimPrefix(path, "."), shorten(text, maxValue))
		}
		return nil
	case found.whole:
		return fmt.Errorf("%s: the object %s", ruleLimits, found.reason)
	default:
		return fmt.Errorf("%s: %s %s", ruleLimits, strings.TrimPrefix(found.path, "."), found.reason)
	}
}

// excess is what of an object is beyond a limit, and where: at a path, or in the
// object as a whole.
type excess struct {
	whole        bool
	path, reason string
}

// counter counts the values of an object.
type counter struct {
	values int
}

// visit looks through a value, which is a member of that name, until something is
// beyond a limit.
func (c *counter) visit(name string, value any, depth int) *excess {
	c.values++
	switch {
	case depth > maxDepth:
		return &excess{whole: true, reason: fmt.Sprintf("nests more than %d levels: make it flatter", maxDepth)}
	case c.values > maxValues:
		return &excess{whole: true, reason: fmt.Sprintf("has more than %d values: make it smaller", maxValues)}
	}
	switch value := value.(type) {
	case map[string]any:
		return c.members(value, depth)
	case []any:
		return c.entries(value, name, depth)
	default:
		return nil
	}
}

func (c *counter) members(object map[string]any, depth int) *excess {
	if len(object) > maxEntries {
		return &excess{reason: fmt.Sprintf("has %d members, at most %d are judged: use fewer", len(object), maxEntries)}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if found := c.visit(name, object[name], depth+1); found != nil {
			found.path = "." + shorten(name, maxValue) + found.path
			return found
		}
	}
	return nil
}

func (c *counter) entries(list []any, name string, depth int) *excess {
	if most := cmp.Or(entriesOf[name], maxEntries); len(list) > most {
		return &excess{reason: fmt.Sprintf("has %d entries, at most %d are judged: use fewer", len(list), most)}
	}
	for i, entry := range list {
		if found := c.visit("", entry, depth+1); found != nil {
			found.path = fmt.Sprintf("[%d]%s", i, found.path)
			return found
		}
	}
	return nil
}
