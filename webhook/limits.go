// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// maxDepth is how many levels of an object are judged. A Pod has less than thirty.
	maxDepth = 64
	// maxObject is how long an object may be, in bytes of JSON: etcd stores no longer
	// one.
	maxObject = 3 << 19
	// retryAfter is how many seconds a client is asked to wait when we are busy.
	retryAfter = 1
)

const (
	// ruleLimits is the rule of objects that are too large to judge.
	ruleLimits = "request-limits"
	// ruleBusy is the rule of requests that are too many at the same time.
	ruleBusy = "too-many-requests"
)

// errBusy is the reason of a refusal while too many requests are being judged.
var errBusy = errors.New("too many requests are being judged at the same time, nothing is wrong with this one: try again in a second")

// shedder refuses requests beyond a number at the same time, so that those before
// them are answered in time.
type shedder struct {
	places chan struct{}
}

func newShedder(limit int) shedder {
	return shedder{places: make(chan struct{}, limit)}
}

// shed answers at once when there is no place left.
func (s shedder) shed(next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		select {
		case s.places <- struct{}{}:
			defer func() { <-s.places }()
			return next.Handle(ctx, req)
		default:
			return busy()
		}
	})
}

// busy refuses a request in a way that clients repeat by themselves.
func busy() admission.Response {
	response := admission.Errored(http.StatusTooManyRequests, fmt.Errorf("%s: %s: %w", us, ruleBusy, errBusy))
	response.Result.Reason = metav1.StatusReasonTooManyRequests
	response.Result.Details = &metav1.StatusDetails{
		RetryAfterSeconds: retryAfter,
		Causes:            []metav1.StatusCause{{Type: ruleBusy, Message: errBusy.Error()}},
	}
	return response
}

// beyondLimits says what of an object is too large to judge, or nil.
func beyondLimits(req admission.Request, r review) error {
	if size := len(req.Object.Raw); size > maxObject {
		return fmt.Errorf("%s: the object has %d bytes, at most %d can be stored: make it smaller", ruleLimits, size, maxObject)
	}
	if deeper(r.object, maxDepth) {
		return fmt.Errorf("%s: the object nests more than %d levels: make it flatter", ruleLimits, maxDepth)
	}
	return nil
}

// deeper reports whether a value nests more levels than the limit.
func deeper(value any, limit int) bool {
	if limit < 0 {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			if deeper(member, limit-1) {
				return true
			}
		}
	case []any:
		for _, member := range value {
			if deeper(member, limit-1) {
				return true
			}
		}
	}
	return false
}
