// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
)

const cannotAdopt = `missing required pool authorization label ("agents.x-k8s.io/adoptable") or sandbox tracking label ("agents.x-k8s.io/sandbox-name-hash")`

// tracked is a Pod that says it is the Sandbox's.
func tracked(p *corev1.Pod) { p.Labels = map[string]string{keys.SandboxNameHash: keys.NameHash("box")} }

// likeOurs is what the controller itself would have written into the spec.
func likeOurs(p *corev1.Pod) {
	withContainer(p)
	p.Spec.AutomountServiceAccountToken = new(false)
}

// A Pod that somebody put in the place of ours is adopted only if its owner says so
// and it is to the last field what ours would be.
func TestPodInOurPlace(t *testing.T) {
	t.Parallel()
	differing := func(edit func(*corev1.PodSpec)) *corev1.Pod {
		return makePod("box", likeOurs, tracked, func(p *corev1.Pod) { edit(&p.Spec) })
	}
	refusal := func(field string) string {
		return `False/ReconcilerError: Error seen: cannot adopt unowned pod "box": it differs from the podTemplate in ` + field
	}
	cases := map[string]struct {
		pod   *corev1.Pod
		ready string
	}{
		"tracked and the same":   {makePod("box", likeOurs, tracked), pendingSay},
		"adoptable and the same": {makePod("box", likeOurs, labelled(keys.Adoptable, "true")), pendingSay},
		"without a label": {
			makePod("box", likeOurs), `False/ReconcilerError: Error seen: cannot adopt unowned pod "box": ` + cannotAdopt,
		},
		"of another controller": {
			makePod("box", likeOurs, tracked, ownedByAnother),
			`False/ReconcilerError: Error seen: pod "box" is owned by ReplicaSet/web (UID: web-uid), not by sandbox "box"`,
		},
		"tracked with another image": {
			differing(func(s *corev1.PodSpec) { s.Containers[0].Image = "evil:1" }), refusal("containers"),
		},
		"tracked and privileged": {
			differing(func(s *corev1.PodSpec) {
				s.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
			}), refusal("containers"),
		},
		"tracked with a folder of the node": {
			differing(func(s *corev1.PodSpec) {
				s.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
			}), refusal("volumes"),
		},
		"tracked with another ServiceAccount": {
			differing(func(s *corev1.PodSpec) { s.ServiceAccountName = "admin" }), refusal("serviceAccountName, serviceAccount"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			e.Create(tc.pod, makeSandbox())
			sandbox := e.saysReady("box", tc.ready)
			e.idle("box")
			if tc.ready != pendingSay {
				e.untouched(tc.pod, &corev1.Pod{})
				if n := e.Writes()["create pods"]; n != 0 {
					t.Errorf("%d Pods were made beside it", n)
				}
				return
			}
			now := &corev1.Pod{}
			e.Get("box", now)
			if now.UID != tc.pod.UID || ownershipOf(now, sandbox) != ours || now.Labels[keys.Sandbox] != "true" {
				t.Errorf("the Pod was not adopted and isolated: %+v", now.ObjectMeta)
			}
		})
	}
}

// The owner reference makes no Pod the Sandbox's: whoever may create Pods can write it. One
// that has a label which only controllers write is, as the contract says; any other has to
// be what ours would be, whatever its name.
func TestPodWithAnOwnerReferenceToTheSandbox(t *testing.T) {
	t.Parallel()
	const refused = `False/ReconcilerError: Error seen: cannot adopt a pod that names the sandbox as its controller and was not made by it, "%s": it differs from the podTemplate in containers`
	other := func(p *corev1.Pod) { p.Spec.Containers[0].Image = "other:1" }
	privileged := func(p *corev1.Pod) {
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	}
	cases := map[string]struct {
		name  string
		edits []func(*corev1.Pod)
		ready string
	}{
		"made by another controller of the contract": {"box", []func(*corev1.Pod){tracked, other}, pendingSay},
		"made by ours":                        {"box", []func(*corev1.Pod){labelled(keys.Sandbox, "true"), other}, pendingSay},
		"without our mark and the same":       {"box", nil, pendingSay},
		"without our mark, another image":     {"box", []func(*corev1.Pod){other}, fmt.Sprintf(refused, "box")},
		"without our mark, privileged":        {"box", []func(*corev1.Pod){privileged}, fmt.Sprintf(refused, "box")},
		"the mark of another Sandbox":         {"box", []func(*corev1.Pod){labelled(keys.SandboxNameHash, "00000000"), other}, fmt.Sprintf(refused, "box")},
		"without our mark, by another name":   {"elsewhere", []func(*corev1.Pod){privileged}, fmt.Sprintf(refused, "elsewhere")},
		"handed over, but with another image": {"box", []func(*corev1.Pod){labelled(keys.Adoptable, "true"), other}, fmt.Sprintf(refused, "box")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			e.stop()
			sandbox := makeSandbox()
			e.Create(sandbox)
			pod := makePod(tc.name, append([]func(*corev1.Pod){likeOurs}, tc.edits...)...)
			pod.OwnerReferences = []metav1.OwnerReference{controllerRef(sandbox)}
			e.Create(pod)
			e.start()
			sandbox = e.saysReady("box", tc.ready)
			e.idle("box")
			if tc.ready != pendingSay {
				e.untouched(pod, &corev1.Pod{})
				return
			}
			now := &corev1.Pod{}
			e.Get("box", now)
			if now.UID != pod.UID || len(now.OwnerReferences) != 1 || ownershipOf(now, sandbox) != ours || now.Labels[keys.Sandbox] != "true" {
				t.Errorf("the Pod was not taken over and isolated: %+v", now.ObjectMeta)
			}
		})
	}
}

