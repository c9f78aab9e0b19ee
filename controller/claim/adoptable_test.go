// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/claim/candidates"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/patch"
)

func TestWhatOfAPoolCanBeHandedOut(t *testing.T) {
	type edit = func(*agentsv1beta1.Sandbox)
	cases := map[string]struct {
		edit           edit
		handable, fine bool
	}{
		"one that is ready":           {func(*agentsv1beta1.Sandbox) {}, true, true},
		"one that is not ready":       {withCondition("Ready", "False", "DependenciesNotReady", "", 0), true, false},
		"one without an address":      {func(s *agentsv1beta1.Sandbox) { s.Status.PodIPs = nil }, true, false},
		"one that is being deleted":   {func(s *agentsv1beta1.Sandbox) { s.DeletionTimestamp = inMinutes(0) }, false, false},
		"one that is suspended":       {func(s *agentsv1beta1.Sandbox) { s.Spec.OperatingMode = "Suspended" }, false, false},
		"one that is going to expire": {func(s *agentsv1beta1.Sandbox) { s.Spec.ShutdownTime = inMinutes(9) }, false, false},
		"one without a pool's label":  {func(s *agentsv1beta1.Sandbox) { delete(s.Labels, keys.WarmPoolSandbox) }, false, false},
		"one of no template":          {func(s *agentsv1beta1.Sandbox) { delete(s.Labels, keys.SandboxTemplateRefHash) }, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sandbox := makeSandbox(tc.edit)
			if got := ofPool(sandbox, makePool()); got != tc.handable {
				t.Errorf("ofPool() = %t, want %t", got, tc.handable)
			}
			if got := memberOf(sandbox, "pool", "form").Usable; got != tc.fine {
				t.Errorf("Usable = %t, want %t", got, tc.fine)
			}
		})
	}
}

func TestWhoseASandboxIs(t *testing.T) {
	ownedBy := func(version, kind, name, uid string) *agentsv1beta1.Sandbox {
		return makeSandbox(func(s *agentsv1beta1.Sandbox) {
			s.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: version, Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true),
			}}
		})
	}
	cases := map[string]struct {
		sandbox                *agentsv1beta1.Sandbox
		pool, serves, namesake bool
	}{
		"a pool's":                                        {makeSandbox(), true, false, false},
		"a pool's of another version":                     {ownedBy("extensions.agents.x-k8s.io/v1", "SandboxWarmPool", "pool", "p"), true, false, false},
		"another pool's":                                  {ownedBy("extensions.agents.x-k8s.io/v1beta1", "SandboxWarmPool", "other", "p"), false, false, false},
		"a pool's of another group":                       {ownedBy("example.com/v1", "SandboxWarmPool", "pool", "p"), false, false, false},
		"an earlier claim's of this name":                 {ownedBy("extensions.agents.x-k8s.io/v1beta1", "SandboxClaim", "claim", "old"), false, false, true},
		"another claim's":                                 {ownedBy("extensions.agents.x-k8s.io/v1beta1", "SandboxClaim", "other", "old"), false, false, false},
		"one of a tenant's own kind with the claim's UID": {ownedBy("example.com/v1", "SandboxClaim", "claim", "claim-uid"), false, false, false},
		"nobody's":                                        {makeSandbox(func(s *agentsv1beta1.Sandbox) { s.OwnerReferences = nil }), false, false, false},
		"the claim's": {
			handOver(makeSandbox(), makeClaim("claim"), agentsv1beta1.PodMetadata{}), false, true, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim := makeClaim("claim")
			pool, belongs := poolOf(tc.sandbox)
			got := []bool{belongs && pool == "pool", serves(tc.sandbox, claim), servedNamesake(tc.sandbox, claim)}
			if diff := cmp.Diff([]bool{tc.pool, tc.serves, tc.namesake}, got); diff != "" {
				t.Errorf("pool's, claim's, namesake's (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandOverLeavesNothingOfThePool(t *testing.T) {
	claim := makeClaim("claim", func(c *extensionsv1beta1.SandboxClaim) {
		c.Annotations = map[string]string{keys.TraceContext: "{}", keys.Creator: "ann"}
	})
	before := makeSandbox(func(s *agentsv1beta1.Sandbox) { s.Annotations[keys.Creator] = "the pool's controller" })
	kept := before.DeepCopy()
	got := handOver(before, claim, agentsv1beta1.PodMetadata{Labels: map[string]string{"app": "x"}})
	want := before.DeepCopy()
	want.Labels = map[string]string{
		keys.ClaimUID: "claim-uid", keys.LaunchType: "warm", keys.SandboxTemplateRefHash: keys.NameHash("template"),
		keys.Template: keys.TemplateKey("template"),
	}
	maps.Copy(want.Annotations, claim.Annotations)
	want.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "extensions.agents.x-k8s.io/v1beta1", Kind: "SandboxClaim", Name: "claim", UID: "claim-uid",
		Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	want.Spec.PodTemplate.ObjectMeta = agentsv1beta1.PodMetadata{Labels: map[string]string{"app": "x"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("handOver() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(kept, before); diff != "" {
		t.Errorf("the pool's Sandbox was changed (-before +after):\n%s", diff)
	}
}

func TestHealthOfNodes(t *testing.T) {
	cases := map[string]struct {
		edit func(*corev1.Node)
		want bool
	}{
		"a node that is ready":    {func(*corev1.Node) {}, true},
		"one that is not":         {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		"one that is silent":      {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, false},
		"one that said nothing":   {func(n *corev1.Node) { n.Status.Conditions = nil }, false},
		"one that is cordoned":    {func(n *corev1.Node) { n.Spec.Unschedulable = true }, false},
		"one that is going":       {func(n *corev1.Node) { n.DeletionTimestamp = inMinutes(0) }, false},
		"one that is unreachable": {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable}} }, false},
		"one that is scaled down": {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}} }, false},
		"one for a purpose":       {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "sandbox.gke.io/runtime"}} }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
			tc.edit(node)
			kept, err := stripNode(node.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			stripped, isNode := kept.(*corev1.Node)
			if got := healthy(node); got != tc.want || !isNode || healthy(stripped) != tc.want {
				t.Errorf("healthy() = %t, want %t, and the same of what the cache keeps", got, tc.want)
			}
		})
	}
}

