// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	reportsv1alpha1 "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/kit"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/reports"
)

// auditedRule is off by default. It speaks of all that has a Pod with a root that can be
// written to.
const auditedRule = "read-only-rootfs"

// poolGrace is how long a pool that was just made replaces nothing, and how long it takes
// for the next.
const poolGrace = 5 * time.Minute

// The platform engineer switches a rule on for a namespace that has been at work. What is
// there is reported and runs on; what waits in the pool is given to nobody, and replaced
// once the template is mended. When the rule is off again, nothing is said any more.
func TestARuleThatIsSwitchedOnReachesWhatIsThere(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	t.Cleanup(reports.Install(t, cluster.Client))
	ns := cluster.Namespace(ctx, t)
	const limited = "resources: {limits: {cpu: 100m, memory: 64Mi}}"
	cluster.MustApply(ctx, t, ns, asTemplate(sandboxWith("python", "terminationGracePeriodSeconds: 1", limited)))
	cluster.MustApply(ctx, t, ns, strings.Replace(emptyPool, "replicas: 0", "replicas: 1", 1))
	waitForPool(ctx, t, ns)
	cluster.MustApply(ctx, t, ns, kit.Readme(t, "manifest: claim"))
	held := waitForClaim(ctx, t, ns).Status.SandboxStatus.Name
	waiting := waitForOther(ctx, t, ns, held)
	pod := cluster.PodOf(ctx, t, ns, held)

	enforceIn(ctx, t, ns, "Deny")
	waitReported(ctx, t, ns, "Sandbox/"+held, "Sandbox/"+waiting, "SandboxClaim/task", "SandboxTemplate/python", "SandboxWarmPool/pool")
	refusal := cluster.MustRefuse(ctx, t, ns, claimNamed("refused"))
	refusal.MustName(t, auditedRule)
	cluster.WaitReady(ctx, t, ns, waiting) // for the rule may go

	// The pool keeps what it has when its template changes; only the rule tells the two apart.
	mended := limited + "\nsecurityContext: {readOnlyRootFilesystem: true}"
	cluster.MustApply(ctx, t, ns, asTemplate(sandboxWith("python", "terminationGracePeriodSeconds: 1", mended)))
	cluster.MustApply(ctx, t, ns, claimNamed("next"))
	given := waitForClaimNamed(ctx, t, ns, "next").Status.SandboxStatus.Name
	if given == waiting || given == held {
		t.Errorf("the claim got Sandbox %s, which the rule refuses", given)
	}
	if root := cluster.PodOf(ctx, t, ns, given).Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
		t.Errorf("the root of the claim's Sandbox %s can be written to", given)
	}
	waitReplaced(ctx, t, ns, waiting)
	waitReported(ctx, t, ns, "Sandbox/"+held)
	if now := cluster.PodOf(ctx, t, ns, held); now.UID != pod.UID || kit.PodReady(now) != nil {
		t.Errorf("the Pod of the claimed Sandbox is %s, want %s still, and Ready: %v", now.UID, pod.UID, kit.PodReady(now))
	}

	enforceIn(ctx, t, ns, "Off")
	waitReported(ctx, t, ns)
}

// enforceIn says by a ConfigMap of the story what the rule does in its namespace. All who
// judge have it in force then.
func enforceIn(ctx context.Context, t *testing.T, ns, enforcement string) {
	t.Helper()
	policy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: kit.ReleaseNamespace, Name: "of-" + ns, Labels: map[string]string{keys.PolicySource: "true"},
	}}
	before := digestOfAll(ctx, t, "")
	policy.Data = map[string]string{"policy.yaml": fmt.Sprintf(
		"overrides: [{name: %s, namespaceSelector: {matchLabels: {%s: %s}}, rules: {%s: {enforcement: %q}}}]", ns, corev1.LabelMetadataName, ns, auditedRule, enforcement)}
	switch err := cluster.Create(ctx, policy); {
	case apierrors.IsAlreadyExists(err):
		if err := cluster.Update(ctx, policy); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		t.Fatal(err)
	default:
		t.Cleanup(func() { takeAway(context.WithoutCancel(ctx), t, policy) })
	}
	digestOfAll(ctx, t, before)
}

