// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/json"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

func matches(t *testing.T, from *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	return selectorOf(t, from).Matches(labels.Set(set))
}

// request is one write, as the apiserver sees it.
type request struct {
	user, subresource string
	object, old       map[string]any
}

// called asks the apiserver's own code whether a webhook's conditions let a request
// through; a condition that cannot be evaluated fails the test.
func called(t *testing.T, conditions webhook.WebhookAccessor, r request) bool {
	t.Helper()
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	object, old := runtimeObject(r.object), runtimeObject(r.old)
	operation, options := admission.Create, runtime.Object(&metav1.CreateOptions{})
	switch {
	case object == nil:
		operation, options = admission.Delete, &metav1.DeleteOptions{}
	case old != nil:
		operation, options = admission.Update, &metav1.UpdateOptions{}
	}
	kind := schema.GroupVersionKind{Group: "agents.x-k8s.io", Version: "v1beta1", Kind: "Sandbox"}
	for _, content := range []map[string]any{r.object, r.old} {
		if named, ok := content["kind"].(string); ok {
			kind.Kind = named
		}
	}
	resource := schema.GroupVersionResource{Group: "agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxes"}
	attributes := &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(object, old, kind, "tenant", "one", resource, r.subresource, operation, options, false,
			&user.DefaultInfo{Name: or(r.user, "alice")}),
		VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(old), VersionedKind: kind,
	}
	result := conditions.GetCompiledMatcher(compiler).Match(t.Context(), attributes, nil, nil)
	if result.Error != nil {
		t.Fatalf("a condition fails: %v", result.Error)
	}
	return result.Matches
}

func runtimeObject(content map[string]any) runtime.Object {
	if content == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: content}
}

// sandbox returns an object with changes, which replace or, when null, remove.
func sandbox(t *testing.T, changes string) map[string]any {
	t.Helper()
	object := map[string]any{
		"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox",
		"metadata": map[string]any{
			"name": "one", "namespace": "tenant", "generation": int64(1),
			"labels": map[string]any{"a": "b"},
		},
		"spec": map[string]any{"podTemplate": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}}},
	}
	var patch map[string]any
	if err := json.Unmarshal([]byte(or(changes, "{}")), &patch); err != nil {
		t.Fatal(err)
	}
	return overlay(object, patch)
}

func overlay(object, patch map[string]any) map[string]any {
	for key, value := range patch {
		below, ok := value.(map[string]any)
		current, is := object[key].(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case ok && is:
			overlay(current, below)
		default:
			object[key] = value
		}
	}
	return object
}

// pool returns a pool of so many, with changes as for sandbox.
func pool(t *testing.T, replicas int64, changes string) map[string]any {
	t.Helper()
	object := sandbox(t, changes)
	object["kind"] = "SandboxWarmPool"
	object["spec"].(map[string]any)["replicas"] = replicas //nolint:forcetypeassert // Of sandbox.
	return object
}

func scale(replicas int64) map[string]any {
	return map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale",
		"metadata": map[string]any{"name": "pool", "namespace": "tenant"},
		"spec":     map[string]any{"replicas": replicas}, "status": map[string]any{"replicas": int64(0)},
	}
}

