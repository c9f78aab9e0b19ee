// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ceilings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

const (
	allCapabilities = "ALL"
	// bindService is what a container may have that drops everything: it gives no right
	// over anything but low ports of its own network.
	bindService = "NET_BIND_SERVICE"
)

// hardening judges the fields that the tier requires.
func hardening(pod *corev1.PodSpec, at *field.Path, tier config.Tier) []Breach {
	var breaches []Breach
	modes := tier.Hardening
	if modes.Token == config.Require && isTrue(pod.AutomountServiceAccountToken) {
		token := weak(at.Child("automountServiceAccountToken"), true, "the tier gives no Pod a token", "Set it to false.")
		token.Content = cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount, defaultServiceAccount)
		breaches = append(breaches, token)
	}
	if modes.ServiceLinks == config.Require && !isFalse(pod.EnableServiceLinks) {
		breaches = append(breaches, weak(at.Child("enableServiceLinks"), shown(pod.EnableServiceLinks),
			"the tier keeps the addresses of other Services out of a Pod", "Set it to false."))
	}
	if modes.UserNamespaces == config.Require {
		breaches = append(breaches, userNamespace(pod, at, tier.RuntimeClass)...)
	}
	if modes.Seccomp == config.Require {
		breaches = append(breaches, seccomp(pod, at)...)
	}
	for _, c := range containersOf(pod, at) {
		breaches = append(breaches, ofContainer(c, tier)...)
	}
	return breaches
}

func userNamespace(pod *corev1.PodSpec, at *field.Path, classes config.RuntimeClass) []Breach {
	name := ""
	if pod.RuntimeClassName != nil {
		name = *pod.RuntimeClassName
	}
	class, _ := classes.Class(name)
	if !isFalse(class.HostUsers) || isFalse(pod.HostUsers) {
		return nil
	}
	return []Breach{weak(at.Child("hostUsers"), shown(pod.HostUsers),
		fmt.Sprintf("under RuntimeClass %q the tier gives every Pod a user namespace of its own", name), "Set it to false.")}
}

// seccomp wants a profile for every container, its own or the Pod's.
func seccomp(pod *corev1.PodSpec, at *field.Path) []Breach {
	const problem, remedy = "the tier puts a filter of system calls before every container", "Set its type to RuntimeDefault."
	var breaches []Breach
	var general *corev1.SeccompProfile
	if pod.SecurityContext != nil {
		general = pod.SecurityContext.SeccompProfile
	}
	if general != nil && !filters(general) {
		breaches = append(breaches, weak(at.Child("securityContext", "seccompProfile", "type"), string(general.Type), problem, remedy))
	}
	bare := false
	for _, c := range containersOf(pod, at) {
		switch own := c.profile(); {
		case own == nil:
			bare = true
		case !filters(own):
			breaches = append(breaches, weak(c.at.Child("securityContext", "seccompProfile", "type"), string(own.Type), problem, remedy))
		}
	}
	if bare && general == nil {
		breaches = append(breaches, weak(at.Child("securityContext", "seccompProfile"), "", problem, remedy))
	}
	return breaches
}

func (c container) profile() *corev1.SeccompProfile {
	if c.SecurityContext == nil {
		return nil
	}
	return c.SecurityContext.SeccompProfile
}

func filters(profile *corev1.SeccompProfile) bool {
	return profile.Type == corev1.SeccompProfileTypeRuntimeDefault || profile.Type == corev1.SeccompProfileTypeLocalhost
}

func ofContainer(c container, tier config.Tier) []Breach {
	var breaches []Breach
	security := c.SecurityContext
	if security == nil {
		security = &corev1.SecurityContext{}
	}
	at, modes := c.at.Child("securityContext"), tier.Hardening
	if modes.PrivilegeEscalation == config.Require && !isFalse(security.AllowPrivilegeEscalation) {
		breaches = append(breaches, weak(at.Child("allowPrivilegeEscalation"), shown(security.AllowPrivilegeEscalation),
			"in this tier no process may gain more rights than its parent", "Set it to false."))
	}
	if modes.Capabilities == config.Require {
		breaches = append(breaches, capabilities(security.Capabilities, at.Child("capabilities"), tier.DropCapabilities)...)
	}
	if modes.ReadOnlyRoot() == config.Require && !isTrue(security.ReadOnlyRootFilesystem) {
		breaches = append(breaches, weak(at.Child("readOnlyRootFilesystem"), shown(security.ReadOnlyRootFilesystem),
			"in this tier the root file system of a container is read-only", "Set it to true, and mount an emptyDir where files are written."))
	}
	return breaches
}

// capabilities wants the tier's to be dropped, and none of them to be added again.
func capabilities(given *corev1.Capabilities, at *field.Path, drop []string) []Breach {
	if given == nil {
		given = &corev1.Capabilities{}
	}
	var breaches []Breach
	dropped, added, demanded := canonical(given.Drop), canonical(given.Add), canonical(drop)
	missing := slices.DeleteFunc(slices.Clone(demanded), func(name string) bool {
		return slices.Contains(dropped, name) || slices.Contains(dropped, allCapabilities)
	})
	if len(missing) > 0 {
		breaches = append(breaches, weak(at.Child("drop"), strings.Join(dropped, ","),
			"the tier drops "+strings.Join(demanded, ", "), "Add "+strings.Join(missing, ", ")+" to the list."))
	}
	for i, name := range added {
		again := slices.Contains(demanded, name) || name == allCapabilities || slices.Contains(demanded, allCapabilities) && name != bindService
		if again {
			breaches = append(breaches, weak(at.Child("add").Index(i), string(given.Add[i]), "the tier drops this capability", "Remove it from the list."))
		}
	}
	return breaches
}

// canonical are the names of capabilities as they mean the same to a runtime.
func canonical[T ~string](names []T) []string {
	result := make([]string, 0, len(names))
	for _, name := range names {
		result = append(result, strings.TrimPrefix(strings.ToUpper(string(name)), "CAP_"))
	}
	return result
}

func weak(at *field.Path, value any, problem, remedy string) Breach {
	return Breach{Rule: RuleHardening, Error: field.Invalid(at, value, problem), Remedy: remedy}
}

func isTrue(value *bool) bool {
	return value != nil && *value
}

func isFalse(value *bool) bool {
	return value != nil && !*value
}

// shown is a field for a message; an unset one is empty.
func shown(value *bool) any {
	if value == nil {
		return ""
	}
	return *value
}
