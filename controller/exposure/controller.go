// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package exposure

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/api/keys"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/lookup"
)

const (
	controllerName = "exposure"
	reasonReopens  = "ReopensSandbox"
	actionChecking = "Checking"
	// lookAfter is how long a change of a Pod may be followed by others before all of them
	// are looked at.
	lookAfter = time.Second
)

// Reconciler compares the NetworkPolicies of a namespace with its Sandboxes. Requests
// name a namespace.
type Reconciler struct {
	pods     client.Reader
	policies client.Reader
	recorder events.EventRecorder
	exposed  *prometheus.GaugeVec
	// found hears of what is open in a namespace; nil for nobody.
	found func(namespace string, findings []Finding)
	// told is what was last said of the policies of each namespace, by UID and direction.
	told map[string]map[string]string
}

// New makes a Reconciler that reads Pods and every NetworkPolicy, and registers its
// metric.
func New(pods, policies client.Reader, recorder events.EventRecorder, registry prometheus.Registerer) (*Reconciler, error) {
	r := &Reconciler{
		pods: pods, policies: policies, recorder: recorder, told: map[string]map[string]string{},
		exposed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agent_sandbox_exposed_pods",
			Help: "Pods of Sandboxes for which a NetworkPolicy of somebody else reopens what ours close.",
		}, []string{"namespace", "networkpolicy", "direction"}),
	}
	if err := registry.Register(r.exposed); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return r, nil
}

// EveryPolicy adds a cache of every NetworkPolicy to the manager: its own holds only those
// that the controllers keep.
func EveryPolicy(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	policies, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("make a cache of NetworkPolicies: %w", err)
	}
	if err := lookup.Hold(ctx, policies, &networkingv1.NetworkPolicy{}); err != nil {
		return nil, err
	}
	if err := mgr.Add(policies); err != nil {
		return nil, fmt.Errorf("start a cache of NetworkPolicies: %w", err)
	}
	return policies, nil
}

// SetUp adds the controller to the manager. The cache is that of EveryPolicy. It calls
// found, unless that is nil, with all that is open in a namespace whenever it has looked.
func SetUp(
	mgr ctrl.Manager, policies cache.Cache, registry prometheus.Registerer, found func(namespace string, findings []Finding),
) error {
	r, err := New(mgr.GetClient(), policies, mgr.GetEventRecorder(controllerName), registry)
	if err != nil {
		return err
	}
	r.found = found
	err = ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WatchesRawSource(source.Kind(policies, &networkingv1.NetworkPolicy{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, policy *networkingv1.NetworkPolicy) []reconcile.Request {
				return namespaceOf(policy)
			}))).
		Watches(&corev1.Pod{}, r.podEvents()).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up controller %s: %w", controllerName, err)
	}
	return nil
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podEvents ask for a pass a while after a Pod of a Sandbox for which a policy of somebody else
// opens something came, went, or got other labels: many of them cost one pass, and what else
// happens to a Pod costs none.
func (r *Reconciler) podEvents() handler.EventHandler {
	add := func(ctx context.Context, queue requests, pods ...client.Object) {
		for _, pod := range pods {
			if pod.GetLabels()[keys.Sandbox] == "true" && r.opened(ctx, pod) {
				queue.AddAfter(namespaceOf(pod)[0], lookAfter)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue requests) { add(ctx, queue, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue requests) { add(ctx, queue, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requests) {
			if !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				add(ctx, queue, e.ObjectOld, e.ObjectNew)
			}
		},
	}
}

// opened says whether a policy of somebody else opens anything for a Pod. What cannot be read
// may: the pass will tell the error.
func (r *Reconciler) opened(ctx context.Context, pod client.Object) bool {
	policies, err := r.policiesOf(ctx, pod.GetNamespace())
	return err != nil || slices.ContainsFunc(policies, func(p networkingv1.NetworkPolicy) bool {
		return opensAnything(&p) && isolation.Selects(&p, pod.GetLabels())
	})
}

// policiesOf are the policies of a namespace. They belong to the cache.
func (r *Reconciler) policiesOf(ctx context.Context, namespace string) ([]networkingv1.NetworkPolicy, error) {
	var policies networkingv1.NetworkPolicyList
	if err := r.policies.List(ctx, &policies, client.InNamespace(namespace), lookup.Shared); err != nil {
		return nil, fmt.Errorf("list NetworkPolicies: %w", err)
	}
	return policies.Items, nil
}

// opensAnything says whether a policy is somebody else's and has a rule. One that only closes
// concerns nobody.
func opensAnything(policy *networkingv1.NetworkPolicy) bool {
	return len(policy.Spec.Egress)+len(policy.Spec.Ingress) > 0 && !isolation.Ours(policy)
}

func namespaceOf(object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetNamespace()}}}
}

// Reconcile tells of what is open in a namespace, and takes back what no longer is.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	policies, err := r.policiesOf(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	var pods corev1.PodList
	if slices.ContainsFunc(policies, func(p networkingv1.NetworkPolicy) bool { return opensAnything(&p) }) {
		err := r.pods.List(ctx, &pods, client.InNamespace(request.Name), client.MatchingLabels{keys.Sandbox: "true"}, lookup.Shared)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("list Pods of Sandboxes: %w", err)
		}
	}
	r.exposed.DeletePartialMatch(prometheus.Labels{"namespace": request.Name})
	before := r.told[request.Name]
	delete(r.told, request.Name)
	findings := Find(pods.Items, policies)
	if r.found != nil {
		r.found(request.Name, findings)
	}
	for _, f := range findings {
		r.exposed.WithLabelValues(request.Name, f.Policy, string(f.Direction)).Set(float64(len(f.Pods)))
		i := slices.IndexFunc(policies, func(p networkingv1.NetworkPolicy) bool { return p.Name == f.Policy })
		r.tell(&policies[i], f, before)
	}
	return reconcile.Result{}, nil
}

// tell says each thing of a policy once: another Pod alone is no news.
func (r *Reconciler) tell(policy *networkingv1.NetworkPolicy, f Finding, before map[string]string) {
	key, news := string(policy.UID)+"/"+string(f.Direction), fmt.Sprint(f.Peers)
	if r.told[policy.Namespace] == nil {
		r.told[policy.Namespace] = map[string]string{}
	}
	r.told[policy.Namespace][key] = news
	if before[key] != news {
		example := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: policy.Namespace, Name: f.Pods[0]}}
		r.recorder.Eventf(policy, example, corev1.EventTypeWarning, reasonReopens, actionChecking, "%s", f.Note())
	}
}
