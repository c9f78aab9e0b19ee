// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/defaults"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/judge"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// Paths of the handlers.
const (
	PathMutate         = "/mutate"
	PathValidate       = "/validate"
	PathValidatePolicy = "/validate-policy"
)

// Mutate sets hardened defaults. It changes what it can and refuses nothing:
// validation refuses what is not as it should be.
func (j *Judge) Mutate(ctx context.Context, req admission.Request) admission.Response {
	if response, done := unjudged(req); done {
		return response
	}
	r, err := read(req)
	if err != nil {
		return failed(http.StatusBadRequest, err)
	}
	if excess, _ := beyondLimits(req, r); excess != nil {
		return admission.Allowed("")
	}
	request := defaults.Request{
		Operation: r.operation, Kind: r.kind, Object: r.object, OldObject: r.old, User: r.user.Username, Now: j.Clock.Now(),
	}
	if r.kind != engine.KindSandboxClaim {
		known, err := j.Facts(ctx, r.namespace)
		if err != nil {
			logf.FromContext(ctx).Error(err, "no defaults are set, validation decides")
			return admission.Allowed("")
		}
		request.Tier, request.RuntimeClasses, request.FreeClasses = known.Tier, known.Classes.Usable, known.Classes.Free
	}
	return admission.Patched("", defaults.Operations(request)...)
}

// Validate gives the verdict.
func (j *Judge) Validate(ctx context.Context, req admission.Request) admission.Response {
	if response, done := unjudged(req); done {
		return response
	}
	r, err := read(req)
	if err != nil {
		return failed(http.StatusBadRequest, err)
	}
	if r.leaving() || r.harmless() {
		return admission.Allowed("")
	}
	excess, slight := beyondLimits(req, r)
	if excess != nil && !slight {
		return j.unfit(ctx, req, *excess)
	}
	if !j.Engine.Ready() {
		return notReady()
	}
	v, err := j.judge(ctx, r)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return busy(errLate)
	case err != nil:
		return failed(http.StatusInternalServerError, err)
	}
	if excess != nil && slices.ContainsFunc(v.findings, func(f engine.Finding) bool { return f.Rule == judge.RuleDefaults }) {
		return j.unfit(ctx, req, *excess) // it was too large for mutation
	}
	countFindings(ctx, v) // with what was late, which no answer names beside what is known
	switch known := v.inTime(); {
	case len(known.with(engine.Deny)) > 0:
		v = known
	case len(v.with(engine.Deny)) > 0:
		logf.FromContext(ctx).Info("the policies did not judge in time, the request is asked to come again", "request", req.UID)
		return busy(v.late())
	}
	response := respond(req, v)
	if v.missesMutation() {
		comeAgain(&response)
	}
	return response
}

// tooDeep refuses an object that nests too deep to be decoded.
func (j *Judge) tooDeep(ctx context.Context, req admission.Request) admission.Response {
	return j.unfit(ctx, req, nesting())
}

// unfit refuses an object that is not judged, for the reason why.
func (j *Judge) unfit(ctx context.Context, req admission.Request, why engine.Finding) admission.Response {
	// No line of the decision log tells of it, so it has no id.
	v := verdict{digest: j.Engine.Digest(), findings: []engine.Finding{why}}
	countFindings(ctx, v)
	return respond(req, v)
}

// unjudged answers requests that bring nothing in: deleting and connecting are never in
// question. What else is neither creation nor update, nobody can judge.
func unjudged(req admission.Request) (response admission.Response, done bool) {
	switch req.Operation {
	case admissionv1.Create, admissionv1.Update:
		return response, false
	case admissionv1.Delete, admissionv1.Connect:
		return admission.Allowed(""), true
	default:
		return failed(http.StatusBadRequest, fmt.Errorf("read the request: there is no operation %q", req.Operation)), true
	}
}

// guarded turns a panic into a refusal that says whose fault it is.
func guarded(next admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) (response admission.Response) {
		defer func() {
			if cause := recover(); cause != nil {
				logf.FromContext(ctx).Error(fmt.Errorf("panic: %v", cause), "refuse the request", "stack", string(debug.Stack()))
				response = failed(http.StatusInternalServerError, fmt.Errorf("panic, see the log of the webhook for request %s", req.UID))
			}
		}()
		return next.Handle(ctx, req)
	})
}

// Handlers are the admission handlers by path. At most limit requests are handled at
// the same time, further ones are asked to come again.
func Handlers(j *Judge, policies *policysource.Source, metrics *Metrics, limit int) map[string]http.Handler {
	handlers := map[string]http.Handler{}
	crowd, bodies := newShedder(limit), newIntake(metrics.clock)
	for path, handle := range map[string]admission.HandlerFunc{
		PathMutate: j.Mutate, PathValidate: j.Validate, PathValidatePolicy: policyCheck{policies}.validate,
	} {
		deep := j.tooDeep
		if path == PathMutate { // which refuses nothing
			deep = func(context.Context, admission.Request) admission.Response { return admission.Allowed("") }
		}
		observed := func(handler admission.Handler) http.Handler {
			return &admission.Webhook{Handler: metrics.observe(path[1:], handler)}
		}
		handlers[path] = bodies.bounded(observed(admission.HandlerFunc(deep)), observed(crowd.shed(guarded(handle))))
	}
	return handlers
}
