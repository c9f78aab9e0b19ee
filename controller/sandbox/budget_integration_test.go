// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package sandbox

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// A Sandbox whose Pod comes up within a second costs its objects and one status
// write. The clock stands still, so that the second is not one of a busy machine.
func TestWritesUntilReady(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		sandbox *agentsv1beta1.Sandbox
		want    apiserver.Counts
	}{
		"a bare Sandbox, with pod-name set by admission": {
			makeSandbox(trackingPod("box")),
			apiserver.Counts{"create networkpolicies": 2, "create pods": 1, "patch sandboxes/status": 1},
		},
		"a bare Sandbox while admission is away": {
			makeSandbox(),
			apiserver.Counts{"create networkpolicies": 2, "create pods": 1, "patch sandboxes": 1, "patch sandboxes/status": 1},
		},
		"with a volume and a Service": {
			makeSandbox(trackingPod("box"), withService(true), withVolume("data", "cache"), withClaimSpec),
			apiserver.Counts{
				"create networkpolicies": 3, "create persistentvolumeclaims": 2, "create services": 1,
				"create pods": 1, "patch sandboxes/status": 1,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnvironment(t)
			e.Clock.Halt()
			e.running(tc.sandbox)
			if diff := cmp.Diff(tc.want, e.Writes()); diff != "" {
				t.Errorf("writes until Ready (-want +got):\n%s", diff)
			}
			e.idle("box")
			e.restart()
			e.idle("box")
			if diff := cmp.Diff(tc.want, e.Writes()); diff != "" {
				t.Errorf("writes after a restart (-want +got):\n%s", diff)
			}
			second := tc.sandbox.DeepCopy()
			second.Name, second.ResourceVersion, second.Annotations = "second", "", map[string]string{keys.PodName: "second"}
			e.running(second)
			if n := e.Writes()["create networkpolicies"]; n != tc.want["create networkpolicies"] {
				t.Errorf("the second Sandbox of the namespace made policies of its own: %d", n)
			}
		})
	}
}

// However many Sandboxes a namespace has, one policy serves all of a profile, above one
// floor: three thousand of them cost no more writes of policies than one. The test makes
// fewer unless POLICY_SANDBOXES says how many.
func TestOnePolicyServesEverySandboxOfANamespace(t *testing.T) {
	count := 150
	if text := os.Getenv("POLICY_SANDBOXES"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	e := newEnvironment(t)
	var makers errgroup.Group
	makers.SetLimit(16)
	for i := range count {
		makers.Go(func() error {
			name := fmt.Sprintf("box-%d", i)
			sandbox := makeSandbox(trackingPod(name))
			sandbox.Name, sandbox.Namespace, sandbox.UID, sandbox.Generation = name, e.Namespace, "", 0
			return e.Client.Create(t.Context(), sandbox)
		})
	}
	if err := makers.Wait(); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, 20*time.Minute, true, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := e.Client.List(ctx, &pods, client.InNamespace(e.Namespace))
		return len(pods.Items) == count, err
	})
	if err != nil {
		t.Fatalf("wait for the Pods: %v", err)
	}
	got := apiserver.Counts{}
	for what, n := range e.Writes() {
		if strings.Contains(what, "networkpolicies") || what == "create pods" {
			got[what] = n
		}
	}
	if diff := cmp.Diff(apiserver.Counts{"create networkpolicies": 2, "create pods": count}, got); diff != "" {
		t.Errorf("writes of policies and Pods (-want +got):\n%s", diff)
	}
	var policies networkingv1.NetworkPolicyList
	if err := e.Client.List(t.Context(), &policies, client.InNamespace(e.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(policies.Items) != 2 {
		t.Errorf("there are %d policies, want the floor and that of the profile", len(policies.Items))
	}
}

// No Pod is made before the policies that isolate it.
func TestIsolationComesBeforeThePod(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.running(makeSandbox())
	order := e.order()
	pod := slices.Index(order, "create pods")
	if policies := slices.Index(order, "create networkpolicies"); policies < 0 || pod < 0 || slices.Contains(order[pod:], "create networkpolicies") {
		t.Errorf("the order of writes is %v", order)
	}
	var policies networkingv1.NetworkPolicyList
	if err := e.Client.List(t.Context(), &policies, inNamespace(e.Namespace)); err != nil {
		t.Fatal(err)
	}
	before := policies.Items[0]
	e.Delete(&before)
	e.Eventually("a policy that somebody deleted is back", func() error {
		var now networkingv1.NetworkPolicy
		if !e.Exists(before.Name, &now) || now.UID == before.UID {
			return differenceError("not yet")
		}
		return nil
	})
}

// The policy of another profile is there before the Pod wears its label, and one write
// changes the label: at no moment do fewer policies select the Pod than the floor and that
// of one of the two.
func TestAnotherProfileIsThereBeforeThePodIsUnderIt(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox())
	e.idle("box")
	before := e.order()
	e.change(withProfile("none"))
	e.Eventually("the Pod is under the other profile", func() error {
		if e.Get("box", pod); pod.Labels[keys.EgressProfile] != "none" {
			return differenceError(pod.Labels[keys.EgressProfile])
		}
		return nil
	})
	e.idle("box")
	var writes []string
	for _, write := range e.order()[len(before):] {
		if strings.HasSuffix(write, " networkpolicies") || strings.HasSuffix(write, " pods") {
			writes = append(writes, write)
		}
	}
	if want := []string{"create networkpolicies", "patch pods"}; !slices.Equal(writes, want) {
		t.Errorf("the order of writes is %q, want %q", writes, want)
	}
}

