// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// Load reads and checks the file. Its errors name the file, the key, the value and
// the remedy.
func Load(path string) (*Platform, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read platform configuration: %w", err)
	}
	p, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("platform configuration %s: %w", path, err)
	}
	return p, nil
}

// Parse reads and checks a configuration.
func Parse(data []byte) (*Platform, error) {
	var p Platform
	if err := yaml.UnmarshalStrict(data, &p); err != nil {
		return nil, err
	}
	if err := p.Validate().ToAggregate(); err != nil {
		return nil, err
	}
	return &p, nil
}

// Validate lists everything that is wrong.
func (p *Platform) Validate() field.ErrorList {
	var errs field.ErrorList
	if _, known := p.Tiers[p.DefaultTier]; !known {
		errs = append(errs, field.NotSupported(field.NewPath("defaultTier"), p.DefaultTier, sortedKeys(p.Tiers)))
	}
	errs = append(errs, validateOrder(p.RuntimeClassOrder, field.NewPath("runtimeClassOrder"))...)
	errs = append(errs, validateOrder(p.RuntimeClassesFromZero, field.NewPath("runtimeClassesFromZero"))...)
	for _, name := range sortedKeys(p.Tiers) {
		errs = append(errs, validateName(name, field.NewPath("tiers").Key(name))...)
		errs = append(errs, p.validateTier(p.Tiers[name], field.NewPath("tiers").Key(name))...)
	}
	for _, name := range sortedKeys(p.EgressProfiles) {
		errs = append(errs, validateName(name, field.NewPath("egressProfiles").Key(name))...)
		if strings.HasSuffix(name, templateSuffix) {
			errs = append(errs, field.Invalid(field.NewPath("egressProfiles").Key(name), name,
				"policies of templates end so, and one could have the same name: end it otherwise"))
		}
		errs = append(errs, validateProfile(p.EgressProfiles[name], field.NewPath("egressProfiles").Key(name))...)
	}
	for i, domain := range p.Claims.LabelDomains {
		for _, problem := range validation.IsDNS1123Subdomain(domain) {
			errs = append(errs, field.Invalid(field.NewPath("claims", "labelDomains").Index(i), domain, problem))
		}
	}
	cluster := field.NewPath("cluster")
	errs = append(errs, validateCIDRs(p.Cluster.CIDRs, cluster.Child("cidrs"))...)
	errs = append(errs, validateAddresses(p.Cluster.DNSAddresses, cluster.Child("dnsAddresses"))...)
	errs = append(errs, validatePeer(p.Cluster.DNS, cluster.Child("dns"))...)
	return append(errs, validatePeer(p.Router, field.NewPath("router"))...)
}

// templateSuffix ends the names of the policies of templates.
const templateSuffix = "-network-policy"

// validateName wants what can be the value of a label and a part of an object's name.
func validateName(name string, at *field.Path) field.ErrorList {
	if len(validation.IsDNS1123Label(name)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, name, "a name is at most 63 small letters, digits and hyphens, and begins and ends with a letter or digit")}
}

func (p *Platform) validateProfileName(name string, at *field.Path) field.ErrorList {
	if _, known := p.EgressProfiles[name]; known {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, name, sortedKeys(p.EgressProfiles))}
}

func validateAddresses(addresses []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, text := range addresses {
		switch address, err := netip.ParseAddr(text); {
		case err != nil || address.Zone() != "":
			errs = append(errs, field.Invalid(at.Index(i), text, "write an IP address"))
		case address.Is4In6():
			errs = append(errs, field.Invalid(at.Index(i), text, "write "+address.Unmap().String()))
		}
	}
	return errs
}

// validateCIDRs wants the canonical form: host bits that are set would be read as
// one thing by a person and as another by the network, and so would IPv4 that is written
// as IPv6.
func validateCIDRs(cidrs []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(at.Index(i), cidr, "write a range such as 10.0.0.0/8 or fd00::/8"))
		case prefix.Addr().Is4In6():
			plain := netip.PrefixFrom(prefix.Addr().Unmap(), max(prefix.Bits()-96, 0))
			errs = append(errs, field.Invalid(at.Index(i), cidr, "write "+plain.Masked().String()))
		case prefix.Masked() != prefix:
			errs = append(errs, field.Invalid(at.Index(i), cidr, "write "+prefix.Masked().String()))
		}
	}
	return errs
}

func validatePeer(p Peer, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(p.Namespace) == "" {
		errs = append(errs, field.Required(at.Child("namespace"), "name the namespace"))
	}
	if len(p.PodLabels) == 0 {
		errs = append(errs, field.Required(at.Child("podLabels"), "name at least one label, or every Pod of the namespace would be meant"))
	}
	return errs
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
