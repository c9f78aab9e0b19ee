// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package template

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	agentsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/agents/v1beta1"
	extensionsv1beta1 "github.com/agent-sandbox-platform/agent-sandbox/controller/api/extensions/v1beta1"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/exposure"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/sandbox"
	"github.com/agent-sandbox-platform/agent-sandbox/e2e/apiserver"
)

// server is the apiserver of all tests of this package; TestMain starts it.
var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Options{NoFsync: true}, &server)) }

// environment is a namespace with a template controller of its own.
type environment struct {
	*apiserver.Environment

	stop func()
}

func newEnvironment(t *testing.T, edits ...func(*environment)) *environment {
	t.Helper()
	e := &environment{Environment: server.NewEnvironment(t)}
	for _, edit := range edits {
		edit(e)
	}
	byObject, err := sandbox.CacheByObject(false)
	if err != nil {
		t.Fatal(err)
	}
	e.stop = e.Run(apiserver.Setup{
		Add: func(ctx context.Context, mgr ctrl.Manager) error {
			every, err := exposure.EveryPolicy(ctx, mgr)
			if err != nil {
				return err
			}
			settings := Settings{Current: apiserver.Platform, Changed: make(chan event.GenericEvent), EveryPolicy: every, ConcurrentWorkers: 1}
			return New(mgr.GetClient(), mgr.GetAPIReader(), e.Recorder(mgr), clock.RealClock{}, settings).SetupWithManager(ctx, mgr)
		},
		ByObject: byObject,
	})
	return e
}

// makeTemplate gives the template "python".
func makeTemplate(edits ...func(*extensionsv1beta1.SandboxTemplate)) *extensionsv1beta1.SandboxTemplate {
	template := &extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Name: "python"}}
	template.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "workspace", Image: "python:3.12-slim"}}
	for _, edit := range edits {
		edit(template)
	}
	return template
}

func (e *environment) template() *extensionsv1beta1.SandboxTemplate {
	e.Helper()
	template := &extensionsv1beta1.SandboxTemplate{}
	e.Get("python", template)
	return template
}

// policySays is the reason of the template's condition of its policy; empty without one.
func policySays(template *extensionsv1beta1.SandboxTemplate) string {
	if said := meta.FindStatusCondition(template.Status.Conditions, extensionsv1beta1.TemplateConditionNetworkPolicy); said != nil {
		return said.Reason
	}
	return ""
}

// What a pass found out about a template is not written to the next one of its name, be
// it for a moment: it would say that its Sandboxes are open.
func TestATemplateIsNotToldOfTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"by its status": "/sandboxtemplates/python/status", "by its label": "/sandboxtemplates/python"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e *environment
			m := &apiserver.Meanwhile{Method: http.MethodPatch, Path: path, Happen: func() {
				e.Delete(e.template())
				e.Create(makeTemplate())
			}}
			e = newEnvironment(t, func(made *environment) { made.Wrap = m.Wrap })
			first := makeTemplate(func(t *extensionsv1beta1.SandboxTemplate) {
				t.Spec.NetworkPolicyManagement = extensionsv1beta1.NetworkPolicyUnmanaged
			})
			watcher, err := apiserver.Watch(t.Context(), e.Client, &extensionsv1beta1.SandboxTemplateList{}, e.Namespace)
			if err != nil {
				t.Fatal(err)
			}
			defer watcher.Stop()
			e.Create(first)
			for event := range watcher.ResultChan() {
				template, isTemplate := event.Object.(*extensionsv1beta1.SandboxTemplate)
				if !isTemplate || template.UID == first.UID {
					continue
				}
				switch said := policySays(template); said {
				case "":
				case reasonInForce:
					return
				default:
					t.Errorf("the second template was told of the first: %s", said)
				}
			}
			t.Error("the watch ended before the second template had its policy")
		})
	}
}

