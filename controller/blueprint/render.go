// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blueprint

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/effective"
)

// rendered is the Sandbox of a template before anybody's labels.
func rendered(template *extensionsv1beta1.SandboxTemplate, opts Options) (*agentsv1beta1.Sandbox, error) {
	source, err := asJSON(template)
	if err != nil {
		return nil, err
	}
	result := effective.OfPool(source)
	result.FollowProfile(opts.Profile, source)
	return fromResult(result, template)
}

// renderedFor is the same with what a claim adds.
func renderedFor(
	claim *extensionsv1beta1.SandboxClaim, template *extensionsv1beta1.SandboxTemplate, opts Options,
) (*agentsv1beta1.Sandbox, error) {
	source, err := asJSON(template)
	if err != nil {
		return nil, err
	}
	wish, err := asJSON(claim)
	if err != nil {
		return nil, err
	}
	result := effective.OfClaim(wish, source)
	if len(result.Errors) > 0 {
		return nil, &RefusalError{Errors: result.Errors}
	}
	result.FollowProfile(opts.Profile, source)
	return fromResult(result, template)
}

func fromResult(result effective.Result, template *extensionsv1beta1.SandboxTemplate) (*agentsv1beta1.Sandbox, error) {
	var parts agentsv1beta1.SandboxBlueprint
	whole := map[string]any{"podTemplate": result.Pod, "volumeClaimTemplates": result.VolumeClaimTemplates}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole, &parts); err != nil {
		return nil, fmt.Errorf("read the Sandbox that the template %q describes: %w", template.Name, err)
	}
	if template.Spec.Service != nil {
		parts.Service = new(*template.Spec.Service)
	}
	return &agentsv1beta1.Sandbox{
		ObjectMeta: fromTemplate(template),
		Spec: agentsv1beta1.SandboxSpec{
			SandboxBlueprint: parts,
			Lifecycle:        agentsv1beta1.Lifecycle{ShutdownPolicy: new(agentsv1beta1.ShutdownPolicyRetain)},
			OperatingMode:    agentsv1beta1.OperatingModeRunning,
		},
	}, nil
}

func asJSON(object any) (map[string]any, error) {
	decoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("write %T as JSON: %w", object, err)
	}
	return decoded, nil
}
