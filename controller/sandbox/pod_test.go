// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/effective"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

func TestDecidePod(t *testing.T) {
	const unauthorised = `cannot adopt unowned pod "box": missing required pool authorization label ("agents.x-k8s.io/adoptable") ` +
		`or sandbox tracking label ("agents.x-k8s.io/sandbox-name-hash")`
	cases := map[string]struct {
		scope *scope
		want  podAction
		err   string
	}{
		"there is none":                          {scope: makeScope(makeSandbox()), want: podCreate},
		"there is ours":                          {scope: makeScope(makeSandbox(), having(makePod("box", marked))), want: podSync},
		"there is one that only says it is ours": {scope: makeScope(makeSandbox(), having(makePod("box"))), want: podAdopt},
		"there is one of the contract's": {
			scope: makeScope(makeSandbox(), having(makePod("box", labelled(keys.SandboxNameHash, keys.NameHash("box"))))), want: podSync,
		},
		"ours failed":                   {scope: makeScope(makeSandbox(), having(makePod("box", marked, inPhase(corev1.PodFailed)))), want: podSync},
		"ours is on its way out":        {scope: makeScope(makeSandbox(), having(makePod("box", deletedAt(noon())))), want: podNone},
		"suspended, there is none":      {scope: makeScope(makeSandbox(suspend)), want: podNone},
		"suspended, there is ours":      {scope: makeScope(makeSandbox(suspend), having(makePod("box"))), want: podDelete},
		"suspended, ours is on its way": {scope: makeScope(makeSandbox(suspend), having(makePod("box", deletedAt(noon())))), want: podNone},
		"suspended, there is another's": {scope: makeScope(makeSandbox(suspend), squatting(makePod("box", ownedByAnother))), want: podNone},
		"suspended, there is one that may be adopted": {
			scope: makeScope(makeSandbox(suspend), squatting(makePod("box", labelled(keys.Adoptable, "true")))), want: podNone,
		},
		"there are two of ours": {
			scope: makeScope(makeSandbox(), having(makePod("box"), makePod("twin"))),
			err:   "multiple Pods (2) are controlled by this Sandbox; refusing to choose or create a Pod",
		},
		"suspended, there are two of ours": {
			scope: makeScope(makeSandbox(suspend), having(makePod("box"), makePod("twin"))),
			err:   "multiple Pods (2) are controlled by this Sandbox; refusing to choose or create a Pod",
		},
		"there is another's": {
			scope: makeScope(makeSandbox(), squatting(makePod("box", ownedByAnother))),
			err:   `pod "box" is owned by ReplicaSet/web (UID: web-uid), not by sandbox "box"`,
		},
		"there is another's with our label": {
			scope: makeScope(makeSandbox(), squatting(makePod("box", ownedByAnother, labelled(keys.SandboxNameHash, keys.NameHash("box"))))),
			err:   `pod "box" is owned by ReplicaSet/web (UID: web-uid), not by sandbox "box"`,
		},
		"there is nobody's":                     {scope: makeScope(makeSandbox(), squatting(makePod("box"))), err: unauthorised},
		"there is one marked as not adoptable":  {scope: makeScope(makeSandbox(), squatting(makePod("box", labelled(keys.Adoptable, "false")))), err: unauthorised},
		"there is one tracked for another":      {scope: makeScope(makeSandbox(), squatting(makePod("box", labelled(keys.SandboxNameHash, keys.NameHash("other"))))), err: unauthorised},
		"there is one to adopt":                 {scope: makeScope(makeSandbox(), squatting(makePod("box", labelled(keys.Adoptable, "true")))), want: podAdopt},
		"there is one tracked for this Sandbox": {scope: makeScope(makeSandbox(), squatting(makePod("box", labelled(keys.SandboxNameHash, keys.NameHash("box"))))), want: podAdopt},
		"there is one to adopt where the tier allows it": {
			scope: makeScope(makeSandbox(), squatting(makePod("box", labelled(keys.Adoptable, "true"))), adopting(config.AdoptionAllow)), want: podAdopt,
		},
		"there is one to adopt where the tier refuses it": {
			scope: makeScope(makeSandbox(), squatting(makePod("box", labelled(keys.Adoptable, "true"))), adopting(config.AdoptionRefuse)),
			err: `cannot adopt unowned pod "box": the tier of the namespace allows no adoption, so the label "agents.x-k8s.io/adoptable" ("true") ` +
				`hands nothing over: delete it, and ours is made`,
		},
		"there is one tracked for this Sandbox where the tier refuses hand-overs": {
			scope: makeScope(makeSandbox(), squatting(makePod("box", labelled(keys.SandboxNameHash, keys.NameHash("box")))), adopting(config.AdoptionRefuse)),
			want:  podAdopt,
		},
		"there is one to adopt that is deleted": {
			scope: makeScope(makeSandbox(), squatting(makePod("box", labelled(keys.Adoptable, "true"), deletedAt(noon())))),
			err:   `cannot adopt unowned pod "box": it is being deleted; ours is made once it is gone`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := decidePod(tc.scope)
			if got != tc.want {
				t.Errorf("decidePod() = %d, want %d", got, tc.want)
			}
			if text := textOf(err); text != tc.err {
				t.Errorf("decidePod() error = %q, want %q", text, tc.err)
			}
		})
	}
}

