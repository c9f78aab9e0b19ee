// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// A Sandbox that follows another one of its name waits until what that one had is gone,
// and takes nothing of it.
func TestASandboxThatFollowsOneOfItsName(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	wanted := []func(*agentsv1beta1.Sandbox){withService(true), withVolume("data"), withClaimSpec}
	pod := e.running(makeSandbox(wanted...))
	first, claim, service := e.sandbox(boxName), claimOf(e), serviceOf(e)
	e.Get(boxName, pod)
	e.Delete(first)
	e.Create(makeSandbox(append(wanted, withContainerImage("other:1"))...))
	owned := fmt.Sprintf(`is owned by Sandbox/box (UID: %s), not by sandbox "box"`, first.UID)
	e.saysReady(boxName, fmt.Sprintf("False/ReconcilerError: Error seen: persistentvolumeclaim %q %s\npod %q %s\nservice %q %s",
		claim.Name, owned, boxName, owned, boxName, owned))
	e.idle(boxName)
	for _, old := range []client.Object{pod, claim, service} { // as garbage collection does
		now, _ := old.DeepCopyObject().(client.Object)
		e.untouched(old, now)
		e.Delete(now)
	}
	e.release(pod)
	e.otherPod(pod)
	if again := e.runPod(boxName); again.Spec.Containers[0].Image != "other:1" {
		t.Errorf("the Pod runs %s", again.Spec.Containers[0].Image)
	}
	second := e.saysReady(boxName, readyAndService)
	for _, object := range []client.Object{claimOf(e), serviceOf(e)} {
		if ownershipOf(object, second) != ours {
			t.Errorf("%T %s is of %v", object, object.GetName(), object.GetOwnerReferences())
		}
	}
	e.idle(boxName)
}

func withContainerImage(image string) func(*agentsv1beta1.Sandbox) {
	return func(s *agentsv1beta1.Sandbox) { s.Spec.PodTemplate.Spec.Containers[0].Image = image }
}

// Whoever resumes a Sandbox while its Pod ends is not told that it is Ready before there
// is another Pod, and gets just one.
func TestResumeWhileThePodIsEnding(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox(withService(true)))
	e.edit(suspend)
	e.dying(pod)
	e.edit(resume)
	going := "False/DependenciesNotReady: Pod is being deleted; a new Pod is made once it is gone; Service Exists"
	e.saysReady(boxName, going)
	sandbox := e.says(boxName, agentsv1beta1.ConditionSuspended, notSuspended)
	if got := sandbox.Annotations[keys.PodName]; got != boxName {
		t.Errorf("annotation %s = %q", keys.PodName, got)
	}
	e.idle(boxName)
	e.saysReady(boxName, going)
	e.release(pod)
	e.otherPod(pod)
	e.runPod(boxName)
	e.saysReady(boxName, readyAndService)
	if n := e.Writes()["create pods"]; n != 2 {
		t.Errorf("%d Pods were made, want 2", n)
	}
}

// However often a client changes its mind, the last wish is what comes, at a cost that
// the number of changes bounds.
func TestModeThatIsFlippedRapidly(t *testing.T) {
	t.Parallel()
	const flips = 20
	for name, tc := range map[string]struct {
		last  func(*agentsv1beta1.Sandbox)
		ready string
		pods  int
	}{
		"to running at last":   {resume, readySay, 1},
		"to suspended at last": {suspend, suspendedSay, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			e.ServeKubelet("node-1")
			e.Create(makeSandbox())
			for i := range flips {
				e.edit([]func(*agentsv1beta1.Sandbox){suspend, resume}[i%2])
			}
			e.edit(tc.last)
			e.saysReady(boxName, tc.ready)
			e.idle(boxName)
			var pods corev1.PodList
			if err := e.Client.List(t.Context(), &pods, inNamespace(e.Namespace)); err != nil {
				t.Fatal(err)
			}
			if len(pods.Items) != tc.pods {
				t.Errorf("there are %d Pods, want %d", len(pods.Items), tc.pods)
			}
			if writes := e.Writes(); writes.Total() > writesPerStep*(flips+2) {
				t.Errorf("%d changes cost:\n%s", flips, writes)
			}
		})
	}
}

// lasting fails the test if what is wrong with a Sandbox is tried again or told again.
func (e *environment) lasting(name string) {
	e.Helper()
	told := e.sandbox(name)
	_, err := e.reconciler.Reconcile(e.Context(), e.request(name))
	if !errors.Is(err, reconcile.TerminalError(nil)) {
		e.Errorf("the outcome of a pass is %v, want one that is not retried", err)
	}
	if now := e.sandbox(name); now.ResourceVersion != told.ResourceVersion {
		e.Errorf("a pass that found nothing new wrote (-before +after):\n%s", cmp.Diff(told, now))
	}
}

// In a namespace that is being deleted nothing is tried again and again.
func TestNamespaceThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox(withService(true)))
	e.Delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace}})
	e.Delete(pod)
	e.release(pod)
	e.Eventually("Ready says that the namespace ends", func() error {
		return hasParts(e.sandbox(boxName), "False/ReconcilerError", "because it is being terminated")
	})
	e.lasting(boxName)
	e.Delete(e.sandbox(boxName))
	e.Gone(boxName, &agentsv1beta1.Sandbox{})
}