// order are the writes of this test's controller so far.
func (e *environment) order() []string {
	e.Helper()
	if err := server.Audit.Settle(e.Context(), server.Config); err != nil {
		e.Fatal(err)
	}
	order, err := server.Audit.Order(apiserver.Filter{User: e.User, Namespace: e.Namespace})
	if err != nil {
		e.Fatal(err)
	}
	return order
}

// While isolation fails, no Pod is made and Ready says why.
func TestWithoutIsolationThereIsNoPod(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	none := corev1.ResourceList{"count/networkpolicies.networking.k8s.io": resource.MustParse("0")}
	if err := apiserver.Quota(t.Context(), e.Client, e.Namespace, none); err != nil {
		t.Fatal(err)
	}
	e.Create(makeSandbox())
	e.Eventually("Ready says that isolation comes first", func() error {
		got := sayCondition(e.sandbox("box"), agentsv1beta1.ConditionReady)
		if !strings.Contains(got, "False/ReconcilerError: Error seen: no Pod is made before it is isolated") || !strings.Contains(got, "exceeded quota") {
			return differenceError(got)
		}
		return nil
	})
	if e.Exists("box", &corev1.Pod{}) {
		t.Error("there is a Pod that nothing isolates")
	}
	e.Delete(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "quota"}})
	e.runPod("box")
	e.saysReady("box", readySay)
}

// A refusal of the Pod comes through word for word, once, and ends when its cause
// does.
func TestQuotaRefusalWordForWord(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	if err := apiserver.Quota(t.Context(), e.Client, e.Namespace, none); err != nil {
		t.Fatal(err)
	}
	e.Create(makeSandbox())
	e.saysReady("box", `False/ReconcilerError: Error seen: create pod: pods "box" is forbidden: exceeded quota: quota, `+
		"requested: pods=1, used: pods=0, limited: pods=0")
	e.says("box", agentsv1beta1.ConditionSuspended, notSuspended)
	e.expectEvents("QuotaExceeded", 1)
	if n := e.Writes()["patch sandboxes/status"]; n != 1 {
		t.Errorf("the refusal was written %d times", n)
	}
	e.Delete(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "quota"}})
	e.runPod("box")
	e.saysReady("box", readySay)
}