// adopting gives the tier that adoption.
func adopting(adoption config.Adoption) func(*scope) {
	return func(s *scope) { s.tier.Adoption = adoption }
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDesiredPodName(t *testing.T) {
	cases := map[string]struct {
		scope *scope
		want  string
		known bool
	}{
		"the Pod that is about to be made":              {makeScope(makeSandbox()), "box", true},
		"a name that points nowhere":                    {makeScope(makeSandbox(trackingPod("gone"))), "box", true},
		"the Pod that is there":                         {makeScope(makeSandbox(), having(makePod("other"))), "other", true},
		"the Pod on its way out":                        {makeScope(makeSandbox(suspend), having(makePod("other"))), "other", true},
		"no Pod of a suspended Sandbox":                 {makeScope(makeSandbox(suspend, trackingPod("box"))), "", true},
		"another's Pod is never ours":                   {makeScope(makeSandbox(trackingPod("web")), squatting(makePod("web", ownedByAnother))), "box", true},
		"a Pod to adopt":                                {makeScope(makeSandbox(trackingPod("mine")), squatting(makePod("mine"))), "mine", true},
		"more Pods than one":                            {makeScope(makeSandbox(), having(makePod("box"), makePod("twin"))), "", false},
		"somebody's Pod in a suspended Sandbox's place": {makeScope(makeSandbox(suspend), squatting(makePod("box"))), "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, known := desiredPodName(tc.scope)
			if got != tc.want || known != tc.known {
				t.Errorf("desiredPodName() = %q, %t, want %q, %t", got, known, tc.want, tc.known)
			}
		})
	}
}

func TestBuildPod(t *testing.T) {
	sandbox := makeSandbox(withVolume("work", "cache"), func(s *agentsv1beta1.Sandbox) {
		s.Spec.PodTemplate.Spec.Volumes = []corev1.Volume{
			{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
	})
	before := sandbox.DeepCopy()
	pod := buildPod(sandbox, isolation.Choice{Profile: "public"}, config.EgressProfile{})

	claim := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-box"},
		}}
	}
	want := corev1.PodSpec{
		Containers:                   []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}},
		AutomountServiceAccountToken: new(false),
		Volumes: []corev1.Volume{
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			claim("work"), claim("cache"),
		},
	}
	if diff := cmp.Diff(want, pod.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if pod.Namespace != "team-a" || pod.Name != "box" {
		t.Errorf("the Pod is %s/%s, want team-a/box", pod.Namespace, pod.Name)
	}
	owner := pod.OwnerReferences[0]
	if owner.UID != "box-uid" || owner.Kind != "Sandbox" || !*owner.Controller || !*owner.BlockOwnerDeletion {
		t.Errorf("owner = %+v, want the Sandbox as controller that blocks deletion", owner)
	}
	if diff := cmp.Diff(before, sandbox); diff != "" {
		t.Errorf("the Sandbox of the cache was changed (-before +after):\n%s", diff)
	}
}

func TestBuildPodNeverTurnsTheTokenOnOrOff(t *testing.T) {
	sandbox := makeSandbox(func(s *agentsv1beta1.Sandbox) { s.Spec.PodTemplate.Spec.AutomountServiceAccountToken = new(true) })
	pod := buildPod(sandbox, isolation.Choice{}, config.EgressProfile{})
	if !*pod.Spec.AutomountServiceAccountToken {
		t.Error("an explicit true became false; the floor is to refuse it")
	}
}