// Names that are too long for what is made of them are the user's to mend, and stand in
// the message. Admission refuses them; it may be away.
func TestNamesThatAreTooLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	longest := strings.TrimSuffix(strings.Repeat(strings.Repeat("a", 62)+".", 4), ".") + "aa" // 253 characters
	for name, tc := range map[string]struct {
		sandbox *agentsv1beta1.Sandbox
		parts   []string
		pod     bool
	}{
		"for a Service": {makeSandbox(calledBox(long), withService(true)), []string{fmt.Sprintf("service %q", long), "metadata.name: Invalid value", "must be no more than 63"}, true},
		"for a Service, with a dot": {
			makeSandbox(calledBox("box.one"), withService(true)), []string{`service "box.one"`, "metadata.name: Invalid value"}, true,
		},
		"for a volume": {
			makeSandbox(calledBox(longest), withVolume("data"), withClaimSpec),
			[]string{fmt.Sprintf("persistentvolumeclaim %q", "data-"+longest), "metadata.name: Invalid value", "must be no more than 253"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			e.Create(tc.sandbox)
			e.Eventually("Ready says which name is too long", func() error {
				return hasParts(e.sandbox(tc.sandbox.Name), append(tc.parts, "False/ReconcilerError")...)
			})
			if got := e.Exists(tc.sandbox.Name, &corev1.Pod{}); got != tc.pod {
				t.Errorf("there is a Pod: %t, want %t", got, tc.pod)
			}
			e.lasting(tc.sandbox.Name)
		})
	}
}

// The longest name that there is works for all else.
func TestTheLongestName(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	name := strings.TrimSuffix(strings.Repeat(strings.Repeat("a", 62)+".", 4), ".") + "aa"
	e.running(makeSandbox(calledBox(name)))
	e.saysReady(name, readySay)
}

// Metadata of a podTemplate is not validated when it is stored. What the apiserver does
// not take is the user's to mend, and the running Pod works on.
func TestMetadataThatAPodCannotHave(t *testing.T) {
	t.Parallel()
	huge := map[string]string{}
	for i := range 250 {
		huge[fmt.Sprintf("example.com/%d", i)] = strings.Repeat("x", 1<<10)
	}
	huge["example.com/last"] = strings.Repeat("x", 8<<10)
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		says                string
	}{
		"too much":         {nil, huge, "metadata.annotations: Too long"},
		"no label's value": {map[string]string{"team": "a b"}, nil, `metadata.labels: Invalid value: "a b"`},
		"no label's key":   {map[string]string{"a/b/c": "x"}, nil, `metadata.labels: Invalid value: "a/b/c"`},
		"a key of a list":  {nil, map[string]string{"a,b": "x"}, `metadata.annotations: Invalid value: "a,b"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			e.Create(makeSandbox(withPodMetadata(tc.labels, tc.annotations)))
			e.Eventually("Ready says what is wrong", func() error {
				return hasParts(e.sandbox(boxName), "False/ReconcilerError: Error seen: create pod: ", tc.says)
			})
			e.lasting(boxName)
			e.edit(withPodMetadata(nil, nil))
			pod := e.runPod(boxName)
			e.saysReady(boxName, readySay)
			e.edit(withPodMetadata(tc.labels, tc.annotations))
			e.Eventually("Ready says it of the running Pod", func() error {
				return hasParts(e.sandbox(boxName), `False/ReconcilerError: Error seen: write metadata of pod "box": `, tc.says)
			})
			e.lasting(boxName)
			e.untouched(pod, &corev1.Pod{})
			e.edit(withPodMetadata(nil, nil))
			e.saysReady(boxName, readySay)
		})
	}
}

// A volume that a quota refuses keeps the Pod from being made, and comes with room.
func TestQuotaThatRefusesAVolume(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	none := corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("0")}
	if err := apiserver.Quota(t.Context(), e.Client, e.Namespace, none); err != nil {
		t.Fatal(err)
	}
	e.Create(makeSandbox(withVolume("data"), withClaimSpec))
	e.saysReady(boxName, `False/ReconcilerError: Error seen: create persistentvolumeclaim "data-box": persistentvolumeclaims "data-box" is forbidden: `+
		"exceeded quota: quota, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0")
	if e.Exists(boxName, &corev1.Pod{}) {
		t.Error("there is a Pod without its volume")
	}
	e.Delete(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "quota"}})
	e.runPod(boxName)
	e.saysReady(boxName, readySay)
}

// A clock that is set forth ends a Sandbox whose time has come by it, and one that is
// set back gives it back; neither leaves anything half done.
func TestClockThatIsSet(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.ServeKubelet("node-1")
	e.Create(makeSandbox(withService(true), shutDownAt(e.Clock.Now().Add(time.Hour), agentsv1beta1.ShutdownPolicyRetain)))
	e.saysReady(boxName, readyAndService)
	for range 2 {
		e.jump(-24 * time.Hour)
		e.idle(boxName)
		e.saysReady(boxName, readyAndService)
		e.jump(26 * time.Hour)
		e.saysReady(boxName, expiredSay)
		e.Eventually("the Pod is gone", func() error { return differs(false, e.Exists(boxName, &corev1.Pod{})) })
		e.jump(-2 * time.Hour)
		e.saysReady(boxName, readyAndService)
	}
}

// A finalizer that somebody puts on what we delete holds just that.
func TestServiceHeldByAFinalizer(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.running(makeSandbox(withService(true)))
	service := serviceOf(e)
	before := service.DeepCopy()
	service.Finalizers = []string{"example.com/hold"}
	e.patch(service, before)
	e.edit(withService(false))
	e.saysReady(boxName, readySay)
	e.idle(boxName)
	e.Eventually("the Service is being deleted", func() error {
		if serviceOf(e).DeletionTimestamp == nil {
			return errors.New("it is not")
		}
		return nil
	})
	e.edit(withService(true))
	service = serviceOf(e)
	before = service.DeepCopy()
	service.Finalizers = nil
	e.patch(service, before)
	e.Eventually("there is another Service", func() error {
		now := &corev1.Service{}
		if !e.Exists(boxName, now) || now.UID == service.UID {
			return errors.New("not yet")
		}
		return nil
	})
	e.saysReady(boxName, readyAndService)
}