// An Event is told once the status says the same. Otherwise each try would tell it again.
func TestAnEventIsToldOnceHoweverOftenItsStatusFails(t *testing.T) {
	t.Parallel()
	failing := &apiserver.Failing{Method: http.MethodPatch, Path: "/sandboxtemplates/python/status"}
	failing.Next(3)
	e := newEnvironment(t, func(e *environment) { e.Wrap, e.Told = failing.Wrap, &apiserver.Told{} })
	e.Create(&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "python-network-policy"}})
	e.Create(makeTemplate())
	e.Eventually("the template says that the name is taken", func() error {
		if said := policySays(e.template()); said != reasonNameTaken {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	})
	e.Eventually("the Event is told", func() error {
		if told := e.Told.All(); len(told) == 0 {
			return fmt.Errorf("%d writes have yet to fail", failing.Left())
		}
		return nil
	})
	e.stop()
	told := e.Told.All()
	if e.template().Labels[keys.SandboxTemplateRefHash] != keys.NameHash("python") {
		t.Errorf("labels of a template that has no policy: %v", e.template().Labels)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "Warning "+reasonNameTaken) || failing.Left() > 0 {
		t.Errorf("%d writes have yet to fail, and the Events were %q", failing.Left(), told)
	}
}

// The status says who uses the template: the Sandboxes made from it, its pools and their
// claims.
func TestUsersOfATemplateAreCounted(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pool := &extensionsv1beta1.SandboxWarmPool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	pool.Spec.TemplateRef.Name = "python"
	e.Create(makeTemplate(), pool)
	for i := range 3 {
		claim := &extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("claim-%d", i)}}
		claim.Spec.WarmPoolRef.Name = "pool"
		box := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Annotations: map[string]string{keys.SandboxTemplateRef: "python"}}}
		box.Spec.PodTemplate = makeTemplate().Spec.PodTemplate
		e.Create(claim, box)
	}
	counted := func(sandboxes, pools, claims int32) {
		e.Eventually("the users are counted", func() error {
			got := e.template().Status
			if got.Sandboxes != sandboxes || got.WarmPools != pools || got.Claims != claims {
				return fmt.Errorf("the status has %d, %d and %d, want %d, %d and %d", got.Sandboxes, got.WarmPools, got.Claims, sandboxes, pools, claims)
			}
			return nil
		})
	}
	counted(3, 1, 3)
	e.Delete(&agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "claim-0"}})
	e.Delete(&extensionsv1beta1.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: "claim-1"}})
	counted(2, 1, 2)
	e.Delete(pool)
	counted(2, 0, 0)
}

// Whoever changes a template reads in its status when the change was seen, also when nothing
// else of the status changes.
func TestTheStatusOfATemplateFollowsItsGeneration(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	e.Create(makeTemplate())
	for generation := range int64(3) {
		e.Eventually("the status is that of the newest generation", func() error {
			got := e.template()
			said := meta.FindStatusCondition(got.Status.Conditions, extensionsv1beta1.TemplateConditionNetworkPolicy)
			if got.Generation != generation+1 || got.Status.ObservedGeneration != got.Generation || said == nil || said.ObservedGeneration != got.Generation {
				return fmt.Errorf("generation %d has the status %+v", got.Generation, got.Status)
			}
			return nil
		})
		apiserver.Change(e.Environment, "python", &extensionsv1beta1.SandboxTemplate{}, func(t *extensionsv1beta1.SandboxTemplate) {
			t.Spec.PodTemplate.ObjectMeta.Labels = map[string]string{"app": fmt.Sprint("v", generation)}
		})
	}
}

