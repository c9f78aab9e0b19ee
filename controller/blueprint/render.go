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
	return fromResult(effective.OfPool(source), template, opts)
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
	return fromResult(result, template, opts)
}

func fromResult(result effective.Result, template *extensionsv1beta1.SandboxTemplate, opts Options) (*agentsv1beta1.Sandbox, error) {
	var parts agentsv1beta1.SandboxBlueprint
	whole := map[string]any{"podTemplate": result.Pod, "volumeClaimTemplates": result.VolumeClaimTemplates}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole, &parts); err != nil {
		return nil, fmt.Errorf("read the Sandbox that the template %q describes: %w", template.Name, err)
	}
	if template.Spec.Service != nil {
		parts.Service = new(*template.Spec.Service)
	}
	followProfile(&parts, template, opts)
	return &agentsv1beta1.Sandbox{
		ObjectMeta: fromTemplate(template),
		Spec: agentsv1beta1.SandboxSpec{
			SandboxBlueprint: parts,
			Lifecycle:        agentsv1beta1.Lifecycle{ShutdownPolicy: new(agentsv1beta1.ShutdownPolicyRetain)},
			OperatingMode:    agentsv1beta1.OperatingModeRunning,
		},
	}, nil
}

// followProfile leaves a Pod the cluster's resolvers where its profile opens them and
// not the internet, on which the contract's public ones lie.
func followProfile(parts *agentsv1beta1.SandboxBlueprint, template *extensionsv1beta1.SandboxTemplate, opts Options) {
	open := template.Spec.PodTemplate.Spec.DNSPolicy == "" && template.Spec.NetworkPolicy == nil
	if open && opts.Profile.DNS && !opts.Profile.Internet {
		parts.PodTemplate.Spec.DNSPolicy = ""
		parts.PodTemplate.Spec.DNSConfig = template.Spec.PodTemplate.Spec.DNSConfig.DeepCopy()
	}
}

func asJSON(object any) (map[string]any, error) {
	decoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("write %T as JSON: %w", object, err)
	}
	return decoded, nil
}