// The policy of an administrator calls what it refuses invalid. When it is taken away, no
// object changes.
func TestAPodThatAPolicyOfTheClusterRefusesIsTriedAgain(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	denial, err := apiserver.Deny(t.Context(), e.Client, e.Namespace, "pods")
	if err != nil {
		t.Fatal(err)
	}
	e.Create(makeSandbox())
	e.saysReady("box", fmt.Sprintf(`False/ReconcilerError: Error seen: create pod: pods "box" is forbidden: `+
		`ValidatingAdmissionPolicy 'deny-%[1]s' with binding 'deny-%[1]s' denied request: not today`, e.Namespace))
	e.expectEvents("PodRefused", 1)
	if err := denial.Lift(t.Context(), e.Client); err != nil {
		t.Fatal(err)
	}
	e.runPod("box")
	e.saysReady("box", readySay)
}

// A Pod that the apiserver refuses for good is the user's to mend: no retry.
func TestAPodThatIsInvalidIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makeSandbox(func(s *agentsv1beta1.Sandbox) {
		s.Spec.PodTemplate.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "nothing", MountPath: "/x"}}
	}))
	e.saysReady("box", `False/ReconcilerError: Error seen: create pod: Pod "box" is invalid: `+
		`spec.containers[0].volumeMounts[0].name: Not found: "nothing"`)
	e.expectEvents("PodRefused", 1)
	if _, err := e.reconciler.Reconcile(t.Context(), e.request("box")); err == nil || !strings.Contains(err.Error(), "terminal error") {
		t.Errorf("the outcome of a pass is %v, want one that is not retried", err)
	}
	e.edit(func(s *agentsv1beta1.Sandbox) { s.Spec.PodTemplate.Spec.Containers[0].VolumeMounts = nil })
	e.runPod("box")
	e.saysReady("box", readySay)
}

// Metadata of the podTemplate reaches the running Pod, and leaves it; reserved keys
// and those of others are left alone.
func TestMetadataFollowsThePodTemplate(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := e.running(makeSandbox(withPodMetadata(
		map[string]string{"team": "a", "old": "1", "agents.x-k8s.io/claim-uid": "forged"},
		map[string]string{"note": "hello", "opentelemetry.io/trace-context": "{}"})))
	ours := map[string]string{
		keys.SandboxNameHash: keys.NameHash("box"), keys.Sandbox: "true", keys.EgressProfile: "public",
	}
	e.wantMetadata(with(ours, "team", "a", "old", "1"), map[string]string{
		"note": "hello", keys.PropagatedLabels: "old,team", keys.PropagatedAnnotations: "note",
	})
	e.Get("box", pod)
	before := pod.DeepCopy()
	pod.Labels["by-somebody"] = "else"
	e.patch(pod, before)

	e.edit(withPodMetadata(map[string]string{"team": "b", "new": "2"}, nil))
	e.wantMetadata(with(ours, "team", "b", "new", "2", "by-somebody", "else"), map[string]string{keys.PropagatedLabels: "new,team"})
	e.saysReady("box", readySay)

	e.edit(withPodMetadata(nil, nil))
	e.wantMetadata(with(ours, "by-somebody", "else"), nil)

	e.Get("box", pod)
	before = pod.DeepCopy()
	delete(pod.Labels, keys.SandboxNameHash)
	delete(pod.Labels, keys.Sandbox)
	e.patch(pod, before)
	e.wantMetadata(with(ours, "by-somebody", "else"), nil)
	e.idle("box")
}

func with(base map[string]string, more ...string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, base)
	for i := 0; i+1 < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

func (e *environment) wantMetadata(labels, annotations map[string]string) {
	e.Helper()
	e.Eventually("the Pod has the metadata", func() error {
		var pod corev1.Pod
		e.Get("box", &pod)
		return differs([]any{labels, annotations}, []any{pod.Labels, pod.Annotations})
	})
}