func TestThePodOfAMember(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}
	pod.UID, pod.Status.Conditions = "pod-uid", []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if diff := cmp.Diff(candidates.Pod{UID: "pod-uid", Node: "n1", Ready: true}, podOf(pod)); diff != "" {
		t.Errorf("podOf() (-want +got):\n%s", diff)
	}
	pod.DeletionTimestamp = inMinutes(0)
	if podOf(pod).Ready {
		t.Error("a Pod that is being deleted counts as ready")
	}
}

func TestPoolsForWhichAClaimCanWait(t *testing.T) {
	cases := map[string]struct {
		edit    func(*extensionsv1beta1.SandboxWarmPool)
		members int
		want    bool
	}{
		"one that keeps some":             {func(*extensionsv1beta1.SandboxWarmPool) {}, 0, true},
		"one that says nothing keeps one": {func(p *extensionsv1beta1.SandboxWarmPool) { p.Spec.Replicas = nil }, 0, true},
		"one that keeps none":             {func(p *extensionsv1beta1.SandboxWarmPool) { p.Spec.Replicas = new(int32(0)) }, 0, false},
		"one that has some left":          {func(p *extensionsv1beta1.SandboxWarmPool) { p.Spec.Replicas = new(int32(0)) }, 2, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := refills(makePool(tc.edit), tc.members); got != tc.want {
				t.Errorf("refills() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhatOfASandboxConcernsItsClaim(t *testing.T) {
	cases := map[string]struct {
		edit func(*agentsv1beta1.Sandbox)
		want bool
	}{
		"nothing":  {func(*agentsv1beta1.Sandbox) {}, false},
		"the node": {func(s *agentsv1beta1.Sandbox) { s.Status.NodeName = "n2" }, false},
		"the generation that a condition speaks of": {func(s *agentsv1beta1.Sandbox) { s.Status.Conditions[0].ObservedGeneration++ }, false},
		"Ready":                {withCondition("Ready", "False", "PodFailed", "Pod failed", 0), true},
		"the words of Ready":   {withCondition("Ready", "True", "DependenciesReady", "Pod is Ready; Service Exists", 0), true},
		"Finished":             {withCondition("Finished", "True", "PodFailed", "Pod failed", 0), true},
		"the addresses":        {func(s *agentsv1beta1.Sandbox) { s.Status.PodIPs = nil }, true},
		"that it is going":     {func(s *agentsv1beta1.Sandbox) { s.DeletionTimestamp = inMinutes(0) }, true},
		"that it has no owner": {func(s *agentsv1beta1.Sandbox) { s.OwnerReferences = nil }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := concerns(makeSandbox(), makeSandbox(tc.edit)); got != tc.want {
				t.Errorf("concerns() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhatTellsOnlyThatAClaimHasGotASandbox(t *testing.T) {
	owner := func(kind, uid string) func(*agentsv1beta1.Sandbox) {
		return func(s *agentsv1beta1.Sandbox) {
			owner := metav1.NewControllerRef(makeClaim(uid), extensionsv1beta1.GroupVersion.WithKind(kind))
			owner.UID, s.OwnerReferences = types.UID(uid), []metav1.OwnerReference{*owner}
		}
	}
	of := func(claim string) func(*agentsv1beta1.Sandbox) {
		return owner(extensionsv1beta1.SandboxClaimKind, claim)
	}
	ofNobody := func(s *agentsv1beta1.Sandbox) { s.OwnerReferences = nil }
	cases := map[string]struct {
		before, after []func(*agentsv1beta1.Sandbox)
		want          bool
	}{
		"a pool's":                       {nil, []func(*agentsv1beta1.Sandbox){of("a")}, true},
		"nobody's":                       {[]func(*agentsv1beta1.Sandbox){ofNobody}, []func(*agentsv1beta1.Sandbox){of("a")}, true},
		"a pool's that stays its":        {nil, nil, false},
		"a pool's that is nobody's":      {nil, []func(*agentsv1beta1.Sandbox){ofNobody}, false},
		"a pool's that is another's now": {nil, []func(*agentsv1beta1.Sandbox){owner("Task", "a")}, false},
		"another claim's":                {[]func(*agentsv1beta1.Sandbox){of("a")}, []func(*agentsv1beta1.Sandbox){of("b")}, false},
		"one that failed meanwhile": {
			nil, []func(*agentsv1beta1.Sandbox){of("a"), withCondition("Ready", "False", "PodFailed", "Pod failed", 0)}, false,
		},
		"one that is going": {
			nil, []func(*agentsv1beta1.Sandbox){of("a"), func(s *agentsv1beta1.Sandbox) { s.DeletionTimestamp = inMinutes(0) }}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := taken(makeSandbox(tc.before...), makeSandbox(tc.after...)); got != tc.want {
				t.Errorf("taken() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhatErrorsMean(t *testing.T) {
	claims := schema.GroupResource{Resource: "sandboxes"}
	status := func(code int32) error { return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}} }
	cases := map[string]struct {
		err error
		// passes: nobody needs to read of it at once. retried: the work queue tries again.
		passes, retried bool
	}{
		"a conflict":                   {apierrors.NewConflict(claims, "a", errors.New("x")), true, true},
		"a quota that is full":         {apierrors.NewForbidden(claims, "a", errors.New("exceeded quota")), false, true},
		"a denial without a reason":    {status(http.StatusBadRequest), false, true},
		"an object that is invalid":    {apierrors.NewInvalid(schema.GroupKind{}, "a", nil), false, false},
		"too many requests":            {apierrors.NewTooManyRequests("x", 1), true, true},
		"a server that failed":         {apierrors.NewInternalError(errors.New("x")), true, true},
		"a server that took too long":  {apierrors.NewTimeoutError("x", 1), true, true},
		"a request that took too long": {status(http.StatusRequestTimeout), true, true},
		"no answer":                    {&url.Error{Op: "Patch", Err: context.DeadlineExceeded}, true, true},
		"a pass that was ended":        {context.Canceled, true, true},
		"a fault of ours":              {errors.New("x"), false, true},
		"a user's mistake":             {refuse(ReasonInvalidMetadata, "x"), false, false},
		"a pool that is not there":     {refuse(ReasonWarmPoolNotFound, "x"), false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("create: %w", tc.err)
			out := outcome(err)
			retried := out != nil && !errors.Is(out, reconcile.TerminalError(nil))
			got := []bool{patch.Passing(err), retried}
			if diff := cmp.Diff([]bool{tc.passes, tc.retried}, got); diff != "" {
				t.Errorf("passes, retried (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsThatPassAreToldOnlyWhenTheyLast(t *testing.T) {
	s := makeScope()
	s.problem = context.DeadlineExceeded
	if !s.mayPass() {
		t.Error("a new claim is told at once")
	}
	s.now = noon().Add(patience + time.Second)
	if s.mayPass() {
		t.Error("a claim that waits long is told nothing")
	}
	s.sandbox = makeSandbox()
	if !s.mayPass() {
		t.Error("a claim that has its Sandbox turns unready")
	}
}