// Requests that change nothing that we judge never depend on the webhook; all others
// are judged, and no condition fails on any of them.
func TestRequestsThatAreJudged(t *testing.T) {
	ours := "system:serviceaccount:tools-west:q7-blue-controller"
	leaving := `{"metadata": {"deletionTimestamp": "2026-11-29T00:00:00Z", "finalizers": ["x/y"]}}`
	cases := map[string]struct {
		request request
		want    bool
	}{
		"a new object":                       {request{object: sandbox(t, "")}, true},
		"a new object of our controller":     {request{user: ours, object: sandbox(t, "")}, true},
		"a new object without a spec":        {request{object: sandbox(t, `{"spec": null}`)}, true},
		"a new object that claims to leave":  {request{object: sandbox(t, leaving)}, true},
		"a change of the spec":               {request{object: sandbox(t, `{"spec": {"service": true}}`), old: sandbox(t, "")}, true},
		"a spec that appears":                {request{object: sandbox(t, ""), old: sandbox(t, `{"spec": null}`)}, true},
		"a spec that goes":                   {request{object: sandbox(t, `{"spec": null}`), old: sandbox(t, "")}, true},
		"a change of a label":                {request{object: sandbox(t, `{"metadata": {"labels": {"a": "c"}}}`), old: sandbox(t, "")}, true},
		"labels that go":                     {request{object: sandbox(t, `{"metadata": {"labels": null}}`), old: sandbox(t, "")}, true},
		"an annotation that appears":         {request{object: sandbox(t, `{"metadata": {"annotations": {"a": "c"}}}`), old: sandbox(t, "")}, true},
		"an owner that appears":              {request{object: sandbox(t, `{"metadata": {"ownerReferences": [{"name": "x"}]}}`), old: sandbox(t, "")}, true},
		"a write that changes nothing":       {request{object: sandbox(t, ""), old: sandbox(t, "")}, false},
		"neither has a spec":                 {request{object: sandbox(t, `{"spec": null}`), old: sandbox(t, `{"spec": null}`)}, false},
		"a finalizer that appears":           {request{object: sandbox(t, `{"metadata": {"finalizers": ["x/y"]}}`), old: sandbox(t, "")}, false},
		"managed fields and generation":      {request{object: sandbox(t, `{"metadata": {"generation": 2, "managedFields": [{}]}}`), old: sandbox(t, "")}, false},
		"a change of the status":             {request{object: sandbox(t, `{"status": {"replicas": 1}}`), old: sandbox(t, "")}, false},
		"an object on its way out":           {request{object: sandbox(t, `{"spec": {"service": true}}`), old: sandbox(t, leaving)}, false},
		"one that claims to be on its way":   {request{object: sandbox(t, leaving), old: sandbox(t, `{"spec": {"service": true}}`)}, true},
		"a change by our controller":         {request{user: ours, object: sandbox(t, `{"spec": {"service": true}}`), old: sandbox(t, "")}, false},
		"a change by a controller elsewhere": {request{user: "system:serviceaccount:tenant:q7-blue-controller", object: sandbox(t, `{"spec": {"service": true}}`), old: sandbox(t, "")}, true},
		"a change by our webhook":            {request{user: "system:serviceaccount:tools-west:q7-blue-webhook", object: sandbox(t, `{"spec": {"service": true}}`), old: sandbox(t, "")}, true},
		"an owner that the garbage collector removes": {request{
			user: "system:serviceaccount:kube-system:generic-garbage-collector", object: sandbox(t, ""),
			old: sandbox(t, `{"metadata": {"ownerReferences": [{"name": "x"}]}}`),
		}, false},
		"an owner that the garbage collector removes without credentials of its own": {request{
			user: "system:kube-controller-manager", object: sandbox(t, ""), old: sandbox(t, `{"metadata": {"ownerReferences": [{"name": "x"}]}}`),
		}, false},
		"a new object of the controller manager":    {request{user: "system:kube-controller-manager", object: sandbox(t, "")}, true},
		"a scale that the controller manager grows": {request{user: "system:kube-controller-manager", subresource: "scale", object: scale(3), old: scale(1)}, true},
		"a change by the namespace controller": {request{
			user: "system:serviceaccount:kube-system:namespace-controller", object: sandbox(t, `{"spec": {"service": true}}`), old: sandbox(t, ""),
		}, false},
		"what kubectl notes of an apply": {request{
			object: sandbox(t, `{"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "b"}}}`), old: sandbox(t, ""),
		}, false},
		"an annotation that goes":            {request{object: sandbox(t, ""), old: sandbox(t, `{"metadata": {"annotations": {"a": "c"}}}`)}, true},
		"a Sandbox that is suspended":        {request{object: sandbox(t, `{"spec": {"operatingMode": "Suspended"}}`), old: sandbox(t, `{"spec": {"operatingMode": "Running"}}`)}, false},
		"a Sandbox that is resumed":          {request{object: sandbox(t, `{"spec": {"operatingMode": "Running"}}`), old: sandbox(t, `{"spec": {"operatingMode": "Suspended"}}`)}, true},
		"one that is suspended and changed":  {request{object: sandbox(t, `{"spec": {"operatingMode": "Suspended", "service": true}}`), old: sandbox(t, "")}, true},
		"one that is suspended and cut":      {request{object: sandbox(t, `{"spec": {"operatingMode": "Suspended", "podTemplate": null}}`), old: sandbox(t, "")}, true},
		"one that is suspended and labelled": {request{object: sandbox(t, `{"spec": {"operatingMode": "Suspended"}, "metadata": {"labels": {"a": "c"}}}`), old: sandbox(t, "")}, true},
		"a pool that shrinks":                {request{object: pool(t, 1, ""), old: pool(t, 3, "")}, false},
		"a pool that grows":                  {request{object: pool(t, 3, ""), old: pool(t, 1, "")}, true},
		"a pool that shrinks and changes":    {request{object: pool(t, 1, `{"spec": {"service": true}}`), old: pool(t, 3, "")}, true},
		"a scale that grows":                 {request{subresource: "scale", object: scale(3), old: scale(1)}, true},
		"a scale that shrinks":               {request{subresource: "scale", object: scale(1), old: scale(3)}, false},
		"a scale that stays":                 {request{subresource: "scale", object: scale(1), old: scale(1)}, false},
	}
	h := webhooks(t, render(t, elsewhere))
	mutate := webhook.NewMutatingWebhookAccessor("m", "m", &h.mutate)
	validate := webhook.NewValidatingWebhookAccessor("v", "v", &h.validate)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := called(t, validate, tc.request); got != tc.want {
				t.Errorf("validated: %t, want %t", got, tc.want)
			}
			if got := called(t, mutate, tc.request); got != tc.want {
				t.Errorf("mutated: %t, want %t", got, tc.want)
			}
		})
	}
}

