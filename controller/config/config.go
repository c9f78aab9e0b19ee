// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config is the platform configuration: tiers, egress profiles and what the
// platform engineer says about the cluster. The chart renders it from its values
// into one file, which the webhook and the controllers read at their start.
//
// The package is pure but for Load and Publish, and is strict: a key that nobody knows or a
// name that points nowhere is an error that says where and what to do.
package config

// Platform is the whole configuration file.
type Platform struct {
	// DefaultTier names the tier of namespaces without a tier label.
	DefaultTier string `json:"defaultTier"`
	// Tiers are the tiers by name.
	Tiers map[string]Tier `json:"tiers"`
	// RuntimeClassOrder are RuntimeClasses from the one that isolates best down. The floors
	// of tiers are read in it.
	RuntimeClassOrder []string `json:"runtimeClassOrder,omitempty"`
	// RuntimeClassesFromZero are RuntimeClasses whose nodes an autoscaler makes when a Pod
	// waits for one, so that they need none to be chosen.
	RuntimeClassesFromZero []string `json:"runtimeClassesFromZero,omitempty"`
	// EgressProfiles are the profiles by name.
	EgressProfiles map[string]EgressProfile `json:"egressProfiles"`
	// Cluster says what only the platform engineer knows about the network.
	Cluster Cluster `json:"cluster"`
	// Router is what may connect to Sandboxes.
	Router Router `json:"router"`
	// Claims says what claims may bring.
	Claims Claims `json:"claims,omitzero"`
	// Identity says which identities a Sandbox may have.
	Identity Identity `json:"identity,omitzero"`
	// Environment is free data for Rego rules, as input.environment.
	Environment map[string]any `json:"environment,omitempty"`
}

// Claims says what claims may bring.
type Claims struct {
	// LabelDomains are the domains whose labels, and those of their sub-domains, a claim
	// may add to its Pod. Empty means sandbox.users.io.
	LabelDomains []string `json:"labelDomains,omitempty"`
}

// defaultLabelDomain is the domain of labels that claims may add where nothing else is
// configured.
const defaultLabelDomain = "sandbox.users.io"

// AllowedLabelDomains are the domains whose labels a claim may add to its Pod.
func (c Claims) AllowedLabelDomains() []string {
	if len(c.LabelDomains) == 0 {
		return []string{defaultLabelDomain}
	}
	return c.LabelDomains
}

// Identity says which identities a Sandbox may have. The chart renders it from the
// parameters of the rules automount-token and projected-identity, so that the
// controller refuses at the Pod what these refuse at admission and no more.
type Identity struct {
	// ServiceAccounts are those whose token may be mounted; AnyIdentity means all.
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	// Audiences are those for which a token may be projected; AnyIdentity means that
	// every source of an identity may be.
	Audiences []string `json:"audiences,omitempty"`
	// MaxExpirationSeconds is the longest lifetime of such a token; zero means one hour.
	MaxExpirationSeconds int64 `json:"maxExpirationSeconds,omitempty"`
}

// AnyIdentity stands for every entry of a list of Identity.
const AnyIdentity = "*"

// Cluster says what only the platform engineer knows about the cluster's network.
type Cluster struct {
	// CIDRs are the ranges of Pods, Services and nodes; Internet never covers them.
	CIDRs []string `json:"cidrs,omitempty"`
	// Discovered are those of the CIDRs that nobody configured: isolation.Resolve found
	// them in the cluster.
	Discovered []string `json:"-"`
	// DNS are the Pods that resolve names for the cluster.
	DNS Peer `json:"dns"`
	// DNSAddresses are addresses of resolvers that are no Pods, such as a node-local
	// cache.
	DNSAddresses []string `json:"dnsAddresses,omitempty"`
}

// Router is what may connect to Sandboxes.
type Router = Peer

// Peer selects Pods of one namespace.
type Peer struct {
	// Namespace is the name of the namespace.
	Namespace string `json:"namespace"`
	// PodLabels are the labels of the Pods.
	PodLabels map[string]string `json:"podLabels"`
}

// TierOf returns the tier of a namespace by its tier label, which is empty for a
// namespace that has none. The second result is false for a label that names no
// tier.
func (p *Platform) TierOf(label string) (name string, tier Tier, known bool) {
	if label == "" {
		label = p.DefaultTier
	}
	tier, known = p.Tiers[label]
	if tier.RuntimeClass.Floor != "" {
		tier.RuntimeClass.AtLeast = atLeast(p.RuntimeClassOrder, tier.RuntimeClass.Floor)
	}
	return label, tier, known
}