// What the condition says of an unmanaged template is true after each change of the policies
// of others and of its Pods. Nothing is asked for twice: each is told by an event.
func TestWhatIsOpenForAnUnmanagedTemplateIsToldAsItChanges(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{keys.SandboxTemplateRefHash: keys.NameHash("python")}},
			Spec:       *makeTemplate().Spec.PodTemplate.Spec.DeepCopy(),
		}
	}
	says := func(want string) {
		e.Helper()
		e.Eventually("the condition says "+want, func() error {
			said := meta.FindStatusCondition(e.template().Status.Conditions, extensionsv1beta1.TemplateConditionNetworkPolicy)
			if said == nil || said.Reason != reasonUnmanaged || !strings.Contains(said.Message, want) {
				return fmt.Errorf("it is %+v", said)
			}
			return nil
		})
	}
	e.Create(pod("first"), makeTemplate(func(t *extensionsv1beta1.SandboxTemplate) {
		t.Spec.NetworkPolicyManagement = extensionsv1beta1.NetworkPolicyUnmanaged
	}))
	says("no NetworkPolicy of yours opens anything for their Pods")
	open := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "open"}, Spec: networkingv1.NetworkPolicySpec{
		Egress: []networkingv1.NetworkPolicyEgressRule{{}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
	}}
	e.Create(open)
	says(`NetworkPolicy "open" lets 1 of their Pods (first) connect to everything`)
	e.Create(pod("second"))
	says(`NetworkPolicy "open" lets 2 of their Pods (first, second) connect to everything`)
	apiserver.Change(e.Environment, "open", &networkingv1.NetworkPolicy{}, func(p *networkingv1.NetworkPolicy) {
		p.Spec.Egress, p.Spec.Ingress = nil, []networkingv1.NetworkPolicyIngressRule{{}}
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	})
	says(`NetworkPolicy "open" lets 2 of their Pods (first, second) be reached`)
	apiserver.Change(e.Environment, "open", &networkingv1.NetworkPolicy{}, func(p *networkingv1.NetworkPolicy) {
		p.Spec.PodSelector.MatchLabels = map[string]string{"app": "web"}
	})
	says("no NetworkPolicy of yours opens anything for their Pods")
	apiserver.Change(e.Environment, "first", &corev1.Pod{}, func(p *corev1.Pod) { p.Labels["app"] = "web" })
	says(`NetworkPolicy "open" lets 1 of their Pods (first) be reached`)
	e.Delete(open)
	says("no NetworkPolicy of yours opens anything for their Pods")
}

// Whatever an administrator makes of the policy of a template, it is what it has to be again,
// while the template is there and afterwards. The own rules of one that has gone nobody knows
// any more, so that these are closed.
func TestWhatAnAdministratorChangesOfAPolicyIsMended(t *testing.T) {
	t.Parallel()
	e := newEnvironment(t)
	pods := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}
	ports := []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(443))}} // the apiserver adds the protocol
	own := makeTemplate(func(t *extensionsv1beta1.SandboxTemplate) {
		t.Spec.NetworkPolicy = &extensionsv1beta1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{To: pods, Ports: ports}}}
	})
	plain := makeTemplate(func(t *extensionsv1beta1.SandboxTemplate) { t.Name = "plain" })
	for _, template := range []*extensionsv1beta1.SandboxTemplate{own, plain} {
		made := &agentsv1beta1.Sandbox{ObjectMeta: metav1.ObjectMeta{
			Name: "of-" + template.Name, Labels: map[string]string{keys.SandboxTemplateRefHash: keys.NameHash(template.Name)},
			Annotations: map[string]string{keys.SandboxTemplateRef: template.Name},
		}}
		made.Spec.OperatingMode = agentsv1beta1.OperatingModeSuspended
		made.Spec.PodTemplate = template.Spec.PodTemplate
		e.Create(template, made)
	}
	open := func(s *networkingv1.NetworkPolicySpec) { s.Egress = []networkingv1.NetworkPolicyEgressRule{{}} }
	widen := func(s *networkingv1.NetworkPolicySpec) { s.PodSelector = metav1.LabelSelector{} }
	for _, template := range []string{own.Name, plain.Name} {
		policy := &networkingv1.NetworkPolicy{}
		e.Eventually("the policy of "+template+" is there", func() error {
			return e.Client.Get(t.Context(), e.Key(isolation.TemplateName(template)), policy)
		})
		want := policy.Spec.DeepCopy()
		mended := func(what string, edit func(*networkingv1.NetworkPolicySpec)) {
			apiserver.Change(e.Environment, policy.Name, policy, func(p *networkingv1.NetworkPolicy) { edit(&p.Spec) })
			e.Eventually(what+" of "+template+" is mended", func() error {
				e.Get(policy.Name, policy)
				if diff := cmp.Diff(want, &policy.Spec); diff != "" {
					return fmt.Errorf("the policy (-want +got):\n%s", diff)
				}
				return nil
			})
		}
		mended("the egress", open)
		mended("the selector", widen)
		e.Delete(&extensionsv1beta1.SandboxTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: template}})
		e.Eventually("the policy of "+template+" has no owner", func() error {
			if e.Get(policy.Name, policy); len(policy.OwnerReferences) > 0 {
				return fmt.Errorf("it has %v", policy.OwnerReferences)
			}
			return nil
		})
		mended("the selector, left behind,", widen)
		if template == own.Name {
			want.Egress = nil
		}
		mended("the egress, left behind,", open)
	}
}