// An upgrade brings a ConfigMap that the webhook before it cannot judge. A deletion, which has no object, is
// judged, whoever made the ConfigMap.
func TestPolicyConfigMapsThatAreJudged(t *testing.T) {
	chart := func(version string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "one", "labels": map[string]any{
			"app.kubernetes.io/part-of": "agent-sandbox", "app.kubernetes.io/version": version,
		}}}
	}
	own := map[string]any{"metadata": map[string]any{"name": "one"}}
	cases := map[string]struct {
		request request
		want    bool
	}{
		"one of a team":                     {request{object: own}, true},
		"one of another version's chart":    {request{object: chart("0.0.9"), old: chart("0.0.8")}, false},
		"the deletion of one of a team":     {request{old: own}, true},
		"the deletion of another version's": {request{old: chart("0.0.9")}, true},
	}
	h := webhooks(t, render(t, elsewhere))
	accessor := webhook.NewValidatingWebhookAccessor("p", "p", &h.policies)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := called(t, accessor, tc.request); got != tc.want {
				t.Errorf("called: %t, want %t", got, tc.want)
			}
		})
	}
}

// The program that judges is that of the image: another tag is another version.
func TestAnotherImageIsAnotherVersion(t *testing.T) {
	in := elsewhere
	in.set = []string{"image.tag=v9"}
	next, _ := policiesOf(t, render(t, in))
	h := webhooks(t, render(t, elsewhere))
	accessor := webhook.NewValidatingWebhookAccessor("p", "p", &h.policies)
	object := map[string]any{"metadata": map[string]any{"name": next.Name, "labels": map[string]any{
		"app.kubernetes.io/part-of": next.Labels["app.kubernetes.io/part-of"], "app.kubernetes.io/version": next.Labels["app.kubernetes.io/version"],
	}}}
	if called(t, accessor, request{object: object}) {
		t.Errorf("the webhook before judges the policies of version %q", next.Labels["app.kubernetes.io/version"])
	}
}

func TestConditionsOfOnesOwn(t *testing.T) {
	in := elsewhere
	in.set = []string{"webhook.matchConditions[0].name=not-bob", "webhook.matchConditions[0].expression=request.userInfo.username != 'bob'"}
	h := webhooks(t, render(t, in))
	validate := webhook.NewValidatingWebhookAccessor("v", "v", &h.validate)
	for who, want := range map[string]bool{"alice": true, "bob": false} {
		if got := called(t, validate, request{user: who, object: sandbox(t, "")}); got != want {
			t.Errorf("a request by %s is judged: %t, want %t", who, got, want)
		}
	}
}

// An old webhook refuses a rule that only the new one knows, and with it the upgrade.
func TestPolicySourcesThatAreJudged(t *testing.T) {
	h := webhooks(t, render(t, elsewhere))
	source, _ := policiesOf(t, render(t, elsewhere))
	next := source.DeepCopy()
	next.Labels["app.kubernetes.io/version"] = "9.9.9"
	author := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine", Labels: map[string]string{keys.PolicySource: "true"}}}
	other := author.DeepCopy()
	other.Labels = nil
	accessor := webhook.NewValidatingWebhookAccessor("p", "p", &h.policies)
	cases := map[string]struct {
		object *corev1.ConfigMap
		want   bool
	}{
		"the chart's own":                {&source, true},
		"a policy author's":              {author, true},
		"the chart's of another version": {next, false},
		"one that is no policy source":   {other, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tc.object)
			if err != nil {
				t.Fatal(err)
			}
			selected := matches(t, h.policies.ObjectSelector, tc.object.Labels)
			if got := selected && called(t, accessor, request{object: content}); got != tc.want {
				t.Errorf("judged: %t, want %t", got, tc.want)
			}
		})
	}
	if *h.policies.SideEffects != admissionregistrationv1.SideEffectClassNone {
		t.Errorf("side effects %s, want None: a dry run would fail", *h.policies.SideEffects)
	}
}

// An apiserver takes no configuration of a webhook whose conditions it cannot compile.
func TestConditionsCompileOnTheOldestKubernetes(t *testing.T) {
	compiler := cel.NewCompiler(environment.MustBaseEnvSet(oldest))
	h := webhooks(t, render(t, elsewhere))
	conditions := slices.Concat(h.mutate.MatchConditions, h.validate.MatchConditions, h.policies.MatchConditions)
	if len(conditions) < 3 {
		t.Errorf("there are %d conditions", len(conditions))
	}
	for i := range conditions {
		condition := (*matchconditions.MatchCondition)(&conditions[i])
		result := compiler.CompileCELExpression(condition, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.NewExpressions)
		if result.Error != nil {
			t.Errorf("condition %s: %s", condition.Name, result.Error.Detail)
		}
	}
}
