// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/effective"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/validation"
)

func TestCeilings(t *testing.T) {
	const writes = `{"metadata": {"name": "x"}, "spec": {"podTemplate": {"spec": {"containers": [{"securityContext": {"readOnlyRootFilesystem": false}}]}}}}`
	const unreadable = `{"metadata": {"name": "x"}, "spec": {"podTemplate": {"spec": {"hostPID": "yes"}}}}`
	readOnly := func(in *validation.Input) { in.Tier.Hardening.RootFilesystem = config.Require }
	refused := func(path string) []string {
		return []string{"tier-hardening: " + path + ".spec.containers[0].securityContext.readOnlyRootFilesystem (false): in this tier the root file system " +
			"of a container is read-only. Fix: Set it to true, and mount an emptyDir where files are written."}
	}
	borrowed := func(in *validation.Input) {
		readOnly(in)
		in.Template = decode(writes)
		in.Pool = map[string]any{}
		in.Effective = effective.OfPool(in.Template)
	}
	cases := map[string]struct {
		in   validation.Input
		want []string
	}{
		"a Sandbox":                {with(creation("Sandbox", writes), readOnly), refused("spec.podTemplate")},
		"a template":               {with(creation("SandboxTemplate", writes), readOnly), refused("spec.podTemplate")},
		"a pool of it":             {with(creation("SandboxWarmPool", `{"metadata": {"name": "x"}}`), borrowed), refused("template.spec.podTemplate")},
		"a claim of the pool":      {with(creation("SandboxClaim", `{"metadata": {"name": "x"}}`), borrowed), refused("template.spec.podTemplate")},
		"a tier that does not ask": {creation("Sandbox", writes), nil},
		"a Pod that cannot be read where Pod Security asks nothing": {
			with(creation("Sandbox", unreadable), func(in *validation.Input) { in.Tier.PodSecurity.Deny = "privileged" }),
			[]string{"tier-hardening: spec.podTemplate.spec (): the Pod cannot be read: unrecognized type: bool. " +
				"Fix: Give every field of the Pod the type that Kubernetes documents for it."},
		},
		"and where it does, which says the same": {creation("Sandbox", unreadable), nil},
	}
	check(t, cases)
}

