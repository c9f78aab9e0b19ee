// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blueprint

import (
	"encoding/json"
	"fmt"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// TemplateHashes are the contract's hashes of a template, as labels carry them.
type TemplateHashes struct {
	// Ref is the hash of the template's name (label sandbox-template-ref-hash).
	Ref string
	// Blueprint is the hash of the whole blueprint (label sandbox-template-hash).
	Blueprint string
	// PodTemplate is the hash of its podTemplate (label sandbox-pod-template-hash).
	PodTemplate string
}

// Hashes computes the hashes of a template. It fails only for a template that cannot
// be written as JSON.
func Hashes(template *extensionsv1beta1.SandboxTemplate) (TemplateHashes, error) {
	whole, err := hashOf(template.Spec.SandboxBlueprint)
	if err != nil {
		return TemplateHashes{}, err
	}
	pod, err := hashOf(template.Spec.PodTemplate)
	if err != nil {
		return TemplateHashes{}, err
	}
	return TemplateHashes{Ref: keys.NameHash(template.Name), Blueprint: whole, PodTemplate: pod}, nil
}

func hashOf(part any) (string, error) {
	text, err := json.Marshal(part)
	if err != nil {
		return "", fmt.Errorf("hash the template: %w", err)
	}
	return keys.NameHash(string(text)), nil
}
