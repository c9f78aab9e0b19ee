// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blueprint

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// Comparison holds what a template describes against many Sandboxes.
type Comparison struct {
	template *extensionsv1beta1.SandboxTemplate
	opts     Options
	hashes   TemplateHashes
	// want is rendered when the first hash differs.
	want *agentsv1beta1.Sandbox
}

// Compare prepares a Comparison.
func Compare(template *extensionsv1beta1.SandboxTemplate, opts Options) (*Comparison, error) {
	hashes, err := Hashes(template)
	if err != nil {
		return nil, err
	}
	return &Comparison{template: template, opts: opts, hashes: hashes}, nil
}

// Stale says whether a member of a pool is no longer what the template describes:
// another template, or another Pod, volumes or Service. Metadata alone makes no
// member stale.
func (c *Comparison) Stale(sandbox *agentsv1beta1.Sandbox) (bool, error) {
	if stale, said := c.StaleByMetadata(sandbox); said {
		return stale, nil
	}
	if c.want == nil {
		want, err := rendered(c.template, c.opts)
		if err != nil {
			return false, err
		}
		c.want = want
	}
	return !sameBlueprint(&sandbox.Spec.SandboxBlueprint, &c.want.Spec.SandboxBlueprint), nil
}

// StaleByMetadata is what labels and annotations say of that, if they do: of a Sandbox of
// another template, and of one that was made from this one as it is. It costs next to
// nothing; Stale compares all the rest.
func (c *Comparison) StaleByMetadata(sandbox *agentsv1beta1.Sandbox) (stale, said bool) {
	switch {
	case sandbox.Labels[keys.SandboxTemplateRefHash] != c.hashes.Ref, sandbox.Annotations[keys.SandboxTemplateRef] != c.template.Name:
		return true, true
	case sandbox.Labels[keys.SandboxTemplateHash] == c.hashes.Blueprint:
		return false, true
	default:
		return false, false
	}
}

// Stale compares one Sandbox; see Comparison.
func Stale(sandbox *agentsv1beta1.Sandbox, template *extensionsv1beta1.SandboxTemplate, opts Options) (bool, error) {
	comparison, err := Compare(template, opts)
	if err != nil {
		return false, err
	}
	return comparison.Stale(sandbox)
}

// Form is a hash of all that a Comparison looks at: of Sandboxes of one form it says the
// same. It fails only for a Sandbox that cannot be written as JSON.
func Form(sandbox *agentsv1beta1.Sandbox) (string, error) {
	text, err := json.Marshal([]any{origin(sandbox), &sandbox.Spec.SandboxBlueprint})
	if err != nil {
		return "", fmt.Errorf("hash the Sandbox: %w", err)
	}
	sum := sha256.Sum256(text)
	return string(sum[:]), nil
}

// SameForm says whether a Sandbox certainly has the form that it had before. It is much
// quicker than Form: the apiserver counts the changes of a spec.
func SameForm(before, after *agentsv1beta1.Sandbox) bool {
	return before.UID == after.UID && before.Generation == after.Generation && origin(before) == origin(after)
}

// origin is what the metadata of a Sandbox says of its template.
func origin(sandbox *agentsv1beta1.Sandbox) [3]string {
	return [3]string{
		sandbox.Labels[keys.SandboxTemplateRefHash], sandbox.Labels[keys.SandboxTemplateHash], sandbox.Annotations[keys.SandboxTemplateRef],
	}
}

// Matches says whether a Sandbox is, in its whole spec, the one that would be made.
// The metadata of its Pod counts, and so do its lifecycle and its operating mode.
func Matches(sandbox, want *agentsv1beta1.Sandbox) bool {
	have := sandbox.Spec.DeepCopy()
	if have.ShutdownPolicy == nil {
		have.ShutdownPolicy = new(agentsv1beta1.ShutdownPolicyRetain)
	}
	if have.OperatingMode == "" {
		have.OperatingMode = agentsv1beta1.OperatingModeRunning
	}
	return apiequality.Semantic.DeepEqual(have, &want.Spec)
}

// sameBlueprint compares Pod spec, volumes by name and spec in their order, and
// Service.
func sameBlueprint(have, want *agentsv1beta1.SandboxBlueprint) bool {
	if len(have.VolumeClaimTemplates) != len(want.VolumeClaimTemplates) {
		return false
	}
	for i := range have.VolumeClaimTemplates {
		one, other := &have.VolumeClaimTemplates[i], &want.VolumeClaimTemplates[i]
		if one.Name != other.Name || !apiequality.Semantic.DeepEqual(one.Spec, other.Spec) {
			return false
		}
	}
	return apiequality.Semantic.DeepEqual(have.PodTemplate.Spec, want.PodTemplate.Spec) &&
		apiequality.Semantic.DeepEqual(have.Service, want.Service)
}