// In a tier without adoption the label of a user hands nothing over: the Pod, the Service
// and the volume claim stay as they are, and Ready says why.
func TestNothingIsHandedOverInATierWithoutAdoption(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t, func(e *environment) {
		tier := e.platform.Tiers["standard"]
		tier.Adoption = config.AdoptionRefuse
		e.platform.Tiers["standard"] = tier
	})
	pod := makePod("box", likeOurs, labelled(keys.Adoptable, "true"))
	service, claim := storableService(adoptableService), storableClaim("data-volume")
	service.Name = "service"
	claim.SetLabels(map[string]string{keys.Adoptable: "true"})
	e.Create(pod, service, claim)
	const refused = `: the tier of the namespace allows no adoption, so the label "agents.x-k8s.io/adoptable" ("true") hands nothing over: delete it, and ours is made`
	for name, tc := range map[string]struct {
		edit func(*agentsv1beta1.Sandbox)
		what string
	}{
		"box":     {func(*agentsv1beta1.Sandbox) {}, `pod "box"`},
		"service": {withService(true), `service "service"`},
		"volume":  {func(s *agentsv1beta1.Sandbox) { withVolume("data")(s); withClaimSpec(s) }, `persistentvolumeclaim "data-volume"`},
	} {
		sandbox := makeSandbox(tc.edit)
		sandbox.Name = name
		e.Create(sandbox)
		e.Eventually(name+" says that it adopts nothing", func() error {
			ready := meta.FindStatusCondition(e.sandbox(name).Status.Conditions, agentsv1beta1.ConditionReady)
			if ready == nil || !strings.Contains(ready.Message, "cannot adopt unowned "+tc.what+refused) {
				return fmt.Errorf("it says %+v", ready)
			}
			return nil
		})
	}
	e.untouched(pod, &corev1.Pod{})
	e.untouched(service, &corev1.Service{})
	e.untouched(claim, &corev1.PersistentVolumeClaim{})
}

// The annotation pod-name of a tenant is no way to somebody else's Pod.
func TestPodNameThatPointsAtAPodOfSomebodyElse(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]func(*corev1.Pod){
		"of another controller":         {ownedByAnother, labelled(keys.Adoptable, "true")},
		"of nobody":                     {},
		"of nobody, with another image": {labelled(keys.Adoptable, "true"), func(p *corev1.Pod) { p.Spec.Containers[0].Image = "other:1" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			stranger := makePod("payroll", append([]func(*corev1.Pod){likeOurs}, edits...)...)
			e.Create(stranger, makeSandbox(trackingPod("payroll")))
			e.Eventually("the Sandbox has a Ready condition", func() error {
				if got := e.sandbox("box"); len(got.Status.Conditions) == 0 {
					return differenceError("none")
				}
				return nil
			})
			e.edit(suspend)
			e.Eventually("the suspension is seen", func() error {
				now := e.sandbox("box")
				return differs(now.Generation, now.Status.Conditions[0].ObservedGeneration)
			})
			e.edit(shutDownAt(noon(), agentsv1beta1.ShutdownPolicyRetain))
			e.saysReady("box", expiredSay)
			e.idle("box")
			e.untouched(stranger, &corev1.Pod{})
		})
	}
}

