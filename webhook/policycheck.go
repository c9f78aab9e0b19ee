// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/policysource"
	"github.com/agent-sandbox-platform/agent-sandbox/policies/engine"
)

// rulePolicies is the rule of policies that would not load.
const rulePolicies = "policies-load"

// policyCheck refuses policy ConfigMaps.
type policyCheck struct {
	source *policysource.Source
}

// validate refuses a policy ConfigMap that would not load, so that its author hears
// of it when he applies it, and to delete one whose rules another one configures.
// Loading checks again, so this may fail open.
func (c policyCheck) validate(ctx context.Context, req admission.Request) admission.Response {
	raw, check := req.Object.Raw, c.source.Check
	if req.Operation == admissionv1.Delete {
		raw, check = req.OldObject.Raw, c.source.CheckRemoval
		if slices.Contains(systemUsers, req.UserInfo.Username) {
			// Who deletes a namespace deletes all of them, in any order.
			return admission.Allowed("")
		}
	} else if response, done := unjudged(req); done {
		return response
	}
	var configMap corev1.ConfigMap
	if err := json.Unmarshal(raw, &configMap); err != nil {
		return failed(http.StatusBadRequest, fmt.Errorf("read the ConfigMap: %w", err))
	}
	configMap.Namespace = req.Namespace
	if configMap.Labels[keys.PolicySource] != "true" || req.Namespace != c.source.Namespace || !configMap.DeletionTimestamp.IsZero() {
		return admission.Allowed("")
	}
	if err := check(ctx, &configMap); err != nil {
		v := verdict{digest: c.source.Engine.Digest(), findings: faults(err)}
		logf.FromContext(ctx).Info("policy ConfigMap refused", "operation", req.Operation, "reason", message(v.findings))
		countFindings(ctx, v)
		return respond(req, v)
	}
	return admission.Allowed("")
}

// faults has one finding for each of the errors that are joined in one.
func faults(err error) []engine.Finding {
	if joined, several := err.(interface{ Unwrap() []error }); several {
		var all []engine.Finding
		for _, one := range joined.Unwrap() {
			all = append(all, faults(one)...)
		}
		return all
	}
	return []engine.Finding{{Rule: rulePolicies, Severity: engine.High, Enforcement: engine.Deny, Message: err.Error()}}
}
