// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/validation"
)

// annotated is an object named x with annotations.
func annotated(object, annotations string) string {
	return strings.Replace(object, `"name": "x"`, `"name": "x", "annotations": {`+annotations+`}`, 1)
}

func TestOwners(t *testing.T) {
	const owned = `{"metadata": {"name": "x", "ownerReferences": [{"apiVersion": "extensions.agents.x-k8s.io/v1", "kind": "SandboxClaim", "name": "c", "controller": true}]},
		"spec": {"operatingMode": "Running", "service": true}}`
	const plain = `{"metadata": {"name": "x"}, "spec": {"operatingMode": "Running", "service": true}}`
	const forged = `forged-owner: metadata.ownerReferences[0] (SandboxClaim/c): only the controllers make an object of this kind ` +
		`the controller of another. Fix: Remove the owner reference.`
	const only = ". Fix: Change the claim or the template; on the Sandbox itself only operatingMode, shutdownTime, shutdownPolicy can be changed."
	const madeFrom, left = `"agents.x-k8s.io/sandbox-template-ref": "t"`, "the Sandbox was made from SandboxTemplate t, which says what it is made of"
	orphan := annotated(plain, madeFrom)
	cases := map[string]struct {
		in   validation.Input
		want []string
	}{
		"a forged owner is refused at creation":      {creation("Sandbox", owned), []string{forged}},
		"a forged owner is refused when it is added": {update("Sandbox", plain, owned), []string{forged}},
		"an owner that was there before is no fault": {update("Sandbox", owned, strings.Replace(owned, "Running", "Suspended", 1)), nil},
		"an owner that is taken away": {update("Sandbox", owned, plain), []string{`forged-owner: metadata.ownerReferences (SandboxClaim/c): only the ` +
			`controllers end that an object of this kind is the controller of another. Fix: Leave the owner reference as it is; the object goes with its owner.`}},
		"an owner that loses control": {update("Sandbox", owned, strings.Replace(owned, `"controller": true`, `"controller": false`, 1)),
			[]string{`forged-owner: metadata.ownerReferences (SandboxClaim/c): only the ` +
				`controllers end that an object of this kind is the controller of another. Fix: Leave the owner reference as it is; the object goes with its owner.`}},
		"a controller takes one away":                      {with(update("Sandbox", owned, plain), func(in *validation.Input) { in.Controller = true }), nil},
		"a controller sets owners":                         {with(creation("Sandbox", owned), func(in *validation.Input) { in.Controller = true }), nil},
		"an owner of another group is the user's business": {creation("Sandbox", strings.Replace(owned, "extensions.agents.x-k8s.io/v1", "apps/v1", 1)), nil},
		"an owner that does not control is as well":        {creation("Sandbox", strings.Replace(owned, `"controller": true`, `"controller": false`, 1)), nil},
		"a user suspends the Sandbox of a claim":           {update("Sandbox", owned, strings.Replace(owned, "Running", "Suspended", 1)), nil},
		"a user does not change what a claim made": {
			update("Sandbox", owned, strings.Replace(owned, `"service": true`, `"service": false, "podTemplate": {}`, 1)),
			[]string{
				"controlled-sandbox: spec.podTemplate (): the Sandbox belongs to SandboxClaim c, which says what it is made of" + only,
				"controlled-sandbox: spec.service (): the Sandbox belongs to SandboxClaim c, which says what it is made of" + only,
			},
		},
		"a user does not steer what a claim made": {
			update("Sandbox", annotated(owned, `"platform.agents.x-k8s.io/egress-profile": "none", "platform.agents.x-k8s.io/volume-retention": "Retain"`),
				annotated(owned, `"platform.agents.x-k8s.io/restart-policy": "Recreate", "platform.agents.x-k8s.io/volume-retention": "Retain"`)),
			[]string{
				"controlled-sandbox: metadata.annotations[platform.agents.x-k8s.io/egress-profile] (): the Sandbox belongs to SandboxClaim c, which says what it is made of" + only,
				"controlled-sandbox: metadata.annotations[platform.agents.x-k8s.io/restart-policy] (): the Sandbox belongs to SandboxClaim c, which says what it is made of" + only,
			},
		},
		"a user annotates what a claim made": {
			update("Sandbox", owned, annotated(owned, `"team.example.com/a": "b", "platform.agents.x-k8s.io/defaulted": "c"`)), nil,
		},
		"a user does not change what a claim made that left it without an owner": {
			update("Sandbox", orphan, annotated(strings.Replace(plain, `"service": true`, `"podTemplate": {}`, 1),
				madeFrom+`, "platform.agents.x-k8s.io/egress-profile": "none"`)),
			[]string{
				"controlled-sandbox: spec.podTemplate (): " + left + only,
				"controlled-sandbox: spec.service (): " + left + only,
				"controlled-sandbox: metadata.annotations[platform.agents.x-k8s.io/egress-profile] (): " + left + only,
			},
		},
		"he suspends it": {update("Sandbox", orphan, strings.Replace(orphan, "Running", "Suspended", 1)), nil},
		"a controller changes it": {
			with(update("Sandbox", orphan, strings.Replace(orphan, `"service": true`, `"service": false`, 1)), func(in *validation.Input) { in.Controller = true }), nil,
		},
		"a user steers a Sandbox of his own":  {update("Sandbox", plain, annotated(plain, `"platform.agents.x-k8s.io/restart-policy": "Recreate"`)), nil},
		"a user changes a Sandbox of his own": {update("Sandbox", plain, strings.Replace(plain, "true", "false", 1)), nil},
	}
	check(t, cases)
}