// An annotation that names a Pod of another controller gives way to our own Pod.
func TestPodNameOfAnotherControllersPodGivesWay(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	stranger := makePod("payroll", likeOurs, ownedByAnother)
	e.Create(stranger, makeSandbox(trackingPod("payroll")))
	e.runPod("box")
	if got := e.saysReady("box", readySay).Annotations[keys.PodName]; got != "box" {
		t.Errorf("annotation %s = %q", keys.PodName, got)
	}
	e.untouched(stranger, &corev1.Pod{})
}

func makeClaim(name string, labels map[string]string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: claimSpec()}
}

// Volume claims that we did not make are adopted only with the contract's permission,
// and no Pod runs on one that is not ours.
func TestVolumeInOurPlace(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		labels map[string]string
		ready  string
	}{
		"adoptable": {map[string]string{keys.Adoptable: "true"}, pendingSay},
		"tracked":   {map[string]string{keys.SandboxNameHash: keys.NameHash("box")}, pendingSay},
		"without a label": {
			nil, `False/ReconcilerError: Error seen: cannot adopt unowned persistentvolumeclaim "data-box": ` + cannotAdopt,
		},
		"tracked by another": {
			map[string]string{keys.SandboxNameHash: keys.NameHash("other")},
			`False/ReconcilerError: Error seen: cannot adopt unowned persistentvolumeclaim "data-box": ` + cannotAdopt,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			claim := makeClaim("data-box", tc.labels)
			e.Create(claim, makeSandbox(withVolume("data"), withClaimSpec))
			sandbox := e.saysReady("box", tc.ready)
			e.idle("box")
			if tc.ready == pendingSay {
				if now := claimOf(e); now.UID != claim.UID || ownershipOf(now, sandbox) != ours {
					t.Errorf("the claim was not adopted: %+v", now.ObjectMeta)
				}
				return
			}
			e.untouched(claim, &corev1.PersistentVolumeClaim{})
			if e.Exists("box", &corev1.Pod{}) {
				t.Error("a Pod runs on a volume that is not ours")
			}
		})
	}
}

// Two Sandboxes whose volumes have one name do not share it.
func TestVolumeOfAnotherSandbox(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	first := makeSandbox(withVolume("data"), withClaimSpec)
	first.Name = "a-b"
	second := makeSandbox(withVolume("data-a"), withClaimSpec)
	second.Name = "b"
	e.Create(first)
	claim := &corev1.PersistentVolumeClaim{}
	e.appears("data-a-b", claim)
	e.Create(second)
	e.saysReady("b", fmt.Sprintf(`False/ReconcilerError: Error seen: persistentvolumeclaim "data-a-b" is owned by Sandbox/a-b (UID: %s), not by sandbox "b"`, first.UID))
	e.untouched(claim, &corev1.PersistentVolumeClaim{})
	if e.Exists("b", &corev1.Pod{}) {
		t.Error("a Pod runs on another Sandbox's volume")
	}
	e.idle("b")
}

// What the template says goes into the claim once, and the template cannot change.
func TestVolumesAreMadeAsTheTemplateSays(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.running(makeSandbox(withVolume("data"), withClaimSpec, func(s *agentsv1beta1.Sandbox) {
		s.Spec.VolumeClaimTemplates[0].Labels = map[string]string{"team": "a", "agents.x-k8s.io/claim-uid": "forged"}
		s.Spec.VolumeClaimTemplates[0].Annotations = map[string]string{"note": "hello"}
		s.Spec.PodTemplate.Spec.Volumes = []corev1.Volume{{Name: "data"}, {Name: "scratch"}}
	}))
	sandbox, claim := e.sandbox("box"), claimOf(e)
	if diff := cmp.Diff(map[string]string{"team": "a", keys.SandboxNameHash: keys.NameHash("box")}, claim.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if claim.Annotations["note"] != "hello" || ownershipOf(claim, sandbox) != ours {
		t.Errorf("metadata of the claim: %+v", claim.ObjectMeta)
	}
	pod := &corev1.Pod{}
	e.Get("box", pod)
	var volumes []string
	for _, v := range pod.Spec.Volumes {
		name := v.Name
		if v.PersistentVolumeClaim != nil {
			name += "=" + v.PersistentVolumeClaim.ClaimName
		}
		volumes = append(volumes, name)
	}
	if diff := cmp.Diff([]string{"scratch", "data=data-box"}, volumes); diff != "" {
		t.Errorf("volumes of the Pod (-want +got):\n%s", diff)
	}
	before := sandbox.DeepCopy()
	sandbox.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	err := e.Client.Update(t.Context(), sandbox)
	if !apierrors.IsInvalid(err) {
		t.Errorf("a change of volumeClaimTemplates gave %v", err)
	}
	e.untouched(before, &agentsv1beta1.Sandbox{})
}