// takeAway removes a policy for good.
func takeAway(ctx context.Context, t *testing.T, policy *corev1.ConfigMap) {
	t.Helper()
	confirmed := client.MergeFrom(policy.DeepCopy())
	policy.Annotations = map[string]string{keys.RemovalConfirmed: "true"}
	if err := errors.Join(cluster.Patch(ctx, policy, confirmed), cluster.Delete(ctx, policy)); err != nil {
		t.Errorf("take the policy away: %v", err)
	}
}

// digestOfAll waits until webhook and controller have the same policies in force, others than
// before, and returns their digest.
func digestOfAll(ctx context.Context, t *testing.T, before string) string {
	t.Helper()
	var digest string
	kit.Eventually(ctx, t, "webhook and controller have the same policies", func(ctx context.Context) error {
		digests := map[string]bool{}
		for _, component := range []string{"webhook", "controller"} {
			told, err := cluster.Metrics(ctx, component)
			if err != nil {
				return err
			}
			prefix := fmt.Sprintf("agent_sandbox_policy_info{component=%q,digest=", component)
			for series := range told {
				if of, found := strings.CutPrefix(series, prefix); found {
					digest = of
					digests[digest] = true
				}
			}
		}
		if len(digests) != 1 || digests[before] {
			return fmt.Errorf("their digests are %v", slices.Collect(maps.Keys(digests)))
		}
		return nil
	})
	return digest
}

// waitReported waits until the reports of a namespace name these objects, each as KIND/NAME,
// as what the rule denies, and the metric counts as many.
func waitReported(ctx context.Context, t *testing.T, ns string, objects ...string) {
	t.Helper()
	counted := fmt.Sprintf("agent_sandbox_policy_violations{enforcement=\"Deny\",namespace=%q,rule=%q,severity=\"low\"}", ns, auditedRule)
	kit.Eventually(ctx, t, fmt.Sprintf("the audit tells %q", objects), func(ctx context.Context) error {
		named, err := reported(ctx, ns)
		if err != nil {
			return err
		}
		told, err := cluster.Metrics(ctx, "controller")
		if err != nil {
			return err
		}
		slices.Sort(objects)
		if !slices.Equal(named, objects) || told[counted] != float64(len(objects)) {
			return fmt.Errorf("the reports name %q, the metric counts %v", named, told[counted])
		}
		return nil
	})
}

// reported are the objects of which reports say that the rule denies them, and when they say
// anything else of the rule, that.
func reported(ctx context.Context, ns string) ([]string, error) {
	var list reportsv1alpha1.ReportList
	if err := cluster.List(ctx, &list, client.InNamespace(ns)); err != nil {
		return nil, err
	}
	named := []string{}
	for i := range list.Items {
		for _, result := range list.Items[i].Results {
			switch {
			case result.Policy != auditedRule:
			case result.Result != "fail" || result.Severity != "low" || result.Properties["enforcement"] != "Deny":
				named = append(named, fmt.Sprintf("%s, %s: %s", result.Result, result.Severity, result.Description))
			default:
				for _, subject := range result.Subjects {
					named = append(named, subject.Kind+"/"+subject.Name)
				}
			}
		}
	}
	slices.Sort(named)
	return slices.Compact(named), nil
}

// waitForOther waits until another Sandbox than one waits in the pool, and returns its name.
func waitForOther(ctx context.Context, t *testing.T, ns, not string) string {
	t.Helper()
	name := ""
	kit.Eventually(ctx, t, "the pool has another Sandbox than "+not, func(ctx context.Context) error {
		if name = waitForPool(ctx, t, ns); name == not {
			return errors.New("it has that one")
		}
		return nil
	})
	return name
}

// waitReplaced waits until a Sandbox of the pool is gone and another one is Ready in its place,
// which takes the pool its grace period.
func waitReplaced(ctx context.Context, t *testing.T, ns, old string) {
	t.Helper()
	kit.EventuallyWithin(ctx, t, 2*poolGrace, "Sandbox "+old+" is replaced", func(ctx context.Context) error {
		err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: old}, &agentsv1beta1.Sandbox{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it can be read: %w", err)
		}
		return nil
	})
	cluster.WaitReady(ctx, t, ns, waitForOther(ctx, t, ns, old))
}

// claimNamed is the README's claim by another name.
func claimNamed(name string) string {
	return fmt.Sprintf(`
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: {name: %s}
spec: {warmPoolRef: {name: pool}}
`, name)
}
