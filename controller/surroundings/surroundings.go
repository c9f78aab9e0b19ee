// Copyright The Agent Sandbox Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package surroundings

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/agent-sandbox-platform/agent-sandbox/controller/config"
	"github.com/agent-sandbox-platform/agent-sandbox/controller/isolation"
)

// +kubebuilder:rbac:groups="",resources=nodes;services,verbs=get;list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list;watch

// Readers are where the surroundings are read from.
type Readers struct {
	// Nodes reads nodes, Others EndpointSlices of the apiserver, Services and their ranges.
	Nodes, Others client.Reader
}

// Watcher knows the configuration with what the network is now.
type Watcher struct {
	base    *config.Platform
	readers Readers
	// servicesOnly leaves the addresses of the cluster alone.
	servicesOnly bool
	// serviceRanges is the version in which the apiserver serves the ranges of Services;
	// empty for one that does not.
	serviceRanges string
	current       atomic.Pointer[config.Platform]
	// followers are told of changes; each has room for one that it has not seen.
	followers  []chan event.GenericEvent
	unresolved *prometheus.GaugeVec
	gaps       []isolation.Gap
}

// New makes a Watcher of a configuration, which knows what live says until its own
// readers are asked, and registers its metric.
func New(ctx context.Context, base *config.Platform, live client.Reader, registry prometheus.Registerer) (*Watcher, error) {
	w := newWatcher(base, live)
	if err := registry.Register(w.unresolved); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	var err error
	if w.serviceRanges, err = findServiceRanges(ctx, live); err != nil {
		return nil, err
	}
	_, err = w.Reconcile(ctx, reconcile.Request{})
	return w, err
}

// OfServices makes a Watcher that knows what Services are, and nothing of the addresses of
// the cluster: for those who judge what a tier may open, where these count for nothing. The
// metric stays that of the controllers.
func OfServices(ctx context.Context, base *config.Platform, live client.Reader) (*Watcher, error) {
	w := newWatcher(base, live)
	w.servicesOnly = true
	_, err := w.Reconcile(ctx, reconcile.Request{})
	return w, err
}

func newWatcher(base *config.Platform, live client.Reader) *Watcher {
	return &Watcher{
		base: base, readers: Readers{Nodes: live, Others: live},
		unresolved: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agent_sandbox_unresolved_egress_services",
			Help: "Services that an egress profile names and that open nothing; the log says why.",
		}, []string{"profile", "service_namespace", "service"}),
	}
}

// Platform is the configuration with what the network is now. It must not be changed.
func (w *Watcher) Platform() *config.Platform {
	return w.current.Load()
}

// Follow returns a channel that tells when Platform has changed. Several changes may be
// told of at once. It must be called before the Watcher is started.
func (w *Watcher) Follow() <-chan event.GenericEvent {
	follower := make(chan event.GenericEvent, 1)
	w.followers = append(w.followers, follower)
	return follower
}

// Reconcile reads the surroundings anew.
func (w *Watcher) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	network, err := w.gather(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	resolved, gaps := isolation.Resolve(w.base, network)
	w.tell(ctx, gaps)
	if before := w.current.Load(); before != nil && apiequality.Semantic.DeepEqual(before, resolved) {
		return reconcile.Result{}, nil
	}
	w.current.Store(resolved)
	for _, follower := range w.followers {
		select {
		case follower <- event.GenericEvent{Object: &metav1.PartialObjectMetadata{}}:
		default: // it has yet to see an earlier change, and will see this one with it
		}
	}
	return reconcile.Result{}, nil
}

// tell says of each Service that opens nothing why, once.
func (w *Watcher) tell(ctx context.Context, gaps []isolation.Gap) {
	w.unresolved.Reset()
	for _, gap := range gaps {
		w.unresolved.WithLabelValues(gap.Profile, gap.Service.Namespace, gap.Service.Name).Set(1)
		if !slices.Contains(w.gaps, gap) {
			log.FromContext(ctx).Info("A Service of an egress profile opens nothing", "profile", gap.Profile, "service", gap.Service, "why", gap.Why)
		}
	}
	w.gaps = gaps
}

func (w *Watcher) gather(ctx context.Context) (isolation.Network, error) {
	network := isolation.Network{Services: map[types.NamespacedName]*corev1.Service{}}
	if !w.servicesOnly {
		var err error
		if network.Ranges, err = w.gatherRanges(ctx); err != nil {
			return network, err
		}
	}
	for _, key := range isolation.NamedServices(w.base) {
		service := &corev1.Service{}
		switch err := w.readers.Others.Get(ctx, key, service); {
		case err == nil:
			network.Services[key] = service
		case !apierrors.IsNotFound(err):
			return network, fmt.Errorf("read Service %s: %w", key, err)
		}
	}
	return network, nil
}

func (w *Watcher) gatherRanges(ctx context.Context) ([]netip.Prefix, error) {
	var nodes corev1.NodeList
	if err := w.readers.Nodes.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var endpoints discoveryv1.EndpointSliceList
	err := w.readers.Others.List(ctx, &endpoints, client.InNamespace(metav1.NamespaceDefault),
		client.MatchingLabels{discoveryv1.LabelServiceName: apiserverService})
	if err != nil {
		return nil, fmt.Errorf("find the apiserver's addresses: %w", err)
	}
	services, err := listServiceRanges(ctx, w.readers.Others, w.serviceRanges)
	return append(rangesOf(nodes.Items, endpoints.Items), services...), err
}

// apiserverService is the Service of the apiserver, in the namespace default.
const apiserverService = "kubernetes"

// rangesOf are the addresses of nodes, the ranges of their Pods, and the addresses of
// the apiserver: that of its Service is translated to them before a policy is asked.
func rangesOf(nodes []corev1.Node, apiserver []discoveryv1.EndpointSlice) []netip.Prefix {
	var ranges []netip.Prefix
	host := func(text string) {
		if address, err := netip.ParseAddr(text); err == nil { // names of hosts have no address to close
			ranges = append(ranges, netip.PrefixFrom(address.Unmap().WithZone(""), address.Unmap().BitLen()))
		}
	}
	for i := range nodes {
		for _, address := range nodes[i].Status.Addresses {
			host(address.Address)
		}
		for _, text := range nodes[i].Spec.PodCIDRs {
			if pods, err := netip.ParsePrefix(text); err == nil {
				ranges = append(ranges, plain(pods))
			}
		}
	}
	for i := range apiserver {
		for _, endpoint := range apiserver[i].Endpoints {
			for _, address := range endpoint.Addresses {
				host(address)
			}
		}
	}
	return ranges
}

// plain is a range by its first address. IPv4 that is written as IPv6 becomes IPv4: as a
// range of IPv6 it would close nothing.
func plain(prefix netip.Prefix) netip.Prefix {
	prefix = prefix.Masked()
	if address := prefix.Addr(); address.Is4In6() {
		prefix = netip.PrefixFrom(address.Unmap(), prefix.Bits()-(address.BitLen()-address.Unmap().BitLen()))
	}
	return prefix
}
