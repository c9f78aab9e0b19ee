// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blueprint

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// Options are what a Sandbox depends on besides its template.
type Options struct {
	// Profile is the egress profile of the template in its namespace. DNS follows it.
	Profile config.EgressProfile
	// SafeToEvict marks the Pods of a pool as evictable for the cluster autoscaler.
	SafeToEvict bool
}

// OptionsFor finds the egress profile of a template in a namespace with that tier
// label. Its error names the field, the value and what is allowed; it is the user's
// to mend.
func OptionsFor(p *config.Platform, tierLabel string, template *extensionsv1beta1.SandboxTemplate) (Options, *field.Error) {
	choice, invalid := isolation.Choose(p, isolation.SubjectOf(template, tierLabel))
	if invalid != nil {
		return Options{}, invalid
	}
	return Options{Profile: p.EgressProfiles[choice.Profile]}, nil
}