// The Pod of a Sandbox that was made from no template asks the resolvers of its profile,
// and the rules were shown the same Pod.
func TestPodAsksTheResolversOfItsProfile(t *testing.T) {
	ours := config.EgressProfile{Internet: true, Nameservers: []string{"192.0.2.53", "2001:db8::53"}}
	chosen := func(policy corev1.DNSPolicy, own *corev1.PodDNSConfig) corev1.PodSpec {
		return corev1.PodSpec{DNSPolicy: policy, DNSConfig: own}
	}
	searching := func(servers ...string) *corev1.PodDNSConfig {
		return &corev1.PodDNSConfig{Nameservers: servers, Searches: []string{"corp.test"}}
	}
	cases := map[string]struct {
		spec    corev1.PodSpec
		choice  isolation.Choice
		profile config.EgressProfile
		want    corev1.PodSpec
	}{
		"the profile's resolvers":                    {profile: ours, want: chosen(corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: ours.Nameservers})},
		"the cluster's where the profile opens them": {profile: config.EgressProfile{DNS: true}},
		"the cluster's where there are no others":    {profile: config.EgressProfile{Internet: true}},
		"the user's policy stands":                   {spec: chosen(corev1.DNSDefault, nil), profile: ours, want: chosen(corev1.DNSDefault, nil)},
		"the user's search list stays":               {spec: chosen("", searching()), profile: ours, want: chosen(corev1.DNSNone, searching(ours.Nameservers...))},
		"the user's own resolvers stay":              {spec: chosen("", searching("192.0.2.1")), profile: ours, want: chosen(corev1.DNSNone, searching("192.0.2.1"))},
		"a template's Pod has what it was made with": {choice: isolation.Choice{Template: "python"}, profile: ours},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sandbox := makeSandbox(func(s *agentsv1beta1.Sandbox) { s.Spec.PodTemplate.Spec = *tc.spec.DeepCopy() })
			got := buildPod(sandbox, tc.choice, tc.profile)
			if diff := cmp.Diff(tc.want, chosen(got.Spec.DNSPolicy, got.Spec.DNSConfig)); diff != "" {
				t.Errorf("DNS (-want +got):\n%s", diff)
			}
			if tc.choice.Template != "" {
				return
			}
			object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(sandbox)
			if err != nil {
				t.Fatal(err)
			}
			shown := effective.OfOwn(object)
			shown.FollowProfile(tc.profile, nil)
			var spec corev1.PodSpec
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(shown.Pod["spec"].(map[string]any), &spec); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, chosen(spec.DNSPolicy, spec.DNSConfig)); diff != "" {
				t.Errorf("DNS as the rules see it (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpecDifferences(t *testing.T) {
	dryRun := corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: "w", Image: "a"}}}
	scheduled := *dryRun.DeepCopy()
	scheduled.NodeName = "n1"
	if got := specDifferences(&scheduled, &dryRun); len(got) > 0 {
		t.Errorf("specDifferences() = %v for a Pod that was only scheduled", got)
	}
	other := *scheduled.DeepCopy()
	other.Containers[0].Image, other.ServiceAccountName, other.HostNetwork = "b", "admin", true
	if got := strings.Join(specDifferences(&other, &dryRun), " "); got != "containers serviceAccountName hostNetwork" {
		t.Errorf("specDifferences() = %q, want the fields as the API names them", got)
	}
}

func TestSetPods(t *testing.T) {
	ourPod, foreignPod := makePod("box", ownedByBox), makePod("box", ownedByAnother)
	twin := *makePod("twin", ownedByBox)
	cases := map[string]struct {
		listed          []corev1.Pod
		named           *corev1.Pod
		owned, squatter string
	}{
		"nothing":                              {},
		"ours by name before the list knows":   {named: ourPod, owned: "box"},
		"ours in both counts once":             {listed: []corev1.Pod{*ourPod}, named: ourPod, owned: "box"},
		"ours in the list alone":               {listed: []corev1.Pod{twin}, owned: "twin"},
		"two of ours":                          {listed: []corev1.Pod{*ourPod, twin}, named: ourPod, owned: "twin box"},
		"another's in the place of ours":       {named: foreignPod, squatter: "box"},
		"ours elsewhere, another's in the way": {listed: []corev1.Pod{twin}, named: foreignPod, owned: "twin", squatter: "box"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := makeScope(makeSandbox())
			s.setPods(tc.listed, tc.named)
			var owned []string
			for _, pod := range s.owned {
				owned = append(owned, pod.Name)
			}
			if got := strings.Join(owned, " "); got != tc.owned {
				t.Errorf("owned = %q, want %q", got, tc.owned)
			}
			if got := s.squatter; (got == nil) != (tc.squatter == "") {
				t.Errorf("squatter = %v, want %q", got, tc.squatter)
			}
		})
	}
}
