// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
)

// costBudget is a tenth of what the apiserver lets all expressions of a policy cost.
const costBudget = 1_000_000

// oldest is the oldest Kubernetes that the chart installs into.
var oldest = version.MajorMinor(1, 31)

// backstopPolicy is one policy of the backstop, compiled by the apiserver's own code.
type backstopPolicy struct {
	*admissionregistrationv1.ValidatingAdmissionPolicy
	validating.Validator
	bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// backstop returns the policies of a release. What does not compile, on the oldest
// Kubernetes or on the newest, fails the test.
func backstop(t *testing.T, r rendered) []backstopPolicy {
	t.Helper()
	var policies []backstopPolicy
	for _, policy := range all[*admissionregistrationv1.ValidatingAdmissionPolicy](r) {
		compile(t, policy, oldest, environment.NewExpressions)
		p := backstopPolicy{policy, compile(t, policy, environment.DefaultCompatibilityVersion(), environment.StoredExpressions), nil}
		for _, binding := range all[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](r) {
			if binding.Spec.PolicyName == policy.Name {
				p.bindings = append(p.bindings, binding)
			}
		}
		if len(p.bindings) == 0 {
			t.Errorf("nothing binds policy %s", policy.Name)
		}
		policies = append(policies, p)
	}
	return policies
}

func compile(
	t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy, release *version.Version, mode environment.Type,
) validating.Validator {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(release))
	if err != nil {
		t.Fatal(err)
	}
	withAuthorizer := cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	plain := cel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil}
	check := func(expression cel.ExpressionAccessor, with cel.OptionalVariableDeclarations) {
		if result := compiler.CompileCELExpression(expression, with, mode); result.Error != nil {
			t.Errorf("policy %s does not compile on Kubernetes %s: %s\n%s", policy.Name, release, result.Error.Detail, expression.GetExpression())
		}
	}
	var conditions, validations, messages []cel.ExpressionAccessor
	for i := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
		check(conditions[i], withAuthorizer) // before there are variables: a condition may use none
	}
	for _, variable := range policy.Spec.Variables {
		accessor := &validating.Variable{Name: variable.Name, Expression: variable.Expression}
		check(accessor, withAuthorizer)
		compiler.CompileAndStoreVariable(accessor, withAuthorizer, mode)
	}
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
		check(validations[len(validations)-1], withAuthorizer)
		check(messages[len(messages)-1], plain)
	}
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(conditions, withAuthorizer, mode), policy.Spec.FailurePolicy, "policy", "validate", policy.Name)
	return validating.NewValidator(compiler.CompileCondition(validations, withAuthorizer, mode), matcher,
		compiler.CompileCondition(nil, withAuthorizer, mode), compiler.CompileCondition(messages, plain, mode), policy.Spec.FailurePolicy, nil)
}

// write is one request that the backstop may judge. Manifests are YAML; one that is
// empty is not there.
type write struct {
	// user is who asks; a tenant if empty.
	user   string
	groups []string
	// may is what the authorizer allows, as "verb resource/name"; "*" is everything.
	may string
	// resource is like "pods/resize.v1.".
	resource    string
	object, old string
	// namespace is where, "tenant" if empty; tier is its tier label, emptyTier says that it has
	// one without a value, and floor whether it holds Sandboxes.
	namespace, tier  string
	emptyTier, floor bool
}

// Authorize implements the apiserver's authorizer.
func (w write) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if w.may == "*" || w.may == a.GetVerb()+" "+a.GetResource()+"/"+a.GetName() && a.GetAPIGroup() == "platform.agents.x-k8s.io" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (w write) operation() admission.Operation {
	switch {
	case w.object == "":
		return admission.Delete
	case w.old == "":
		return admission.Create
	default:
		return admission.Update
	}
}

func (w write) namespaceObject() *corev1.Namespace {
	name := or(w.namespace, "tenant")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
	if w.tier != "" || w.emptyTier {
		ns.Labels[keys.Tier] = w.tier
	}
	return ns
}

func manifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	u := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &u.Object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return u
}

// attributes is the request as the apiserver shows it to a policy.
func (w write) attributes(t *testing.T) (*admission.VersionedAttributes, schema.GroupVersionResource, string) {
	t.Helper()
	path, version, _ := strings.Cut(w.resource, ".")
	resource, subresource, _ := strings.Cut(path, "/")
	v, group, _ := strings.Cut(version, ".")
	gvr := schema.GroupVersionResource{Group: group, Version: v, Resource: resource}
	var object, old runtime.Object
	var kind schema.GroupVersionKind
	var name string
	for text, into := range map[string]*runtime.Object{w.object: &object, w.old: &old} {
		if u := manifest(t, text); u != nil {
			kind, name = u.GroupVersionKind(), u.GetName()
			*into = u
		}
	}
	if w.object == w.old {
		object, old = manifest(t, w.object), manifest(t, w.old)
	}
	options := map[admission.Operation]runtime.Object{
		admission.Create: &metav1.CreateOptions{}, admission.Update: &metav1.UpdateOptions{}, admission.Delete: &metav1.DeleteOptions{},
	}[w.operation()]
	if w.operation() == admission.Delete {
		name = "" // as in the deletion of a collection
	}
	namespace := or(w.namespace, "tenant")
	if resource == "namespaces" || resource == "clusterrolebindings" {
		namespace = ""
	}
	record := admission.NewAttributesRecord(object, old, kind, namespace, name, gvr, subresource, w.operation(), options, false,
		&user.DefaultInfo{Name: or(w.user, "alice"), Groups: w.groups})
	return &admission.VersionedAttributes{
		Attributes: record, VersionedObject: admission.NewLazyObject(object), VersionedOldObject: admission.NewLazyObject(old), VersionedKind: kind,
	}, gvr, path
}

// reaches says whether a policy is asked about a request at all.
func (p backstopPolicy) reaches(t *testing.T, w write, gvr schema.GroupVersionResource, path string) bool {
	t.Helper()
	matched := slices.ContainsFunc(p.Spec.MatchConstraints.ResourceRules, func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
		return slices.Contains(rule.APIGroups, gvr.Group) && slices.Contains(rule.APIVersions, gvr.Version) && slices.Contains(rule.Resources, path) &&
			slices.Contains(rule.Operations, admissionregistrationv1.OperationType(w.operation()))
	})
	return matched && slices.ContainsFunc(p.bindings, func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
		if b.Spec.MatchResources != nil && !selectorOf(t, b.Spec.MatchResources.NamespaceSelector).Matches(labels.Set(w.namespaceObject().Labels)) {
			return false
		}
		return b.Spec.ParamRef == nil || w.floor
	})
}

// refusals are the messages of the backstop on a request. An expression that fails, or
// a message that cannot be made, fails the test.
func refusals(t *testing.T, policies []backstopPolicy, w write) []string {
	t.Helper()
	attributes, gvr, path := w.attributes(t)
	var messages []string
	for _, p := range policies {
		if !p.reaches(t, w, gvr, path) {
			continue
		}
		ns := w.namespaceObject()
		if attributes.GetNamespace() == "" {
			ns = nil
		}
		for _, decision := range p.Validate(t.Context(), gvr, attributes, nil, ns, costBudget, w).Decisions {
			if decision.Evaluation == validating.EvalError {
				t.Fatalf("policy %s fails: %s", p.Name, decision.Message)
			}
			if decision.Action == validating.ActionDeny {
				messages = append(messages, decision.Message)
			}
		}
	}
	for _, message := range messages {
		if !strings.Contains(message, " Fix: ") || strings.Contains(message, "failed expression") {
			t.Errorf("a refusal names no remedy: %s", message)
		}
	}
	return messages
}

// rulesOfRefusals are the ids that the messages begin with.
func rulesOfRefusals(messages []string) []string {
	var ids []string
	for _, message := range messages {
		id, _, _ := strings.Cut(message, ":")
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
