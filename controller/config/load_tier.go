// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podsecurity "k8s.io/pod-security-admission/api"
)

func (p *Platform) validateTier(t Tier, at *field.Path) field.ErrorList {
	errs := validatePodSecurity(t.PodSecurity, at.Child("podSecurity"))
	errs = append(errs, p.validateRuntimeClass(t.RuntimeClass, at.Child("runtimeClass"))...)
	errs = append(errs, validateHardening(t, at)...)
	errs = append(errs, validateResources(t.Resources, at.Child("resources"))...)
	for i, name := range t.ServiceAccounts {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			errs = append(errs, field.Invalid(at.Child("serviceAccounts").Index(i), name, "write the name of a ServiceAccount"))
		}
	}
	if t.MaxLifetime.Duration < 0 {
		errs = append(errs, field.Invalid(at.Child("maxLifetime"), t.MaxLifetime.Duration.String(), "write a duration such as 24h"))
	}
	egress := at.Child("egress")
	errs = append(errs, p.validateProfileName(t.Egress.Profile, egress.Child("profile"))...)
	for i, name := range t.Egress.Allowed {
		errs = append(errs, p.validateProfileName(name, egress.Child("allowed").Index(i))...)
	}
	if t.Egress.Ceiling != "" {
		errs = append(errs, p.validateProfileName(t.Egress.Ceiling, egress.Child("ceiling"))...)
	}
	if modes := []Reopened{"", ReopenedRefuse, ReopenedReport}; !slices.Contains(modes, t.Egress.Reopened) {
		errs = append(errs, field.NotSupported(egress.Child("reopened"), t.Egress.Reopened, modes[1:]))
	}
	if ingress := []string{"", "router", "namespace"}; !slices.Contains(ingress, t.Ingress) {
		errs = append(errs, field.NotSupported(at.Child("ingress"), t.Ingress, ingress[1:]))
	}
	for i, kind := range t.Creates {
		if kinds := []string{"Sandbox", "SandboxClaim"}; !slices.Contains(kinds, kind) {
			errs = append(errs, field.NotSupported(at.Child("creates").Index(i), kind, kinds))
		}
	}
	if modes := []Adoption{"", AdoptionAllow, AdoptionRefuse}; !slices.Contains(modes, t.Adoption) {
		errs = append(errs, field.NotSupported(at.Child("adoption"), t.Adoption, modes[1:]))
	}
	return errs
}

func validatePodSecurity(p PodSecurity, at *field.Path) field.ErrorList {
	errs := validateLevel(p.Deny, at.Child("deny"))
	if p.Warn != "" {
		errs = append(errs, validateLevel(p.Warn, at.Child("warn"))...)
	}
	if p.Audit != "" {
		errs = append(errs, validateLevel(p.Audit, at.Child("audit"))...)
	}
	if _, err := podsecurity.ParseVersion(p.Version); err != nil {
		errs = append(errs, field.Invalid(at.Child("version"), p.Version, "write latest or a minor version such as v1.37"))
	}
	return errs
}

func validateLevel(level string, at *field.Path) field.ErrorList {
	if _, err := podsecurity.ParseLevel(level); err != nil {
		return field.ErrorList{field.NotSupported(at, level, []string{"privileged", "baseline", "restricted"})}
	}
	return nil
}

func validateHardening(t Tier, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	h, hardening := t.Hardening, at.Child("hardening")
	for _, given := range []struct {
		name string
		mode Mode
	}{
		{"token", h.Token},
		{"serviceLinks", h.ServiceLinks},
		{"userNamespaces", h.UserNamespaces},
		{"seccomp", h.Seccomp},
		{"privilegeEscalation", h.PrivilegeEscalation},
		{"capabilities", h.Capabilities},
		{"rootFilesystem", h.RootFilesystem},
	} {
		if modes := []Mode{Open, Default, Require}; given.mode != "" && !slices.Contains(modes, given.mode) {
			errs = append(errs, field.NotSupported(hardening.Child(given.name), given.mode, modes))
		}
	}
	if h.Capabilities == Require && len(t.DropCapabilities) == 0 {
		errs = append(errs, field.Required(at.Child("dropCapabilities"), "a tier that requires capabilities to be dropped lists at least one"))
	}
	return errs
}

// resourceNames are the resources that a tier bounds. Of others a Pod has none unless
// it asks for them, and the rule extended-resources judges that.
var resourceNames = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

func validateResources(r Resources, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		name    string
		amounts corev1.ResourceList
		// most are the amounts that these may not exceed.
		most map[string]corev1.ResourceList
	}{
		{"requests", r.Requests, map[string]corev1.ResourceList{"limits": r.Limits, "max": r.Max}},
		{"limits", r.Limits, map[string]corev1.ResourceList{"max": r.Max}},
		{"max", r.Max, nil},
	} {
		for _, name := range sortedKeys(list.amounts) {
			amount, place := list.amounts[name], at.Child(list.name).Key(string(name))
			errs = append(errs, validateAmount(name, amount.String(), amount.Sign(), place)...)
			for _, other := range sortedKeys(list.most) {
				if most, bounded := list.most[other][name]; bounded && amount.Cmp(most) > 0 {
					errs = append(errs, tooMuch(place, amount.String(), other, most.String()))
				}
			}
		}
	}
	return errs
}

func validateAmount(name corev1.ResourceName, amount string, sign int, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !slices.Contains(resourceNames, name) {
		errs = append(errs, field.NotSupported(at, name, resourceNames))
	}
	if sign <= 0 {
		errs = append(errs, field.Invalid(at, amount, "write an amount above 0"))
	}
	return errs
}

func tooMuch(at *field.Path, amount, other, most string) *field.Error {
	return field.Invalid(at, amount, "write at most "+most+", the amount of "+other)
}