func TestLifetime(t *testing.T) {
	const created = `"creationTimestamp": "2026-11-29T06:00:00Z"`
	sandbox := func(metadata, end string) string {
		return `{"metadata": {"name": "x"` + metadata + `}, "spec": {"operatingMode": "Running"` + end + `}}`
	}
	ends := func(at string) string { return `, "shutdownTime": "` + at + `"` }
	day := func(in *validation.Input) {
		in.Tier.MaxLifetime = metav1.Duration{Duration: 24 * time.Hour}
		in.Now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
		in.Pool, in.Template = map[string]any{}, map[string]any{}
	}
	refused := func(field, value, more, latest string) []string {
		return []string{`tier-lifetime: ` + field + ` (` + value + `): tier "standard" ends everything at most 24h0m0s after it began` + more + `. Fix: Set it to ` + latest + ` or earlier.`}
	}
	const own, noon, six = "spec.shutdownTime", "2026-11-30T12:00:00Z", "2026-11-30T06:00:00Z"
	old, ended := sandbox(", "+created, ""), sandbox(", "+created, ends("2026-11-30T05:00:00Z"))
	ancient := func(end string) string { return sandbox(`, "creationTimestamp": "2026-10-01T00:00:00Z"`, end) }
	owned := `, "ownerReferences": [{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "name": "c", "controller": true}]`
	cases := map[string]struct {
		in   validation.Input
		want []string
	}{
		"the latest end":           {with(creation("Sandbox", sandbox("", ends(noon))), day), nil},
		"the same in another zone": {with(creation("Sandbox", sandbox("", ends("2026-11-30T14:00:00+02:00"))), day), nil},
		"a second later":           {with(creation("Sandbox", sandbox("", ends("2026-11-30T12:00:01Z"))), day), refused(own, "2026-11-30T12:00:01Z", "", noon)},
		"no end":                   {with(creation("Sandbox", sandbox("", "")), day), refused(own, "", ", so an end has to be set", noon)},
		"an end that is no time":   {with(creation("Sandbox", sandbox("", ends("soon"))), day), refused(own, "soon", "", noon)},
		"a creation time that the tenant wrote does not count": {
			with(creation("Sandbox", sandbox(`, "creationTimestamp": "2027-11-29T06:00:00Z"`, ends("2027-01-01T00:00:00Z"))), day),
			refused(own, "2027-01-01T00:00:00Z", "", noon),
		},
		"an end that is put off within the time": {with(update("Sandbox", ended, sandbox(", "+created, ends(six))), day), nil},
		"an end that is put off beyond it":       {with(update("Sandbox", ended, sandbox(", "+created, ends(noon))), day), refused(own, noon, "", six)},
		"an end that is taken away":              {with(update("Sandbox", ended, old), day), refused(own, "", ", so an end has to be set", six)},
		"an end long after the tier's, moved closer": {with(update("Sandbox", sandbox(", "+created, ends("2027-01-01T00:00:00Z")),
			sandbox(", "+created, ends("2026-12-31T00:00:00Z"))), day), nil},
		"and moved on again": {with(update("Sandbox", sandbox(", "+created, ends("2027-01-01T00:00:00Z")),
			sandbox(", "+created, ends("2027-01-01T00:00:01Z"))), day), refused(own, "2027-01-01T00:00:01Z", "", six)},
		"an old one that is to end at once": {with(update("Sandbox", ancient(ends("2026-11-29T11:00:00Z")), ancient(ends("2026-11-29T12:00:00Z"))), day), nil},
		"and one that had ended and is to end soon": {with(update("Sandbox", ancient(ends("2026-11-29T11:00:00Z")), ancient(ends("2026-11-29T12:00:01Z"))), day),
			refused(own, "2026-11-29T12:00:01Z", "", "2026-10-02T00:00:00Z")},
		"one without an end that is to end soon":       {with(update("Sandbox", ancient(""), ancient(ends("2026-11-29T13:00:00Z"))), day), nil},
		"or ever":                                      {with(update("Sandbox", ancient(""), ancient(ends("9999-12-31T00:00:00Z"))), day), nil},
		"or ends when nobody can read":                 {with(update("Sandbox", ancient(ends("soon")), ancient(ends("2026-11-30T12:00:00Z"))), day), nil},
		"one without an end that stays as it is":       {with(update("Sandbox", ancient(""), ancient("")), day), refused(own, "", ", so an end has to be set", "2026-10-02T00:00:00Z")},
		"one without an end that is to end at no time": {with(update("Sandbox", ancient(""), ancient(ends("soon"))), day), refused(own, "soon", "", "2026-10-02T00:00:00Z")},
		"an old one judged as if it were new, as audit does": {
			with(creation("Sandbox", sandbox(", "+created, ends(noon))), func(in *validation.Input) { day(in); in.OldObject = in.Object }), refused(own, noon, "", six),
		},
		"a claim without an end": {
			with(creation("SandboxClaim", `{"metadata": {"name": "x"}}`), day), refused("spec.lifecycle.shutdownTime", "", ", so an end has to be set", noon),
		},
		"a claim with an end":                        {with(creation("SandboxClaim", `{"metadata": {"name": "x"}, "spec": {"lifecycle": {"shutdownTime": "`+noon+`"}}}`), day), nil},
		"a Sandbox that a controller makes":          {with(creation("Sandbox", sandbox("", "")), func(in *validation.Input) { day(in); in.Controller = true }), nil},
		"the Sandbox of a claim, which ends with it": {with(update("Sandbox", sandbox(", "+created+owned, ""), sandbox(", "+created+owned, "")), day), nil},
		"the Sandbox of a claim put off": {
			with(update("Sandbox", sandbox(", "+created+owned, ends(six)), sandbox(", "+created+owned, ends(noon))), day), refused(own, noon, "", six),
		},
		"the Sandbox of a claim that is to end by itself": {with(update("Sandbox", sandbox(", "+created+owned, ""), sandbox(", "+created+owned, ends(noon))), day), nil},
		"a template, which does not live":                 {with(creation("SandboxTemplate", `{"metadata": {"name": "x"}}`), day), nil},
		"a tier without a longest":                        {creation("Sandbox", sandbox("", "")), nil},
	}
	check(t, cases)
}
