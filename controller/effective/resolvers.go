// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package effective

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

const (
	fieldDNSPolicy   = "dnsPolicy"
	fieldDNSConfig   = "dnsConfig"
	fieldNameservers = "nameservers"
	dnsNone          = "None"
)

// FollowProfile gives the Pod the resolvers that its egress profile opens: the profile's,
// or else the cluster's. What the owner of the Pod chose himself stays, and so do the
// public ones of a template's Pod where the profile opens the internet. The template is
// nil for a Sandbox that was made from none.
func (r *Result) FollowProfile(profile config.EgressProfile, template map[string]any) {
	spec := objectAt(r.Pod, "spec")
	if spec == nil {
		return
	}
	chosen := spec
	if template != nil {
		chosen = objectAt(template, "spec", "podTemplate", "spec")
		if !opensByProfile(template) || profile.Internet {
			return
		}
	}
	if policy, _ := chosen[fieldDNSPolicy].(string); policy != "" {
		return
	}
	own := runtime.DeepCopyJSON(objectAt(chosen, fieldDNSConfig))
	switch {
	case profile.DNS && template != nil:
		delete(spec, fieldDNSPolicy)
		delete(spec, fieldDNSConfig)
		if own != nil {
			spec[fieldDNSConfig] = own
		}
	case !profile.DNS && len(profile.Nameservers) > 0:
		spec[fieldDNSPolicy] = dnsNone
		if own == nil {
			own = map[string]any{}
		}
		if servers, _ := own[fieldNameservers].([]any); len(servers) == 0 {
			own[fieldNameservers] = toAny(profile.Nameservers)
		}
		spec[fieldDNSConfig] = own
	}
}

// opensByProfile says whether the egress of a template is that of its profile, and not
// its own or its owner's.
func opensByProfile(template map[string]any) bool {
	spec := objectAt(template, "spec")
	management, _ := spec["networkPolicyManagement"].(string)
	return (management == "" || management == "Managed") && spec["networkPolicy"] == nil
}

func toAny(texts []string) []any {
	list := make([]any, 0, len(texts))
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}
