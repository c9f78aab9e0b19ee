// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

func TestNameHashIsTheContracts(t *testing.T) {
	// Published FNV-1a test vectors.
	for name, want := range map[string]string{"": "811c9dc5", "a": "e40c292c", "foobar": "bf9cf968"} {
		if got := keys.NameHash(name); got != want {
			t.Errorf("NameHash(%q) = %s, want %s", name, got, want)
		}
	}
}

func TestCreatorKeyOfNobodyIsNobodys(t *testing.T) {
	if keys.CreatorKey("") != "" || keys.CreatorKey("ann") == keys.CreatorKey("bob") {
		t.Errorf("nobody's key %q, ann's %q, bob's %q", keys.CreatorKey(""), keys.CreatorKey("ann"), keys.CreatorKey("bob"))
	}
	if problems := validation.IsValidLabelValue(keys.CreatorKey("system:serviceaccount:team-a:ann")); problems != nil {
		t.Errorf("the key is no value of a label: %v", problems)
	}
}

func TestTemplateKeyIsALabelThatTellsCollidingNamesApart(t *testing.T) {
	// Two names with the same FNV-1a hash, 32 bits.
	const one, other = "costarring", "liquid"
	if keys.NameHash(one) != keys.NameHash(other) {
		t.Fatalf("%q and %q no longer collide: the test proves nothing", one, other)
	}
	if keys.TemplateKey(one) == keys.TemplateKey(other) {
		t.Errorf("TemplateKey(%q) = TemplateKey(%q) = %s", one, other, keys.TemplateKey(one))
	}
	if problems := validation.IsValidLabelValue(keys.TemplateKey(one)); problems != nil {
		t.Errorf("TemplateKey(%q) is no value of a label: %v", one, problems)
	}
}

func TestCheckUser(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	sandbox := keys.Subject{Kind: "Sandbox", Name: "a", User: "ann", Now: now}
	claim := keys.Subject{Kind: "SandboxClaim", Name: "c", Now: now}
	cases := map[string]struct {
		form       keys.Form
		key, value string
		on         keys.Subject
		allowed    bool
	}{
		"a key of the user's own domain":                 {keys.Label, "example.com/team", "x", sandbox, true},
		"a key without domain":                           {keys.Label, "app", "x", sandbox, true},
		"a look-alike domain is not reserved":            {keys.Label, "notagents.x-k8s.io/a", "x", sandbox, true},
		"a tracking label":                               {keys.Label, keys.SandboxNameHash, "00000000", sandbox, false},
		"an unknown key of a reserved sub-domain":        {keys.Annotation, "extensions.agents.x-k8s.io/new", "x", sandbox, false},
		"pod-name with the Sandbox's own name":           {keys.Annotation, keys.PodName, "a", sandbox, true},
		"pod-name with another name":                     {keys.Annotation, keys.PodName, "b", sandbox, false},
		"pod-name while the name is not known":           {keys.Annotation, keys.PodName, "", keys.Subject{Kind: "Sandbox", Now: now}, false},
		"pod-name as a label":                            {keys.Label, keys.PodName, "a", sandbox, false},
		"created-by of an SDK on a claim":                {keys.Label, keys.CreatedBy, "python-client", claim, true},
		"created-by with a value that nobody knows":      {keys.Label, keys.CreatedBy, "me", claim, false},
		"created-by on a Sandbox":                        {keys.Label, keys.CreatedBy, "python-client", sandbox, false},
		"first-observed now":                             {keys.Annotation, keys.ControllerFirstObservedAt, "2026-11-29T12:00:59.5Z", claim, true},
		"first-observed an hour ago":                     {keys.Annotation, keys.ControllerFirstObservedAt, "2026-11-29T11:00:00Z", claim, false},
		"first-observed that is no time":                 {keys.Annotation, keys.ControllerFirstObservedAt, "yesterday", claim, false},
		"the SDK's trace context":                        {keys.Annotation, keys.TraceContext, "{}", claim, true},
		"a creator who is the writer":                    {keys.Annotation, keys.Creator, "ann", sandbox, true},
		"a creator who is somebody else":                 {keys.Annotation, keys.Creator, "bob", sandbox, false},
		"a creator of an object that was there before":   {keys.Annotation, keys.Creator, "ann", keys.Subject{Kind: "Sandbox", Name: "a", User: "ann", Stored: true}, false},
		"nobody as the creator":                          {keys.Annotation, keys.Creator, "", claim, false},
		"an egress profile on a Sandbox":                 {keys.Annotation, keys.EgressProfile, "none", sandbox, true},
		"an egress profile as a label":                   {keys.Label, keys.EgressProfile, "none", sandbox, false},
		"the label of the deny-all floor":                {keys.Label, keys.Sandbox, "true", sandbox, false},
		"a bind timeout that is no duration":             {keys.Annotation, keys.BindTimeout, "soon", claim, false},
		"a bind timeout of zero":                         {keys.Annotation, keys.BindTimeout, "0s", claim, false},
		"a bind timeout":                                 {keys.Annotation, keys.BindTimeout, "30s", claim, true},
		"a restart policy that nobody knows":             {keys.Annotation, keys.RestartPolicy, "Always", sandbox, false},
		"the tier of a namespace is no key of a Sandbox": {keys.Label, keys.Tier, "trusted", sandbox, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := keys.CheckUser(tc.form, tc.key, tc.value, tc.on)
			if (err == nil) != tc.allowed {
				t.Errorf("CheckUser(%s, %q, %q) = %v, want allowed: %t", tc.form, tc.key, tc.value, err, tc.allowed)
			}
		})
	}
}

func TestReservedInPodCoversTheTraceContext(t *testing.T) {
	for key, want := range map[string]bool{
		keys.TraceContext: true, keys.ClaimUID: true, keys.Sandbox: true,
		"example.com/a": false, "agents.x-k8s.io.example.com/a": false, "agents.x-k8s.io": false,
	} {
		if got := keys.ReservedInPod(key); got != want {
			t.Errorf("ReservedInPod(%q) = %t, want %t", key, got, want)
		}
	}
}

func TestAClientThatIsNotKnownIsUnknown(t *testing.T) {
	for value, want := range map[string]string{
		"go-client": "go-client", "python-client": "python-client", "controller": "controller",
		"unknown": "unknown", "mine": "unknown", "": "unknown",
	} {
		if got := keys.KnownClient(value); got != want {
			t.Errorf("KnownClient(%q) = %q, want %q", value, got, want)
		}
	}
}
